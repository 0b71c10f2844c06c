"""Where the HTP emulator and the CPU differ: `python benchmarks/agreement.py [--size 480]`.

Every activation of the QDQ model is made an output and taken from the emulator; then the CPU computes each node
alone from the emulator's own inputs to it, so that no difference is handed on. A second table compares the whole
network, for anfbuild's quantization and for onnxruntime's own for QNN. All differences are in steps (LSB) of the
compared tensor's own scale.
"""

from __future__ import annotations

import argparse
import collections
import dataclasses
import math
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx
from onnx import numpy_helper
from onnxruntime.quantization import CalibrationDataReader, quantize
from onnxruntime.quantization.execution_providers.qnn import get_qnn_qdq_config, qnn_preprocess_model
from parts import load_feeds
from project import Project, table

from anfbuild import graph
from anfbuild.qnn.compile import compile_context
from anfbuild.qnn.emulate import emulate
from anfbuild.qnn.options import Options

Feeds = dict[str, np.ndarray]


class QdqModel:
    """A QDQ model and the parts of it between two quantized activations."""

    def __init__(self, model: onnx.ModelProto) -> None:
        self.model = model
        self._constants = {tensor.name: tensor for tensor in model.graph.initializer}
        self._producers = {name: node for node in model.graph.node for name in node.output}
        self._shapes = graph.value_shapes(model)
        self.activations = {
            node.output[0]: node
            for node in model.graph.node
            if node.op_type == "DequantizeLinear" and node.input[0] not in self._constants
        }

    def scale(self, activation: str) -> float:
        return float(numpy_helper.to_array(self._constants[self.activations[activation].input[1]]))

    def exposed(self) -> bytes:
        """The model with every activation as an output."""
        model = onnx.ModelProto()
        model.CopyFrom(self.model)
        present = {value.name for value in model.graph.output}
        model.graph.output.extend(self._value(name) for name in self.activations if name not in present)
        return graph.serialize(model)

    def cones(self) -> Iterator[tuple[str, list[str], onnx.ModelProto]]:
        """For each activation that is computed: its name, the operators behind it and a model of these alone, whose
        inputs are the nearest activations."""
        for activation in self.activations:
            nodes, inputs = self._cone(activation)
            operators = [node.op_type for node in nodes if node.op_type not in ("QuantizeLinear", "DequantizeLinear")]
            if not operators:
                continue  # the model's own input
            used = {name for node in nodes for name in node.input}
            part = onnx.helper.make_graph(
                nodes,
                "part",
                [self._value(name) for name in inputs],
                [self._value(activation)],
                [tensor for name, tensor in self._constants.items() if name in used],
            )
            model = onnx.helper.make_model(part, opset_imports=self.model.opset_import)
            model.ir_version = self.model.ir_version
            yield activation, operators, model

    def _cone(self, activation: str) -> tuple[list[onnx.NodeProto], list[str]]:
        """The nodes that compute `activation` from other activations or the model's inputs, and the names of these."""
        wanted, inputs = [activation], list[str]()
        names = set[str]()
        while wanted:
            name = wanted.pop()
            if name in self._constants or not name:
                continue
            if name not in self._producers or (name in self.activations and name != activation):
                inputs.append(name)
                continue
            names.add(name)
            wanted += self._producers[name].input
        nodes = [node for node in self.model.graph.node if names & set(node.output)]
        return nodes, sorted(set(inputs))

    def _value(self, name: str) -> onnx.ValueInfoProto:
        return onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, self._shapes[name])


@dataclasses.dataclass(frozen=True)
class Difference:
    """Of two arrays, in steps."""

    values: int
    off: int
    """Values that differ by half a step or more: by one step at least, since both lie on the same grid."""
    greatest: float
    p99: float
    rms: float

    @classmethod
    def of(cls, one: np.ndarray, other: np.ndarray, scale: float) -> Difference:
        steps = np.abs(one.astype(np.float64) - other) / scale
        rms = math.sqrt(float(np.square(steps).mean()))
        return cls(steps.size, int((steps >= 0.5).sum()), float(steps.max()), float(np.quantile(steps, 0.99)), rms)


