"""What kind of work an operator is, for the cost model: which engine of the HTP does it, and what bounds it.

The HTP has a matrix engine, vector units and a DMA. Dense products go to the first; everything else is bound by the
bytes that the vector units or the DMA move.
"""

from __future__ import annotations

import enum


class Kind(enum.Enum):
    """The engine that does a node's work."""

    MATRIX = "matrix"
    """Dense products on the matrix engine: bound by its rate or by the stream of weights."""
    DEPTHWISE = "depthwise"
    """Convolution with one channel a group: the matrix engine has nothing to share, the vector units do it."""
    POINTWISE = "pointwise"
    """Element by element: fused into the node that made its only operand, else bound by bytes."""
    VECTOR = "vector"
    """Reductions, pools and other passes over the values: bound by bytes."""
    MOVEMENT = "movement"
    """Changes the order of values, or is not known here: bound by bytes, at a lower rate."""
    VIEW = "view"
    """Gives the same bytes another shape: free."""


_MATRIX = {"Conv", "ConvTranspose", "Gemm", "MatMul"}
_POINTWISE = {
    *("Abs", "Add", "And", "Ceil", "Clip", "Cos", "Div", "Elu", "Equal", "Erf", "Exp", "Floor", "Gelu", "Greater"),
    *("GreaterOrEqual", "HardSigmoid", "HardSwish", "LeakyRelu", "Less", "LessOrEqual", "Log", "Max", "Min", "Mish"),
    *(
        "Mod",
        "Mul",
        "Neg",
        "Not",
        "Or",
        "PRelu",
        "Pow",
        "Reciprocal",
        "Relu",
        "Round",
        "Selu",
        "Sigmoid",
        "Sign",
        "Sin",
    ),
    *("Softplus", "Softsign", "Sqrt", "Sub", "Tanh", "Where", "Xor", "BatchNormalization"),
}
_VECTOR = {
    *("AveragePool", "GlobalAveragePool", "GlobalMaxPool", "LpPool", "MaxPool"),
    *("ArgMax", "ArgMin", "ReduceL1", "ReduceL2", "ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd", "ReduceSum"),
    *("Concat", "Split", "Resize", "Pad"),
}
_MOVEMENT = {
    *("Transpose", "DepthToSpace", "SpaceToDepth", "Slice", "Gather", "GatherElements", "GatherND", "ScatterND"),
    *("ScatterElements", "Expand", "Tile", "TopK", "CumSum", "GridSample"),
    *("Softmax", "LogSoftmax", "LayerNormalization", "InstanceNormalization", "GroupNormalization"),
    *("LpNormalization", "RMSNormalization"),
}
_VIEW = {"Reshape", "Flatten", "Squeeze", "Unsqueeze", "Identity", "Dropout", "Cast"}
_LOOKUP = {"Gather", "GatherElements", "GatherND"}

_KINDS = {
    **dict.fromkeys(_MATRIX, Kind.MATRIX),
    **dict.fromkeys(_POINTWISE, Kind.POINTWISE),
    **dict.fromkeys(_VECTOR, Kind.VECTOR),
    **dict.fromkeys(_MOVEMENT, Kind.MOVEMENT),
    **dict.fromkeys(_VIEW, Kind.VIEW),
}


def kind_of(op_type: str, domain: str = "") -> Kind | None:
    """The kind of an operator, or None where the cost model has no rule for it."""
    return _KINDS.get(op_type) if domain in ("", "ai.onnx") else None


def reads_whole_constant(op_type: str) -> bool:
    """False for look-ups, that read of a constant table only the rows they are asked for."""
    return op_type not in _LOOKUP
