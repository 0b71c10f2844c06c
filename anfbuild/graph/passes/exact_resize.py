"""Write each nearest Resize in a form that the HTP computes as stated."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence

import numpy as np
import onnx

from anfbuild.graph.edit import GraphIndex, PassResult, attribute, list_attribute, text_attribute
from anfbuild.graph.execute import Session
from anfbuild.graph.rewrite import Expansion, Replacements
from anfbuild.graph.shapes import infer, known_shapes

RIGHT = (("asymmetric", "floor"), ("half_pixel", "round_prefer_ceil"))
"""Coordinate transformation and rounding that the HTP was seen to compute as stated at every size. Most others it takes
silently for another (up to 255 steps of 8 bits off), and some it leaves to the CPU: `benchmarks/exactness.py`."""
_ROUNDS = ("round_prefer_floor", "round_prefer_ceil")
_TIE = 1e-4
"""Of an element: so near to the middle of two, the arithmetic decides which is taken."""


def is_right(modes: tuple[str, str], axes: Iterable[tuple[int, int, float | None]]) -> bool:
    """Whether the HTP takes the samples that `modes` state. `axes`: (length, that of the result, the scale as stated).

    Those of RIGHT are; half_pixel and align_corners with any rounding to the nearest where no sample lies in the middle
    of two; pytorch_half_pixel where each length grows by a whole factor.
    """
    coordinates, rounding = modes
    if modes in RIGHT:
        return True
    if rounding not in _ROUNDS or coordinates not in ("half_pixel", "align_corners", "pytorch_half_pixel"):
        return False
    if coordinates == "pytorch_half_pixel":
        return all(after % before == 0 and scale in (None, after // before) for before, after, scale in axes)
    return not any(_has_ties(coordinates, *axis) for axis in axes)


def _has_ties(coordinates: str, before: int, after: int, scale: float | None) -> bool:
    numbers = np.arange(after, dtype=np.float64)
    if coordinates == "align_corners":
        found = numbers * (before - 1) / max(after - 1, 1)
    else:
        found = (numbers + 0.5) / (scale or after / before) - 0.5
    return bool((np.abs(found - np.floor(found) - 0.5) < _TIE).any())


def run(model: onnx.ModelProto) -> PassResult:
    """Requires opset 13, static input shapes and constants to be initializers.

    Ensures that a nearest Resize is one that the HTP computes as stated (`is_right`): where a mode of RIGHT takes the
    same samples for these sizes, it takes its place, else a Gather of each axis does, which `exact_gather` turns where
    the HTP would compute it wrongly. The same numbers. What stays is noted: crops, kept aspect ratios, computed sizes;
    and what the HTP leaves to the CPU or was never checked on: antialiasing, cubic but of factor 2.
    """
    found = [node for node in model.graph.node if node.op_type == "Resize" and node.domain == ""]
    if not found:
        return PassResult("exact_resize", 0)
    index = GraphIndex(model.graph)
    shapes = known_shapes(infer(model))
    replacements = Replacements(index)
    notes = []
    changed = 0
    for node in found:
        name = node.name or node.output[0]
        mode = text_attribute(node, "mode", "nearest")
        ends = [shapes.get(value) for value in (node.input[0], node.output[0])]
        if mode != "nearest":
            doubt = _doubt(node, mode, ends)
            notes += [f"{name} stays: {doubt}"] if doubt else []
        elif _modes(node) not in RIGHT:
            resizing = _resizing(index, node, *ends)
            if isinstance(resizing, str):
                notes.append(f"{name} stays, the HTP may compute it wrongly: {resizing}")
            elif not is_right(_modes(node), ((axis.length, axis.result, axis.scale) for axis in resizing)):
                _rewrite(index, node, resizing, replacements)
                changed += 1
    replacements.apply()
    return PassResult("exact_resize", changed, ([f"rewrote {changed} nodes"] if changed else []) + notes)


@dataclasses.dataclass(frozen=True)
class _Axis:
    """How a Resize changes one axis."""

    axis: int
    length: int
    result: int
    scale: float | None
    """As stated; None: the ratio of the lengths."""

    def samples(self, modes: tuple[str, str]) -> np.ndarray:
        """Which element each of the result is, found by resizing the elements' numbers."""
        factor: np.ndarray = np.array([self.scale], np.float32) if self.scale is not None else np.array([self.result])
        names = ["numbers", "", "factor"] if self.scale is not None else ["numbers", "", "", "factor"]
        node = onnx.helper.make_node(
            *("Resize", names, ["samples"]),
            **{"mode": "nearest", "coordinate_transformation_mode": modes[0], "nearest_mode": modes[1]},
        )
        numbers = np.arange(self.length, dtype=np.float32)
        graph = onnx.helper.make_graph(
            [node],
            "axis",
            [onnx.helper.make_tensor_value_info("numbers", onnx.TensorProto.FLOAT, [self.length])],
            [onnx.helper.make_tensor_value_info("samples", onnx.TensorProto.FLOAT, [self.result])],
            [onnx.numpy_helper.from_array(factor, "factor")],
        )
        model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 19)], ir_version=9)
        return Session(model, threads=1).run({"numbers": numbers})["samples"].astype(np.int64)


