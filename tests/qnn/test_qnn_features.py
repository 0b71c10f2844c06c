"""The run list is read operation by operation, and summed by engine; what is not understood is named."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anfbuild.errors import StepError
from anfbuild.qnn.features import Features, summarise, work_by_name
from anfbuild.qnn.operations import Operation, join, read

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
    assert product.padded == 8 * 16 * 64 * 16  # blocks of 8 × 8 positions and 32 channels; the input has but 16
    assert (start.level, wait.level, product.level) == (1, 2, 1)
    assert [op.doubt for op in (start, wait, product)] == [None] * 3
    assert summarise(read(SCHEMATIC)).unlisted == {}


def test_two_bytes_take_smaller_blocks_and_a_depthwise_convolution_whole_ones() -> None:
    wide = SCHEMATIC.replace("'QUInt8', 'rank'", "'QUInt16', 'rank'")
    product = read(wide)[2]
    assert (product.width, product.padded) == ("16", 8 * 12 * 64 * 16)
    depthwise = SCHEMATIC.replace("[1,8,9,16]", "[1,8,9,40]").replace("[1,1,16,40]", "[1,1,4,40]")
    assert read(depthwise)[2].padded == 8 * 16 * 64 * 32


@pytest.mark.parametrize(
    ("old", "new", "doubt"),
    [
        ("'RESOURCE_HMX',", "", "q::ConvLayer_s1.opt (no engine is named)"),
        ("'QUInt8', 'rank'", "'QUInt3', 'rank'", "q::ConvLayer_s1.opt (its type is not known)"),
        ("[1,8,9,40]", "[8,9,40]", "q::ConvLayer_s1.opt (its shapes are not those of a product)"),
    ],
)
def test_what_is_not_understood_is_counted_and_named(old: str, new: str, doubt: str) -> None:
    assert old in SCHEMATIC
    assert summarise(read(SCHEMATIC.replace(old, new))).unlisted == {doubt: 1}


def test_a_mark_of_the_main_thread_is_no_doubt() -> None:
    marked = SCHEMATIC.replace('"q::ConvLayer_s1.opt", ptr', '"@Sync", ptr').replace("'RESOURCE_HMX',", "")
    assert summarise(read(marked)).unlisted == {}


def test_a_schematic_of_another_form_is_refused_by_section() -> None:
    with pytest.raises(StepError, match="opdesc_map"):
        read(SCHEMATIC.replace("opdesc_map", "other_map"))


def test_work_is_summed_by_engine_and_kind() -> None:
    spill = Operation("@Spill", "dma", dram_write=70, vtcm=70)
    vector = [
        Operation("q::Softmax_Crouton", "vector", vtcm=5, width="float"),
        Operation("q::Concat", "vector", vtcm=6),
        Operation("q::Add.tcm", "vector", vtcm=7, dram_read=8),
    ]
    found = summarise([START, Operation(START.name, "dma", waits=0, level=2), MATRIX, spill, *vector])
    assert found == Features(
        macs_8=2 * 10**9,
        vector_bytes=7,
        heavy_bytes=5,
        copy_bytes=6,
        float_bytes=5,
        stream_bytes=1008,
        spill_bytes=70,
        depth=2,
        entries=7,
        macs=10**9,
        dram_read=1008,
        dram_write=70,
    )
    assert Features.from_json(found.to_json()) == found
    assert {name for name, _, _ in work_by_name([START, MATRIX])} == {MATRIX.name, START.name}
    with pytest.raises(StepError):
        Features.from_json({"depth": 1})


_LISTS = st.lists(
    st.builds(
        Operation,
        name=st.sampled_from(["q::Add.tcm", "q::Concat", "@Fill", "q::ConvLayer_s1.opt"]),
        engine=st.sampled_from(["matrix", "vector", "dma", "main"]),
        dram_read=st.integers(0, 10**9),
        vtcm=st.integers(0, 10**9),
        padded=st.integers(0, 10**12),
        width=st.sampled_from(["8", "16", "float"]),
        level=st.integers(1, 50),
    ),
    max_size=8,
)


@given(_LISTS, _LISTS)
def test_one_graph_after_another_is_the_sum_of_both(first: list[Operation], second: list[Operation]) -> None:
    parts = summarise(first).to_json(), summarise(second).to_json()
    whole = summarise(join([tuple(first), tuple(second)])).to_json()
    assert {name: amount for name, amount in whole.items() if name != "unlisted"} == {
        name: parts[0][name] + parts[1][name] for name in parts[0] if name != "unlisted"
    }
