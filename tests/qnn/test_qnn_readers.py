"""The readers of what the compiler wrote: right on real files, StepError and nothing else on anything else."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anfbuild.errors import StepError
from anfbuild.qnn import context, graph_dump, logs, operations, schematic, trace, verdicts

READERS: list[Callable[[str], object]] = [logs.read, trace.read, graph_dump.read, schematic.read, operations.read]

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "graph",
                    "tensors",
                    "type",
                    "data_type",
                    "subgraph_traces",
                    "op_mappings",
                    "sources",
                    "name",
                    "dst_qnn_op_type",
                    "unsupported_nodes",
                    "node_name",
                    "reason",
                    "provider",
                    "nodes",
                ]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)

SCHEMATIC = """
bandwidth_information = [
{"opid" : 0x01 , "dram_read": 100 , "dram_write": 0 , "vtcm_read": 0 , "vtcm_write": 100, "is_dma": 1},
{"opid" : 0x02 , "dram_read": 0 , "dram_write": 40 , "vtcm_read": 40 , "vtcm_write": 0, "is_dma": 1},
{"opid" : 0x03 , "dram_read": 30 , "dram_write": 0 , "vtcm_read": 0 , "vtcm_write": 30, "is_dma": 1},
{"opid" : 0x04 , "dram_read": 0 , "dram_write": 7 , "vtcm_read": 7 , "vtcm_write": 0, "is_dma": 1},
]
opdesc_map ={
  '#1': opdesc( 0x000000000002, "@Spill", ptr=0x1,
  '#2': opdesc( 0x000000000003, "@Fill", ptr=0x1,
} # end of opdesc
"""


@pytest.mark.parametrize("read", READERS)
@given(text=st.text(max_size=200) | JSON.map(json.dumps))
@settings(max_examples=150, deadline=None)
def test_garbage_is_a_step_error(read: Callable[[str], object], text: str) -> None:
    with contextlib.suppress(StepError):
        read(text)


@given(document=JSON)
@settings(max_examples=150, deadline=None)
def test_a_garbled_assignment_is_a_step_error(document: object) -> None:
    with contextlib.suppress(StepError):
        verdicts.read_assignment(document)


@pytest.mark.parametrize("read", READERS)
def test_an_empty_file_is_refused(read: Callable[[str], object]) -> None:
    with pytest.raises(StepError):
        read("")


def test_traffic_counts_spills_among_writes_and_fills_among_reads() -> None:
    assert schematic.read(SCHEMATIC) == schematic.Traffic(read=130, write=47, spill=40, fill=30)


@pytest.mark.parametrize(
    ("old", "new", "named"),
    [
        ("bandwidth_information", "bandwidth", "bandwidth_information"),
        ("opdesc_map", "opdescs", "opdesc_map"),
        ("} # end of opdesc", "}", "opdesc_map"),
        ('"dram_read": 100', '"dram_bytes": 100', "bandwidth_information"),
    ],
)
def test_a_schematic_of_another_form_is_refused_by_section(old: str, new: str, named: str) -> None:
    with pytest.raises(StepError, match=named):
        schematic.read(SCHEMATIC.replace(old, new))


def test_the_log_gives_a_refusal_qnns_own_words() -> None:
    log = logs.read(
        json.dumps(
            [
                [0, " <E> [1] has incorrect Value 68, expected >= 73.\n"],
                [0, " <E> QnnBackend_validateOpConfig failed 3110"],
                [
                    0,
                    "Validation FAILED for 1 nodes in OrtNodeUnit (Conv) :\n\tOperator type: Conv Node name: my conv "
                    "Node index: 3\n\tREASON : Failed to add node.\n",
                ],
                [0, "Validation PASSED for 1 nodes in X (Relu) :\n\tOperator type: Relu Node name: r Node index: 4"],
                [0, " <V> Prepare: Graph g with init graph option: min_arch = 68\n"],
            ]
        )
    )
    assert log.validations["my conv"] == logs.Validation(
        "Conv", False, "Failed to add node. [1] has incorrect Value 68, expected >= 73."
    )
    assert log.validations["r"] == logs.Validation("Relu", True, "")
    assert log.option("min_arch") == "68"
    with pytest.raises(StepError, match="soc_type"):
        log.option("soc_type")


def test_two_values_of_one_option_are_refused() -> None:
    lines = [[0, f"init graph option: soc_type = {name}"] for name in ("SM8650", "SM8350")]
    with pytest.raises(StepError, match="SM8350, SM8650"):
        logs.read(json.dumps(lines)).option("soc_type")


def test_the_real_files_are_read(kept: Path) -> None:
    log = logs.read((kept / "log.json").read_text())
    assert (log.option("soc_type"), log.option("min_arch"), log.option("vtcm_size")) == ("SM8650", "75", str(8 << 20))
    built = context.read(kept)
    assert (built.soc_model, built.binaries, len(built.graphs)) == (57, ("model_qnn.bin",), 1)
    assert built.host_outputs == ("y",)
    ops = trace.read((kept / "traces/qnn_op_trace.json").read_text())
    assert ops.ops["relu"] == "Conv2d"  # fused into the convolution
    assert "graph input" in ops.unsupported["in_Q"]
    activations, constants = graph_dump.read((kept / f"traces/{built.graphs[0]}.json").read_text())
    assert set(activations) == {"ufixed8"}
    assert constants == {"ufixed8": 1}
    traffic = schematic.read(next(kept.glob("*schematic.bin")).read_text())
    assert traffic.read >= 16 * 3 * 3 * 3  # at the least, the weights come from DRAM
    assert traffic.write >= 16 * 8 * 8
    assert (traffic.spill, traffic.fill) == (0, 0)


def test_a_float_between_cast_and_quantize_does_not_count() -> None:
    tensors = {name: {"type": 3, "data_type": code} for name, code in (("i", 0x32), ("f", 0x232), ("q", 0x408))}
    nodes = {
        "cast": {"type": "Cast", "input_names": ["i"], "output_names": ["f"]},
        "quantize": {"type": "Quantize", "input_names": ["f"], "output_names": ["q"]},
    }
    document = {"graph": {"tensors": tensors, "nodes": nodes}}
    assert graph_dump.read(json.dumps(document))[0] == {"int32": 1, "ufixed8": 1}
    nodes["add"] = {"type": "ElementWiseAdd", "input_names": ["f"], "output_names": []}
    assert graph_dump.read(json.dumps(document))[0] == {"int32": 1, "float32": 1, "ufixed8": 1}


@given(share=st.floats(0, 1, exclude_max=True))
@settings(max_examples=40, deadline=None)
def test_a_real_file_cut_short_is_refused(kept: Path, share: float) -> None:
    graph = context.read(kept).graphs[0]
    names = ["log.json", "traces/qnn_op_trace.json", f"traces/{graph}.json"]
    for read, name in zip(READERS, names, strict=False):
        text = (kept / name).read_text().rstrip()
        with pytest.raises(StepError):
            read(text[: int(len(text) * share)])
    text = next(kept.glob("*schematic.bin")).read_text()
    with pytest.raises(StepError):
        schematic.read(text[: int(text.index("# end of opdesc") * share)])


def test_a_context_without_its_binary_is_refused(kept: Path, tmp_path: Path) -> None:
    (tmp_path / "model.onnx").write_bytes((kept / "model.onnx").read_bytes())
    with pytest.raises(StepError, match=r"'model_qnn\.bin' is missing"):
        context.read(tmp_path)


def test_a_model_that_is_no_context_is_refused(kept: Path, tmp_path: Path) -> None:
    (tmp_path / "model.onnx").write_bytes((kept / "source.onnx").read_bytes())
    with pytest.raises(StepError, match="no EPContext node"):
        context.read(tmp_path)
