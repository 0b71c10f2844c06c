"""What the HTP accepts without a word and computes wrongly."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import onnx

from anfbuild.graph.constraints.rule import Hit, Severity, rule
from anfbuild.graph.constraints.scene import Node, Scene
from anfbuild.graph.folding import RANDOM
from anfbuild.graph.passes.exact_gather import LARGEST_RANK, is_wrong
from anfbuild.graph.passes.exact_resize import is_right

_CHANNELS = 1


@rule(
    Severity.ERROR,
    consequence="Quantized per tensor, the result is too small wherever its scale is below the input's, and nothing "
    "warns.",
    remedy="Choose a scheme with weights per channel (quantization=int8_per_channel), or write a Mul.",
    mended_by="lower_depthwise",
)
def depthwise_1x1(scene: Scene) -> Iterator[Hit]:
    """A depthwise convolution whose kernel has one element: the HTP computes it wrongly with weights per tensor."""
    for node in scene.live("Conv"):
        weights = scene.shapes.get(node.input(1))
        groups = node.attributes.get("group", 1)
        if weights is None or groups < 2 or weights[0] != groups or any(size != 1 for size in weights[1:]):
            continue
        moves = any(node.attributes.get("pads", ())) or any(step != 1 for step in node.attributes.get("strides", ()))
        mended = not moves and node.input(1) in scene.constant
        if mended or not scene.aim.precision.per_channel:
            why = "" if mended else "; strides, padding or computed weights keep it as it is"
            yield Hit(node, f"{groups} channels{why}", mended)


@rule(
    Severity.ERROR,
    consequence="The added channels hold garbage for some sizes, and nothing warns.",
    remedy="Write a Concat with a constant.",
    mended_by="lower_channel_pad",
)
def channel_pad(scene: Scene) -> Iterator[Hit]:
    """A Pad that adds channels: the HTP writes garbage into them for some sizes."""
    for node in scene.live("Pad"):
        rank = len(scene.shapes.get(node.input(0), ()))
        stated = node.attributes.get("pads", node.attributes.get("paddings"))
        found = scene.value(node.input(1)) if stated is None else np.array(stated)
        axes = scene.value(node.input(3)) if node.input(3) else np.arange(rank)
        if found is None or axes is None or found.size != 2 * axes.size or rank <= _CHANNELS:
            continue
        added = found.reshape(2, -1)[:, axes.reshape(-1) % rank == _CHANNELS].reshape(-1)
        if (added > 0).any():
            constant = node.attributes.get("mode", "constant") == "constant" and not (added < 0).any()
            known = not node.input(2) or node.input(2) in scene.constant
            before = scene.shapes[node.input(0)][_CHANNELS]
            yield Hit(node, f"{before} channels to {before + int(added.sum())}", constant and known)


@rule(
    Severity.ERROR,
    consequence="It takes other samples than stated, and nothing warns. Two forms "
    "(asymmetric with ceil or round_prefer_floor) are left to the CPU instead.",
    remedy="Use a mode that is right at every size: asymmetric with floor, or half_pixel with round_prefer_ceil.",
    mended_by="exact_resize",
)
def nearest_resize(scene: Scene) -> Iterator[Hit]:
    """A nearest Resize in a mode that the HTP ignores, or with samples in the middle of two elements."""
    for node in scene.live("Resize"):
        # Opset 10 has no modes: the upgrade states them, right ones where it enlarges.
        if scene.opset < 11 or node.attributes.get("mode", "nearest") != "nearest":
            continue
        coordinates = node.attributes.get("coordinate_transformation_mode", "half_pixel")
        rounding = node.attributes.get("nearest_mode", "round_prefer_floor")
        if is_right((coordinates, rounding), _lengths(scene, node)):
            continue
        kept = coordinates == "tf_crop_and_resize" or node.attributes.get("keep_aspect_ratio_policy", "stretch") != (
            "stretch"
        )
        static = node.input(0) in scene.shapes and node.outputs[0] in scene.shapes
        yield Hit(node, f"{coordinates} with {rounding}", static and not kept)


def _lengths(scene: Scene, node: Node) -> list[tuple[int, int, float | None]]:
    """Of each axis: its length, that of the result, and the scale where one is stated."""
    before, after = scene.shapes.get(node.input(0), ()), scene.shapes.get(node.outputs[0], ())
    stated = scene.value(node.input(2))
    scales = [None] * len(before) if stated is None or len(stated) != len(before) else [float(v) for v in stated]
    return [axis for axis in zip(before, after, scales, strict=False) if axis[0] != axis[1] or axis[2] not in (None, 1)]


@rule(
    Severity.ERROR,
    consequence="It takes others than stated, and nothing warns.",
    remedy="Gather along the last axis, between two Transposes.",
    mended_by="exact_gather",
)
def wrong_gather(scene: Scene) -> Iterator[Hit]:
    """A quantized Gather of 32 indices or more, each of which takes 8, 16 or 32 bytes in one piece."""
    precision = scene.aim.precision
    if not precision.quantized:
        return
    for node in scene.live("Gather"):
        data, indices = scene.shapes.get(node.input(0)), scene.shapes.get(node.input(1))
        # Of 8 bits, the HTP takes rows of a constant as stated.
        is_table = precision.activation_bits == 8 and node.input(0) in scene.constant
        if not data or indices is None or is_table or scene.types.get(node.input(0)) != onnx.TensorProto.FLOAT:
            continue
        axis = int(node.attributes.get("axis", 0))
        if is_wrong(data, axis, indices, [precision.activation_bits // 8]):
            maker = scene.producers.get(node.input(0))
            is_encoded = maker is not None and maker.op_type == "DequantizeLinear"
            mended = len(data) - 1 + len(indices) <= LARGEST_RANK and not is_encoded
            yield Hit(node, f"{math.prod(indices)} indices along axis {axis} of {list(data)}", mended)


@rule(
    Severity.ERROR,
    consequence="The sum is wrong, in 16 bits grossly, and nothing warns.",
    remedy="Fold the constant into the convolution's bias.",
    mended_by="fold_affine",
)
def convtranspose_add(scene: Scene) -> Iterator[Hit]:
    """A ConvTranspose with an Add of a constant per channel behind it: the HTP computes the pair wrongly."""
    for node in scene.live("ConvTranspose"):
        readers = [reader for reader in scene.readers.get(node.outputs[0], ()) if reader.op_type == "Add"]
        for reader in readers:
            constant = next((name for name in reader.inputs if name in scene.constant), None)
            if constant is not None and _is_per_channel(scene, node, constant):
                folds = scene.sole_reader(node.outputs[0]) is reader and node.input(1) in scene.constant
                yield Hit(node, f"Add {reader.label}", folds)


def _is_per_channel(scene: Scene, node: Node, constant: str) -> bool:
    result, shape = scene.shapes.get(node.outputs[0]), scene.shapes.get(constant)
    if result is None or shape is None or math.prod(shape) == 1:
        return False
    padded = (1,) * (len(result) - len(shape)) + shape
    return all(size == (result[axis] if axis == _CHANNELS else 1) for axis, size in enumerate(padded))


@rule(
    Severity.WARNING,
    consequence="The result is many steps of 16 bits off the CPU's.",
    remedy="Watch the agreement that the report gives; with 8-bit activations it is right.",
)
def coarse_in_16_bits(scene: Scene) -> Iterator[Hit]:
    """A linear Resize, or a MatMul of two activations, with 16-bit activations: the HTP computes it coarsely."""
    if scene.aim.precision.activation_bits != 16 or not scene.aim.precision.quantized:
        return
    for node in scene.live("Resize", "MatMul"):
        computed = all(name not in scene.constant for name in node.inputs[:2])
        linear = node.attributes.get("mode", "nearest") == "linear"
        if linear if node.op_type == "Resize" else computed:
            yield Hit(node)


@rule(
    Severity.ERROR,
    consequence="It stays an operator of its own, which the HTP was seen to compute many steps off, and whose scale "
    "16-bit activations refuse.",
    remedy="Export the model in evaluation mode, with constant parameters.",
    mended_by="fold_affine",
)
def unfolded_batchnorm(scene: Scene) -> Iterator[Hit]:
    """A BatchNormalization that was not folded into a convolution."""
    for node in scene.live("BatchNormalization"):
        training = bool(node.attributes.get("training_mode", 0))
        computed = any(name not in scene.constant for name in node.inputs[1:])
        why = "in training mode" if training else "with computed parameters" if computed else ""
        yield Hit(node, why, not why)


@rule(
    Severity.ERROR,
    consequence="Elements of the padding are counted or left out otherwise than stated, or hold garbage, and nothing "
    "warns; of a last window that lies in the padding alone, the HTP makes one element more than the CPU.",
    remedy="Pad the same on all sides, or write a Pad before it; leave ceil_mode out.",
)
def padded_pool(scene: Scene) -> Iterator[Hit]:
    """A pooling that the HTP computes wrongly at the border: LpPool with padding, AveragePool with padding that is not
    the same on all sides, and ceil_mode where the last window reaches beyond it."""
    for node in scene.live("LpPool", "AveragePool", "MaxPool"):
        why = _border(scene, node)
        if why:
            yield Hit(node, why)


def _border(scene: Scene, node: Node) -> str:
    """What is wrong at the border; empty: nothing."""
    kernel = node.attributes.get("kernel_shape", [])
    automatic = str(node.attributes.get("auto_pad", "NOTSET"))
    pads = np.array(node.attributes.get("pads") or [0] * (2 * len(kernel))).reshape(2, -1)
    if node.op_type == "LpPool":
        return "padded" if pads.any() or automatic.startswith("SAME") else ""
    if node.op_type == "AveragePool" and (automatic.startswith("SAME") or (pads != pads.flat[0]).any()):
        return f"pads {pads.reshape(-1).tolist()}" if automatic == "NOTSET" else automatic
    lengths = scene.shapes.get(node.input(0), ())[2:]
    if not node.attributes.get("ceil_mode", 0) or len(lengths) != len(kernel):
        return ""
    strides = np.array(node.attributes.get("strides") or [1] * len(kernel))
    dilations = np.array(node.attributes.get("dilations") or [1] * len(kernel))
    left = np.array(lengths) + pads.sum(axis=0) - (dilations * (np.array(kernel) - 1) + 1)
    last = -(-left // strides) * strides
    beyond = last > left if node.op_type == "AveragePool" else last >= np.array(lengths) + pads[0]
    return "ceil_mode" if beyond.any() else ""


@rule(
    Severity.ERROR,
    consequence="What is moved keeps the codes of its own encoding, is read in that of the result, and nothing warns.",
    remedy="Write a ScatterND, or Where with a constant mask.",
)
def scattered_elements(scene: Scene) -> Iterator[Hit]:
    """A ScatterElements, whose three encodings the HTP takes for one."""
    if scene.aim.precision.quantized:
        for node in scene.live("ScatterElements"):
            yield Hit(node, str(node.attributes.get("reduction", "none")))


@rule(
    Severity.ERROR,
    consequence="The result has next to nothing to do with the function, and nothing warns.",
    remedy="Choose 8-bit activations, with which it is right, or write a HardSigmoid as Mul, Add and Clip.",
)
def wrong_in_16_bits(scene: Scene) -> Iterator[Hit]:
    """A Log or HardSigmoid with 16-bit activations: the HTP computes another function."""
    if scene.aim.precision.quantized and scene.aim.precision.activation_bits == 16:
        for node in scene.live("Log", "HardSigmoid"):
            yield Hit(node)


@rule(
    Severity.WARNING,
    consequence="The HTP and the CPU each draw their own, in every run: their agreement says nothing of what follows.",
    remedy="Export the model in evaluation mode, or feed the noise as an input.",
)
def random_values(scene: Scene) -> Iterator[Hit]:
    """An operator that draws random numbers."""
    for node in scene.live(*sorted(RANDOM)):
        yield Hit(node)


@rule(
    Severity.WARNING,
    consequence="Where an input lies at a step, a rounding of its encoding takes the other side: single values differ "
    "grossly between float, CPU and HTP.",
    remedy="Sample with mode linear; let a function without steps take its place, or do this part after the model.",
)
def steep_function(scene: Scene) -> Iterator[Hit]:
    """A function with steps of quantized values: a GridSample of the nearest element, ThresholdedRelu, Floor, Ceil,
    Round."""
    if scene.aim.precision.quantized:
        for node in scene.live("GridSample", "ThresholdedRelu", "Floor", "Ceil", "Round"):
            if node.op_type != "GridSample" or node.attributes.get("mode", "linear") == "nearest":
                yield Hit(node)


@rule(
    Severity.NOTE,
    consequence="Where a CPU lacks VNNI, onnxruntime adds such products in 16 bits, and what is lost looks like a "
    "fault of the HTP.",
    remedy="Set session.x64quantprecision=1 in a session of your own.",
    mended_by="execute",
)
def saturating_reference(scene: Scene) -> Iterator[Hit]:
    """Unsigned 8-bit activations times signed 8-bit weights, which saturate in a CPU session with default settings."""
    precision = scene.aim.precision
    if precision.quantized and precision.activation_bits == precision.weight_bits == 8 and precision.per_channel:
        count = len(scene.live("Conv", "ConvTranspose", "Gemm"))
        if count:
            yield Hit(None, f"{count} nodes with weights")
