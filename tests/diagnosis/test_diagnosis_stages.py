"""Faults of the stages that the CPU computes: each is found at its node, and its healthy twin is silent."""

from __future__ import annotations

import dataclasses

import numpy as np
import onnx
import pytest
from diagnosis_models import NO_CHIP, Build, edited, upsampling
from onnx import helper, numpy_helper

from anfbuild.diagnosis.diagnose import Diagnosis
from anfbuild.quantization.encodings import Encodings
from anfbuild.quantization.qdq import write
from anfbuild.quantization.quantize import quantize
from anfbuild.quantization.schemes import find
from anfbuild.quantization.topology import analyse


def verdicts(found: Diagnosis) -> dict[str, bool | None]:
    return {compared.stage.name: compared.passed for compared in found.stages}


HEALTHY = {"converted": True, "conditioned": True, "qdq": True, "emulated": None}


@pytest.mark.parametrize("nearest_mode", ["floor", "ceil"])
def test_a_healthy_build_is_silent(nearest_mode: str) -> None:
    """With `ceil` a pass writes the Resize otherwise, and without a fault."""
    found = Build.of(upsampling(nearest_mode)).diagnose()
    assert verdicts(found) == HEALTHY
    assert found.healthy
    assert not found.departures
    document = found.to_json()
    assert [stage["reason"] for stage in document["stages"]] == [None, None, None, NO_CHIP]
    assert f"emulated: not compared: {NO_CHIP}." in document["words"]


def test_a_resize_of_another_coordinate_mode_is_found() -> None:
    build = Build.of(upsampling(coordinates="half_pixel", mode="linear"))

    def shift(graph: onnx.GraphProto) -> None:
        (resize,) = [node for node in graph.node if node.op_type == "Resize"]
        (mode,) = [a for a in resize.attribute if a.name == "coordinate_transformation_mode"]
        mode.s = b"align_corners"

    build.converted = edited(build.converted, shift)
    found = build.diagnose()
    assert verdicts(found) == {**HEALTHY, "converted": False}
    assert not found.healthy
    departure = found.departures["converted"]
    assert (departure.node.op_type, departure.difference.tensor, departure.confirmed) == ("Resize", "u1", True)


def test_a_padding_that_repeats_the_edge_is_found_at_the_border() -> None:
    build = Build.of(upsampling())

    def pad(graph: onnx.GraphProto) -> None:
        (place,) = [index for index, node in enumerate(graph.node) if node.output[0] == "c2" or node.output[0] == "y"][
            :1
        ]
        conv = graph.node[place]
        (pads,) = [a for a in conv.attribute if a.name == "pads"]
        del pads.ints[:]
        pads.ints.extend([0, 0, 0, 0])
        graph.initializer.append(numpy_helper.from_array(np.array([0, 0, 1, 1, 0, 0, 1, 1]), "edges"))
        padded = helper.make_node("Pad", [conv.input[0], "edges"], ["padded"], "pad", mode="edge")
        conv.input[0] = "padded"
        graph.node.insert(place, padded)

    build.converted = edited(build.converted, pad)
    found = build.diagnose()
    departure = found.departures["converted"]
    assert departure.node.op_type == "Conv"
    assert departure.difference.at_border
    assert departure.difference.interior is not None
    assert departure.difference.interior.max < 1e-4
    assert any("at the border" in sentence for sentence in found.to_json()["words"])


def test_a_wrong_batch_normalization_is_found_and_traced_to_the_source() -> None:
    build = Build.of(upsampling())
    assert "BatchNormalization" not in {node.op_type for node in build.converted.graph.node}

    def spoil(graph: onnx.GraphProto) -> None:
        (conv,) = [node for node in graph.node if node.input[0] == "x"]
        (bias,) = [tensor for tensor in graph.initializer if tensor.name == conv.input[2]]
        wrong = numpy_helper.to_array(bias).copy()
        wrong[3] += 0.5
        bias.CopyFrom(numpy_helper.from_array(wrong, bias.name))

    build.converted = edited(build.converted, spoil)
    found = build.diagnose()
    assert verdicts(found)["converted"] is False
    assert found.departures["converted"].node.op_type == "Conv"
    assert "node_n1" in found.sources["converted"]
    assert any("node_n1" in sentence for sentence in found.to_json()["words"])


def test_a_pass_that_was_to_mend_the_node_is_named() -> None:
    """A nearest Resize that the HTP computes wrongly is rewritten, here as another one."""
    build = Build.of(upsampling("floor", "half_pixel"))
    wrong = Build.of(upsampling("round_prefer_floor", "half_pixel"))
    found = dataclasses.replace(build, converted=wrong.converted).diagnose()
    explanation = found.explanations["converted"]
    assert explanation.rule == "nearest-resize"
    assert "exact_resize rewrites such a node" in explanation.consequence


def test_one_range_that_saturates_is_found_and_told_in_figures() -> None:
    build = Build.of(upsampling())
    _, encodings = quantize(build.converted, build.statistics(), "int8", "minmax")
    narrow = dataclasses.replace(encodings.activations["r1"], scale=(encodings.activations["r1"].scale[0] / 16,))
    topology = analyse(build.converted)
    chosen = {
        name: narrow if topology.roots[name] == topology.roots["r1"] else e for name, e in encodings.activations.items()
    }
    found = build.diagnose(qdq=write(build.converted, topology, chosen, find("int8")))
    assert verdicts(found) == {**HEALTHY, "qdq": False}
    assert found.healthy, "what quantization costs is a warning: the accuracy gate judges it"
    assert found.departures["qdq"].difference.tensor == "r1"
    explanation = found.explanations["qdq"]
    assert explanation.rule == "range-saturates"
    assert f"{255 * narrow.scale[0]:.4g}" in explanation.message


def test_a_source_that_does_not_run_is_told_and_the_rest_compared() -> None:
    build = Build.of(upsampling())

    def alien(graph: onnx.GraphProto) -> None:
        graph.node[0].domain = "nobody.knows"

    build.source = edited(build.source, alien)
    build.source.opset_import.append(helper.make_opsetid("nobody.knows", 1))
    found = build.diagnose()
    assert verdicts(found) == {**HEALTHY, "converted": None}
    assert "the source model does not run as it is" in str(found.to_json()["stages"][0]["reason"])


def test_encodings_are_what_a_range_is_measured_by() -> None:
    build = Build.of(upsampling())
    models = build.models()
    assert isinstance(models.encodings, Encodings)
    whole = build.diagnose().stages[2].outputs[0].whole
    assert 0 < whole.rms < 1 / 16
