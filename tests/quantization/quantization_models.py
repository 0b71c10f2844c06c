"""Small float models for the tests of this room."""

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


def model(
    nodes: list[onnx.NodeProto],
    inputs: dict[str, list[int]],
    outputs: list[str],
    constants: dict[str, np.ndarray] | None = None,
    opset: int = 17,
) -> onnx.ModelProto:
    """A checked float32 model with inferred shapes; node names are those of their first outputs."""
    for node in nodes:
        node.name = f"node_{node.output[0]}"
    graph = helper.make_graph(
        nodes,
        "test",
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in inputs.items()],
        [helper.make_tensor_value_info(name, TensorProto.UNDEFINED, None) for name in outputs],
        [numpy_helper.from_array(np.asarray(array), name) for name, array in (constants or {}).items()],
    )
    for output in graph.output:
        output.ClearField("type")
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
    inferred = onnx.shape_inference.infer_shapes(made)
    onnx.checker.check_model(inferred, full_check=True)
    return inferred


def node(op_type: str, inputs: list[str], outputs: list[str], **attributes: object) -> onnx.NodeProto:
    return helper.make_node(op_type, inputs, outputs, **attributes)


def small_network(opset: int = 17) -> onnx.ModelProto:
    """Conv-Relu, depthwise Conv, hard swish by hand, MaxPool, Resize, ConvTranspose, Gemm, Sigmoid: 1x3x16x16 in."""
    random = np.random.default_rng(0)

    def weights(*shape: int) -> np.ndarray:
        return (random.standard_normal(shape) * 0.4).astype(np.float32)

    nodes = [
        node("Conv", ["x", "w1", "b1"], ["c1"], pads=[1, 1, 1, 1]),
        node("Relu", ["c1"], ["r1"]),
        node("Conv", ["r1", "w2"], ["c2"], pads=[1, 1, 1, 1], group=8),
        node("Add", ["c2", "three"], ["a2"]),
        node("Clip", ["a2", "zero", "six"], ["h2"]),
        node("Mul", ["c2", "h2"], ["m2"]),
        node("Div", ["m2", "six"], ["d2"]),
        node("MaxPool", ["d2"], ["p2"], kernel_shape=[2, 2], strides=[2, 2]),
        node("ConvTranspose", ["p2", "w3", "b3"], ["t3"], strides=[2, 2]),
        node("Concat", ["t3", "r1"], ["j3"], axis=1),
        node("GlobalAveragePool", ["j3"], ["g3"]),
        node("Flatten", ["g3"], ["f3"]),
        node("Gemm", ["f3", "w4", "b4"], ["y4"], transB=1),
        node("Sigmoid", ["y4"], ["y"]),
    ]
    constants = {
        **{"w1": weights(8, 3, 3, 3), "b1": weights(8), "w2": weights(8, 1, 3, 3)},
        **{"w3": weights(8, 4, 2, 2), "b3": weights(4), "w4": weights(5, 12), "b4": weights(5)},
        **{"zero": np.float32(0), "three": np.float32(3), "six": np.float32(6)},
    }
    return model(nodes, {"x": [1, 3, 16, 16]}, ["y"], constants, opset)


def small_samples(count: int, scale: float = 1.0) -> list[tuple[str, dict[str, np.ndarray]]]:
    """Samples for `small_network`."""
    return [
        (f"sample{i}", {"x": (np.random.default_rng(i).standard_normal((1, 3, 16, 16)) * scale).astype(np.float32)})
        for i in range(count)
    ]
