"""The run list is played: what overlaps is not on the longest chain."""

from __future__ import annotations

import pytest

from anfbuild.errors import StepError
from anfbuild.qnn.features import Features, summarise, work_by_name
from anfbuild.qnn.operations import Operation, from_json, join, read, to_json

MATRIX = Operation("q::ConvLayer_s1.opt", "matrix", macs=10**9, padded=2 * 10**9)
START = Operation("q::ConvLayer.opt.weights_to_vtcm", "dma", dram_read=1000, vtcm=1000)
SCHEMATIC = """
graph_after_optimization = {
	0x00000000000a: {
		'operation':'q::ConvLayer_s1.opt',
		'inputs' : [
			(0x0000000b,0),
			(0x0000000c,0),
		],
		'outputs' : [	{
			'dtype': 'QUInt8', 'rank': 4,
				'dims': [1,8,9,40],
			},
		],
	},
	0x00000000000b: {
		'outputs' : [ { 'dtype': 'QUInt8', 'dims': [1,8,9,16], }, ],
	},
	0x00000000000c: {
		'outputs' : [ { 'dtype': 'QInt8', 'dims': [1,1,16,40], }, ],
	},
# :::END:graph_after_optimization
bandwidth_information = [
{"opid" : 0x000000000d , "dram_read": 640 , "dram_write": 0 , "vtcm_read": 0 , "vtcm_write": 640, "is_dma": 1},
]
opdesc_map ={
  '#3': opdesc( 0xa, "q::ConvLayer_s1.opt", ptr=0x1, runlist_pos = 2,
      flags=(), op_flags=('RESOURCE_HMX',), n_out=1,
  ),
  '#1': opdesc( 0xd, "weights_to_vtcm", ptr=0x1, runlist_pos = 0,
      flags=(), op_flags=('FOR_DMA','MOVE_EARLY',), n_out=1,
  ),
  '#2': opdesc( 0xe, "weights_to_vtcm", ptr=0x1, runlist_pos = 1,
      flags=(), op_flags=('FOR_DMA','MOVE_LATE',), n_out=1,
      csts_in = ('#1',),
  ),
} # end of opdesc
"""


def test_a_schematic_is_read_in_the_order_of_the_run_list() -> None:
    start, wait, product = read(SCHEMATIC)
    assert (start.engine, start.dram_read, start.vtcm, start.waits) == ("dma", 640, 640, None)
    assert (wait.engine, wait.waits) == ("dma", 0)
    assert product.macs == 8 * 9 * 40 * 16
    assert product.padded == 8 * 16 * 64 * 32  # blocks of 8 × 8 positions and 32 × 32 channels


def test_a_schematic_of_another_form_is_refused_by_section() -> None:
    with pytest.raises(StepError, match="opdesc_map"):
        read(SCHEMATIC.replace("opdesc_map", "other_map"))


def test_a_stream_beside_the_matrix_engine_is_not_on_the_chain_unless_it_is_waited_for() -> None:
    hidden = summarise([START, MATRIX, Operation(START.name, "dma", waits=0)])
    assert (hidden.path_dram_bytes, hidden.all_dram_bytes, hidden.path_macs_8) == (0, 1000, 2 * 10**9)
    slow = Operation(START.name, "dma", dram_read=10**9)
    bound = summarise([slow, MATRIX, Operation(START.name, "dma", waits=0)])
    assert (bound.path_dram_bytes, bound.path_macs_8) == (10**9, 0)


def test_records_survive_json() -> None:
    operations = join([(START, Operation(START.name, "dma", waits=0)), (MATRIX, START)])
    assert from_json(to_json(operations)) == operations
    features = summarise(operations)
    assert Features.from_json(features.to_json()) == features
    assert {name for name, _, _ in work_by_name(operations)} == {MATRIX.name, START.name}
    with pytest.raises(StepError):
        Features.from_json({"path_starts": 1})
