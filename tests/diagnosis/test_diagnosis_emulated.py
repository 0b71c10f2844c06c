"""What the HTP computes wrongly without a word is found at its node, by name; the mended twin is silent."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from diagnosis_models import SM8650, Build, repeating, transposed, upsampling

from anfbuild.diagnosis.diagnose import Emulation
from anfbuild.graph import serialize
from anfbuild.qnn import unavailable
from anfbuild.qnn.compile import compile_context
from anfbuild.qnn.emulate import emulate

REASON = unavailable()
pytestmark = pytest.mark.skipif(REASON is not None, reason=str(REASON))


@pytest.fixture
def chip(tmp_path: Path):
    def run(qdq: onnx.ModelProto, feeds: list[dict[str, np.ndarray]]) -> Emulation:
        compile_context(serialize(qdq), SM8650, tmp_path / "context")
        return Emulation(emulate(tmp_path / "context", feeds, SM8650).outputs)

    return run


def unmended(source: onnx.ModelProto, scheme: str) -> Build:
    """What a build would be without the passes that mend such a node."""
    return Build(source, source, {}, scheme)


def test_a_transposed_convolution_with_an_add_behind_it(chip) -> None:
    found = unmended(transposed(), "a16w8_per_channel").diagnose(chip=chip, agreement_lsb=4.0)
    departure, explanation = found.departures["emulated"], found.explanations["emulated"]
    assert not found.healthy
    assert departure.difference.tensor == "a2"
    assert departure.confirmed
    assert {"node_a2", "node_t2"} <= {node.name for node in departure.nodes}, "the two are wrong together only"
    assert (explanation.rule, explanation.node) == ("convtranspose-add", "node_t2")
    words = " ".join(found.to_json()["words"])
    assert "stage emulated departs at node node_a2 (Add)" in words
    assert "Fold the constant into the convolution's bias." in words


def test_the_same_folded(chip) -> None:
    build = Build.of(transposed(), "a16w8_per_channel")
    assert "Add" not in {node.op_type for node in build.converted.graph.node}
    found = build.diagnose(chip=chip, agreement_lsb=4.0)
    assert [compared.passed for compared in found.stages] == [True, True, True, True]
    assert not found.departures


def test_a_nearest_resize_in_a_mode_that_the_chip_ignores(chip) -> None:
    source = upsampling("ceil", "half_pixel")
    found = unmended(source, "int8").diagnose(chip=chip)
    departure, explanation = found.departures["emulated"], found.explanations["emulated"]
    assert (departure.node.op_type, departure.difference.tensor, departure.confirmed) == ("Resize", "u1", True)
    assert explanation.rule == "nearest-resize"


def test_the_same_in_a_mode_that_is_right(chip) -> None:
    found = Build.of(upsampling()).diagnose(chip=chip)
    assert [compared.passed for compared in found.stages] == [True, True, True, True]


def test_a_gather_of_many_indices_that_take_16_bytes_each(chip) -> None:
    """16 rows, each twice: the HTP reads others (QNN 2.51), and says nothing."""
    found = unmended(repeating(), "int8").diagnose(chip=chip)
    departure, explanation = found.departures["emulated"], found.explanations["emulated"]
    assert (departure.node.op_type, departure.difference.tensor, departure.confirmed) == ("Gather", "y", True)
    assert explanation.rule == "wrong-gather"


def test_the_same_gather_turned(chip) -> None:
    found = Build.of(repeating()).diagnose(chip=chip)
    assert [compared.passed for compared in found.stages] == [True, True, True, True]