def run_emulator(model: bytes, feeds: Feeds, options: Options) -> Feeds:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "context"
        compiled = compile_context(model, options, folder)
        if compiled.partitions != 1:
            raise SystemExit(f"the model falls into {compiled.partitions} parts: this is no comparison of the HTP")
        return emulate(folder, [feeds], options).outputs[0]


def node_table(model: QdqModel, feeds: Feeds, options: Options) -> str:
    emulated = {**feeds, **run_emulator(model.exposed(), feeds, options)}
    found: dict[str, list[Difference]] = collections.defaultdict(list)
    for activation, operators, part in model.cones():
        session = graph.Session(part)
        recomputed = session.run({name: emulated[name] for name in session.inputs})[activation]
        difference = Difference.of(recomputed, emulated[activation], model.scale(activation))
        found["+".join(operators)].append(difference)
    found["**all**"] = [difference for differences in found.values() for difference in differences]
    rows = [
        [
            operators,
            str(len(differences)),
            f"{max(difference.greatest for difference in differences):.0f}",
            f"{sum(difference.off for difference in differences) / sum(d.values for d in differences):.4%}",
        ]
        for operators, differences in found.items()
    ]
    return table(["operator", "nodes", "greatest difference (LSB)", "values off by one step or more"], rows)


def network_row(name: str, model: onnx.ModelProto, feeds: Feeds, options: Options) -> list[str]:
    qdq = QdqModel(model)
    data = graph.serialize(model)
    (output,) = (value.name for value in model.graph.output)
    reference, emulated = graph.Session(data).run(feeds)[output], run_emulator(data, feeds, options)[output]
    found = Difference.of(reference, emulated, qdq.scale(output))
    noise = float(np.square(reference.astype(np.float64) - emulated).sum())
    sqnr = 10 * math.log10(float(np.square(reference, dtype=np.float64).sum()) / noise) if noise else math.inf
    return [
        name,
        f"{found.greatest:.0f}",
        f"{found.p99:.0f}",
        f"{found.rms:.2f}",
        f"{found.off / found.values:.3%}",
        f"{sqnr:.1f}",
    ]


class Samples(CalibrationDataReader):  # type: ignore[misc]  # onnxruntime has no type hints
    """Feeds, one after another."""

    def __init__(self, feeds: list[Feeds]) -> None:
        self._feeds = iter(feeds)

    def get_next(self) -> Feeds | None:
        return next(self._feeds, None)


def onnxruntime_default(model: onnx.ModelProto, feeds: list[Feeds], folder: Path) -> onnx.ModelProto:
    """The float model quantized as onnxruntime does for QNN by default: 8 bits, minimum and maximum."""
    source, prepared, result = (folder / f"{name}.onnx" for name in ("source", "prepared", "result"))
    graph.save(model, source)
    if qnn_preprocess_model(source, prepared):
        source = prepared
    quantize(source, result, get_qnn_qdq_config(source, Samples(feeds)))
    return onnx.load(result)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", type=int, default=480)
    with tempfile.TemporaryDirectory(prefix="anfbuild-benchmark-") as name:
        root = Path(name).resolve()
        project = Project(root / "project", parser.parse_args().size)
        project.folder.mkdir()
        project.build("goal=quantize")
        config = project.recipe().config
        target = config["target"]
        options = Options(soc_model=target["soc_model"], arch=target["arch"], vtcm_mb=target["vtcm_mb"])
        samples = project.export("dataset", root)
        calibration, evaluation = (load_feeds(samples / split, config) for split in ("calibration", "evaluation"))
        ours = graph.load(project.export("quantize", root) / "model.onnx")
        source = graph.load(project.export("condition", root) / "model.onnx")
        print("Each node alone, recomputed from the emulator's own inputs to it:\n")
        print(node_table(QdqModel(ours), evaluation[0], options), flush=True)
        peer = onnxruntime_default(source, calibration, root)
        rows = [
            network_row("anfbuild, as the recipe says", ours, evaluation[0], options),
            network_row("onnxruntime's default for QNN", peer, evaluation[0], options),
        ]
        print("The whole network, emulator against CPU, its one output:\n")
        print(table(["quantization", "max (LSB)", "99 % within (LSB)", "rms (LSB)", "values off", "SQNR (dB)"], rows))


if __name__ == "__main__":
    main()
