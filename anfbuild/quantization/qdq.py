"""Writes a QDQ model: the float graph with QuantizeLinear -> DequantizeLinear after every quantized activation.

onnxruntime and its QNN provider read integer operators out of it: a node whose inputs come from DequantizeLinear and
whose outputs go to QuantizeLinear. Graph inputs and outputs stay float.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from anfbuild.errors import StepError
from anfbuild.quantization.encodings import Encoding, Encodings
from anfbuild.quantization.parameters import parameter_encodings
from anfbuild.quantization.schemes import Scheme
from anfbuild.quantization.topology import Topology

_WIDE_FROM_OPSET = 21
"""ONNX's own QuantizeLinear knows 16-bit integers from this opset on; below it com.microsoft's takes its place."""
_PER_CHANNEL_FROM_OPSET = 13
_MICROSOFT = "com.microsoft"


def write(
    model: onnx.ModelProto, topology: Topology, activations: Mapping[str, Encoding], scheme: Scheme
) -> tuple[onnx.ModelProto, Encodings]:
    """The QDQ model of `model`, and all its encodings. `activations` has one for every activation and every constant
    that an activation's data come from.

    Raises StepError when the opset is too old for the scheme.
    """
    writer = _Writer(model, topology, dict(activations), scheme)
    return writer.write()


class _Writer:
    def __init__(
        self, model: onnx.ModelProto, topology: Topology, activations: dict[str, Encoding], scheme: Scheme
    ) -> None:
        self._source = model
        self._topology = topology
        self._activations = activations
        self._scheme = scheme
        self._opset = next(o.version for o in model.opset_import if o.domain in ("", "ai.onnx"))
        if self._opset < _PER_CHANNEL_FROM_OPSET:
            raise StepError(
                f"the model has opset {self._opset}, quantization needs {_PER_CHANNEL_FROM_OPSET} or newer",
                remedy="Convert the model to opset 17 or newer first.",
            )
        wide = 16 in (scheme.activation_bits, scheme.weight_bits) and self._opset < _WIDE_FROM_OPSET
        self._domain = _MICROSOFT if wide else ""
        self._names = {*topology.producers, *topology.constants, *topology.activations}
        self._names |= {node.name for node in model.graph.node}
        self._nodes: list[onnx.NodeProto] = []
        self._initializers: list[TensorProto] = []
        self._values: list[onnx.ValueInfoProto] = []
        self._dequantized: dict[str, str] = {}
        self._parameters: dict[str, Encoding] = {}
        self._parameter_outputs: dict[tuple[str, Encoding], str] = {}

    def write(self) -> tuple[onnx.ModelProto, Encodings]:
        graph_inputs = {value.name for value in self._source.graph.input}
        graph_outputs = {value.name for value in self._source.graph.output}
        for name in self._topology.activations:
            if name in graph_inputs:
                self._activation(name, name, self._unique(f"{name}_DequantizeLinear_Output"))
        for node in self._source.graph.node:
            copy = onnx.NodeProto()
            copy.CopyFrom(node)
            self._read_quantized(node, copy)
            self._nodes.append(copy)
            for index, name in enumerate(node.output):
                if name not in self._topology.activations:
                    continue
                if name in graph_outputs:
                    copy.output[index] = self._unique(f"{name}_QuantizeLinear_Input")
                    self._activation(name, copy.output[index], name)
                else:
                    self._activation(name, name, self._unique(f"{name}_DequantizeLinear_Output"))
        return self._model(), Encodings(
            {name: self._activations[name] for name in self._topology.activations}, self._parameters
        )

    def _read_quantized(self, node: onnx.NodeProto, copy: onnx.NodeProto) -> None:
        parameters = parameter_encodings(node, self._topology, self._activations, self._scheme)
        for index, name in self._topology.data_inputs(node):
            if index in parameters:
                copy.input[index] = self._parameter(name, parameters[index])
            else:
                copy.input[index] = self._dequantized[name]

    def _activation(self, tensor: str, source: str, output: str) -> None:
        """Q -> DQ from the value `source` to the value `output`, with the encoding of `tensor`."""
        encoding = self._activations[tensor]
        shape = self._topology.activations[tensor]
        quantized = self._unique(f"{tensor}_QuantizeLinear_Output")
        scale, zero_point = self._scale_and_zero_point(tensor, encoding)
        self._nodes.append(
            helper.make_node(
                "QuantizeLinear",
                [source, scale, zero_point],
                [quantized],
                name=self._unique(f"{tensor}_QuantizeLinear"),
                domain=self._domain,
            )
        )
        self._dequantize(tensor, [quantized, scale, zero_point], output, encoding)
        self._dequantized[tensor] = output
        self._values.append(helper.make_tensor_value_info(quantized, _element_type(encoding), shape))
        for value in dict.fromkeys((source, output)):
            self._values.append(helper.make_tensor_value_info(value, TensorProto.FLOAT, shape))

    def _parameter(self, name: str, encoding: Encoding) -> str:
        """The float output of the DequantizeLinear behind the integers of a constant, made once for each encoding."""
        key = (name, encoding)
        if key not in self._parameter_outputs:
            values = self._topology.constants[name]
            integers = self._unique(f"{name}_quantized")
            self._initializers.append(numpy_helper.from_array(encoding.quantize(values), integers))
            scale, zero_point = self._scale_and_zero_point(name, encoding)
            output = self._unique(f"{name}_DequantizeLinear_Output")
            self._dequantize(name, [integers, scale, zero_point], output, encoding)
            self._values.append(helper.make_tensor_value_info(output, TensorProto.FLOAT, values.shape))
            self._parameter_outputs[key] = output
            self._parameters[integers if name in self._parameters else name] = encoding
        return self._parameter_outputs[key]

    def _dequantize(self, tensor: str, inputs: list[str], output: str, encoding: Encoding) -> None:
        node = helper.make_node(
            "DequantizeLinear",
            inputs,
            [output],
            name=self._unique(f"{tensor}_DequantizeLinear"),
            domain=self._domain,
        )
        if encoding.axis is not None:
            node.attribute.append(helper.make_attribute("axis", encoding.axis))
        self._nodes.append(node)

    def _scale_and_zero_point(self, tensor: str, encoding: Encoding) -> tuple[str, str]:
        shape = () if encoding.axis is None else (-1,)
        names = self._unique(f"{tensor}_scale"), self._unique(f"{tensor}_zero_point")
        arrays = np.array(encoding.scale, np.float32), np.array(encoding.zero_point, encoding.dtype)
        for name, array in zip(names, arrays, strict=True):
            self._initializers.append(numpy_helper.from_array(array.reshape(shape), name))
        return names

    def _unique(self, wanted: str) -> str:
        name, number = wanted, 1
        while name in self._names:
            number += 1
            name = f"{wanted}_{number}"
        self._names.add(name)
        return name

    def _model(self) -> onnx.ModelProto:
        model = onnx.ModelProto()
        model.CopyFrom(self._source)
        graph = model.graph
        del graph.node[:]
        graph.node.extend(self._nodes)
        read = {name for node in self._nodes for name in _reads(node)} | {value.name for value in graph.output}
        kept = [tensor for tensor in graph.initializer if tensor.name in read]
        del graph.initializer[:]
        graph.initializer.extend([*kept, *self._initializers])
        inputs = [value for value in graph.input if value.name not in self._topology.constants or value.name in read]
        del graph.input[:]
        graph.input.extend(inputs)
        declared = {value.name for value in (*graph.input, *graph.output)}
        values = {value.name: value for value in (*graph.value_info, *self._values)}
        produced = {name for node in self._nodes for name in node.output}
        del graph.value_info[:]
        graph.value_info.extend(values[name] for name in sorted(produced & set(values) - declared))
        if self._domain and all(o.domain != self._domain for o in model.opset_import):
            model.opset_import.append(helper.make_opsetid(self._domain, 1))
        return model


def _reads(node: onnx.NodeProto) -> set[str]:
    names = set(node.input)
    for attribute in node.attribute:
        for graph in [*([attribute.g] if attribute.HasField("g") else []), *attribute.graphs]:
            for inner in graph.node:
                names |= _reads(inner)
    return names


def _element_type(encoding: Encoding) -> int:
    return helper.np_dtype_to_tensor_dtype(np.dtype(encoding.dtype))
