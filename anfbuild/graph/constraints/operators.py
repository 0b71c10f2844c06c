"""Operators that the HTP does not take, or takes and fails on."""

from __future__ import annotations

from collections.abc import Iterator

import onnx

from anfbuild.graph.constraints.rule import Hit, Severity, rule
from anfbuild.graph.constraints.scene import Node, Scene
from anfbuild.graph.constraints.support import verdict
from anfbuild.graph.edit import subgraphs

HEAVY = {"Conv", "ConvTranspose", "Gemm", "MatMul", "Einsum", "LSTM", "GRU", "RNN"}
"""Operators that a model spends its time in."""
_GOES = {"Identity": "remove_identity", "Dropout": "remove_identity", "Upsample": "upgrade_opset"}
"""Operators of which a pass leaves nothing, so that nobody need be told."""
_CUT = "Cut the model there with model.outputs, or export it with operators that the HTP takes (docs/supported-ops.md)."


@rule(
    Severity.WARNING,
    consequence="It runs on the CPU: values cross over and back there, and each crossing ends an execution block.",
    remedy=_CUT,
)
def cpu_operator(scene: Scene) -> Iterator[Hit]:
    """An operator that the HTP does not take in this form and precision."""
    for node in scene.nodes:
        if node.domain != "" or not scene.works(node) or goes(scene, node):
            continue
        unit, reason = verdict(scene, node)
        if unit == "CPU" and onnx.defs.has(node.op_type):
            heavy = [other.label for other in scene.neighbours(node) if other.op_type in HEAVY]
            beside = f"; beside {', '.join(heavy[:3])}" if heavy else ""
            yield Hit(node, f"{reason}{beside}")


@rule(
    Severity.ERROR,
    consequence="It does not fall to the CPU: the compiler ends with an error for the whole model.",
    remedy=_CUT,
)
def refused_operator(scene: Scene) -> Iterator[Hit]:
    """An operator that the compiler fails on in this form and precision."""
    for node in scene.nodes:
        if node.domain == "" and scene.works(node) and not goes(scene, node):
            unit, reason = verdict(scene, node)
            if unit == "refused":
                yield Hit(node, reason)


@rule(
    Severity.ERROR,
    consequence="Neither the HTP nor the reference on the CPU can run it: the build stops.",
    remedy="Export the model with standard operators, or cut it before this node with model.outputs.",
)
def unknown_operator(scene: Scene) -> Iterator[Hit]:
    """An operator that is none of ONNX's."""
    for node in scene.nodes:
        if node.domain == "com.microsoft" and node.op_type in ("QuantizeLinear", "DequantizeLinear"):
            continue  # those of 16 bits before opset 21; `quantized_already` tells of them
        if scene.works(node) and not onnx.defs.has(node.op_type, node.domain):
            yield Hit(node, f"domain {node.domain!r}" if node.domain else f"not in opset {scene.opset}")


@rule(
    Severity.ERROR,
    consequence="The build stops: onnx's checker refuses the model.",
    remedy="Export the model again, or cut it before this node with model.outputs.",
)
def invalid_node(scene: Scene) -> Iterator[Hit]:
    """A node that its operator does not allow: inputs or attributes are missing, too many, or of another kind."""
    context = onnx.checker.C.CheckerContext()
    context.ir_version = scene.structure.ir_version
    context.opset_imports = {entry.domain: entry.version for entry in scene.structure.opset_import}
    for node in scene.nodes:
        known = onnx.defs.has(node.op_type, node.domain) and node.proto.domain in context.opset_imports
        if known and scene.works(node) and not any(subgraphs(node.proto)):  # which see the names around them
            try:
                onnx.checker.check_node(node.proto, context)
            except onnx.checker.ValidationError as error:
                yield Hit(node, str(error).splitlines()[0])


@rule(
    Severity.ERROR,
    consequence="The compiler claims it and then fails (Failed to finalize, MEM_ALLOC 1002); no fallback rescues that.",
    remedy="Export the model without it, or cut that part of the model with model.outputs.",
    mended_by="unroll_recurrent",
)
def recurrent(scene: Scene) -> Iterator[Hit]:
    """A recurrent layer, LSTM or GRU, which the HTP accepts and then cannot prepare; unrolled it runs."""
    for node in scene.live("LSTM", "GRU"):
        yield Hit(node, *_unrolls(scene, node))


