"""What bounds a node, in the bits that it would have."""

from __future__ import annotations

from typing import Any

import pytest
from onnx import TensorProto, helper

from anfbuild.simulator.bounds import NodeBound, bounds

TARGET: dict[str, Any] = {"vtcm_mb": 8, "rates": {"conv_tmac_s": 27.5, "weight_gb_s": 55.5, "fixed_ms": 0.05}}


def product(rows: int, depth: int, columns: int, activations: int = 8, weights: int = 8) -> NodeBound:
    """The bound of a MatMul with weights that have a shape alone."""
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["y"], name="n")],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [rows, depth])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [rows, columns])],
        [TensorProto(name="w", dims=[depth, columns], data_type=TensorProto.FLOAT)],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    (found,) = bounds(model, TARGET, activations, weights)
    return found


@pytest.mark.parametrize(
    ("sizes", "bound"),
    [
        ((200_000, 64, 64), "dram"),  # values of 26 MB, which 8 MB do not hold
        ((2048, 2048, 512), "compute"),
        ((1, 4096, 4096), "dram"),  # each weight is used once
        ((65536, 32, 32), "vtcm"),
        ((1, 32, 32), "overhead"),
    ],
)
def test_what_bounds_a_product(sizes: tuple[int, int, int], bound: str) -> None:
    assert product(*sizes).bound == bound


def test_bytes_and_intensity_are_those_of_the_bits() -> None:
    found = product(16, 64, 32, activations=16, weights=8)
    assert found.macs == 16 * 64 * 32
    assert found.bytes == 64 * 32 + 2 * (16 * 64 + 16 * 32)
    assert found.to_json()["intensity"] == round(found.macs / found.bytes, 3)
    assert product(16, 64, 32, activations=8).bytes < found.bytes


def test_more_bits_never_take_less_time() -> None:
    times = [product(512, 2048, 2048, *bits).ms for bits in ((8, 8), (16, 8), (16, 16))]
    assert times == sorted(times)