def _modes(node: onnx.NodeProto) -> tuple[str, str]:
    return (
        text_attribute(node, "coordinate_transformation_mode", "half_pixel"),
        text_attribute(node, "nearest_mode", "round_prefer_floor"),
    )


def _doubt(node: onnx.NodeProto, mode: str, ends: Sequence[tuple[int, ...] | None]) -> str:
    """Why an interpolating Resize may not come out as stated; empty: it does."""
    if attribute(node, "antialias", 0):
        return "antialiasing runs on the CPU"
    if mode == "cubic" and (None in ends or any(b not in (a, 2 * a) for a, b in zip(*ends, strict=True))):
        return "cubic was only checked on the HTP for a factor of 2"
    return ""


def _resizing(
    index: GraphIndex, node: onnx.NodeProto, before: tuple[int, ...] | None, after: tuple[int, ...] | None
) -> list[_Axis] | str:
    """The axes that change, or why that is not known."""
    if _modes(node)[0] == "tf_crop_and_resize":
        return "it crops"
    if text_attribute(node, "keep_aspect_ratio_policy", "stretch") != "stretch":
        return "it keeps the aspect ratio"
    if before is None or after is None or 0 in before:
        return "its shape is not static"
    stated = node.input[2] if len(node.input) > 2 else ""
    scales = index.value(stated) if stated else None
    if stated and scales is None:
        return "its scales are computed"
    axes = list_attribute(node, "axes") or list(range(len(before)))
    by_axis = {axis % len(before): position for position, axis in enumerate(axes)}
    has_scales = scales is not None and scales.size > 0
    return [
        _Axis(axis, length, result, float(scales[by_axis[axis]]) if scales is not None and has_scales else None)
        for axis, (length, result) in enumerate(zip(before, after, strict=True))
        if axis in by_axis and (length != result or (scales is not None and has_scales and scales[by_axis[axis]] != 1))
    ]


def _rewrite(index: GraphIndex, node: onnx.NodeProto, axes: list[_Axis], replacements: Replacements) -> None:
    wanted = [axis.samples(_modes(node)) for axis in axes]
    for modes in RIGHT:
        if all(np.array_equal(axis.samples(modes), samples) for axis, samples in zip(axes, wanted, strict=True)):
            names = ("coordinate_transformation_mode", "nearest_mode")
            kept = [entry for entry in node.attribute if entry.name not in names]
            del node.attribute[:]
            node.attribute.extend(kept)
            node.attribute.extend(map(onnx.helper.make_attribute, names, modes))
            return
    made = Expansion(index, node)
    source = node.input[0]
    for axis, samples in zip(axes, wanted, strict=True):
        result = node.output[0] if axis is axes[-1] else None
        source = made.node("Gather", [source, made.constant(samples, "samples")], result, axis=axis.axis)
    replacements.replace(node, made.nodes)