def _unrolls(scene: Scene, node: Node) -> tuple[str, bool]:
    """What the layer is like, and whether it can be unrolled."""
    shape = scene.shapes.get(node.input(0))
    if shape is None or len(shape) != 3:
        return "its input has no static shape", False
    steps = shape[1] if node.attributes.get("layout", 0) else shape[0]
    doubts = {
        "peepholes": bool(node.input(7)) and node.op_type == "LSTM",
        "coupled gates": bool(node.attributes.get("input_forget", 0)),
        "computed weights": any(node.input(i) and node.input(i) not in scene.constant for i in (1, 2, 3)),
        "computed lengths of sequences": bool(node.input(4)) and node.input(4) not in scene.constant,
    }
    found = [doubt for doubt, is_so in doubts.items() if is_so]
    return f"{steps} steps{', ' if found else ''}{', '.join(found)}", not found


@rule(
    Severity.ERROR,
    consequence="It could run for ever, and nothing could interrupt it: the build stops.",
    remedy="Give the loop a fixed number of turns, or cut that part of the model with model.outputs.",
)
def unbounded_loop(scene: Scene) -> Iterator[Hit]:
    """A Loop without a fixed number of turns."""
    for node in scene.live("Loop"):
        if not node.input(0) or node.input(0) not in scene.constant:
            yield Hit(node)


@rule(
    Severity.ERROR,
    consequence="It does not fall to the CPU: the compiler ends with an error for the whole model.",
    remedy="Stride in a layer of its own. With 8-bit activations a convolution that is not depthwise may have both.",
)
def dilated_stride(scene: Scene) -> Iterator[Hit]:
    """A convolution with dilation and strides: the compiler refuses it with 16-bit activations, and a depthwise one in
    all precisions, unless both are 2."""
    for node in scene.live("Conv") if scene.aim.precision.quantized else ():
        dilation = max(node.attributes.get("dilations", [1]))
        stride = max(node.attributes.get("strides", [1]))
        if dilation == 1 or stride == 1:
            continue
        group = node.attributes.get("group", 1)
        channels = (*scene.shapes.get(node.input(0), ()), 0, 0)[1]
        is_refused = (dilation, stride) != (2, 2) if group == channels else scene.aim.precision.activation_bits == 16
        if is_refused:
            yield Hit(node, f"dilation {dilation}, stride {stride}, group {group}")


@rule(
    Severity.WARNING,
    consequence="It runs on the CPU: each one is a round trip from the HTP and back.",
    remedy="Export GELU as one operator, or use its tanh form.",
    mended_by="fuse_gelu",
)
def written_out_gelu(scene: Scene) -> Iterator[Hit]:
    """Erf, which the HTP lacks, as in a GELU that is written out."""
    for node in scene.live("Erf"):
        yield Hit(node, "", _is_gelu(scene, node))


def _is_gelu(scene: Scene, node: Node) -> bool:
    """Whether the Erf stands in x (1 + erf(x / c)): a scaled value before it, an Add of a constant, a Mul behind."""
    before = scene.producers.get(node.input(0))
    add = scene.sole_reader(node.outputs[0])
    if before is None or before.op_type not in ("Div", "Mul") or add is None or add.op_type != "Add":
        return False
    behind = scene.sole_reader(add.outputs[0])
    return behind is not None and behind.op_type == "Mul" and any(name in scene.constant for name in add.inputs)


@rule(
    Severity.WARNING,
    consequence="It runs on the CPU unless its equation is one of the few that the HTP takes.",
    remedy="Write it as Transpose, Reshape and MatMul.",
    mended_by="lower_einsum",
)
def einsum(scene: Scene) -> Iterator[Hit]:
    """Einsum, of which the HTP takes some equations only."""
    for node in scene.live("Einsum"):
        equation = str(node.attributes.get("equation", "")).replace(" ", "")
        operands = equation.partition("->")[0].split(",")
        plain = "..." not in equation and all(len(set(letters)) == len(letters) for letters in operands)
        static = all(name in scene.shapes for name in node.inputs)
        yield Hit(node, equation, plain and static and len(operands) <= 2)


@rule(
    Severity.WARNING,
    consequence="It runs on the CPU.",
    remedy="Write it as Split and Mul.",
    mended_by="lower_reduce_prod",
)
def reduce_prod(scene: Scene) -> Iterator[Hit]:
    """ReduceProd, which the HTP lacks."""
    for node in scene.live("ReduceProd"):
        axes = not node.input(1) or node.input(1) in scene.constant
        yield Hit(node, "", axes and node.input(0) in scene.shapes)


def goes(scene: Scene, node: Node) -> str | None:
    """The pass that leaves nothing of the node, so that the compiler never sees it. Rules with a pass ran before."""
    if node.op_type in ("LSTM", "GRU") and node.domain == "":
        return "unroll_recurrent"  # or the build stops: a rule of its own says so
    return scene.mended.get(node.position) or (_GOES.get(node.op_type) if node.domain == "" else None)
