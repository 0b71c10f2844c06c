"""What it takes to convert a model of more than 2 GB: `python benchmarks/large_model.py [--matrices 12]`.

Makes a model of matrices of 268 MB, with its data beside it, and runs the convert step on it in a process of its own.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from onnx import TensorProto, helper
from project import table

SIZE = 8192


def make(folder: Path, matrices: int) -> None:
    """What the fetch step leaves: every second matrix is transposed in the graph, as PyTorch's exporter does it."""
    (folder / "model").mkdir(parents=True)
    block = (np.random.default_rng(0).standard_normal((SIZE, SIZE)) * 0.01).astype(np.float32).tobytes()
    nodes, weights, value = [], [], "x"
    with (folder / "model" / "weights.bin").open("wb") as file:
        for number in range(matrices):
            weight = f"w{number}"
            tensor = TensorProto(name=weight, data_type=TensorProto.FLOAT, dims=[SIZE, SIZE])
            tensor.data_location = TensorProto.EXTERNAL
            for key, text in (("location", "weights.bin"), ("offset", str(file.tell())), ("length", str(len(block)))):
                tensor.external_data.add(key=key, value=text)
            file.write(block)
            weights.append(tensor)
            if number % 2:
                nodes.append(helper.make_node("Transpose", [weight], [f"{weight}_turned"], perm=[1, 0]))
                weight = f"{weight}_turned"
            nodes.append(helper.make_node("MatMul", [value, weight], [f"h{number}"], f"product_{number}"))
            value = f"h{number}"
    nodes.append(helper.make_node("Relu", [value], ["y"]))
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["N", SIZE]) for name in "xy"]
    graph = helper.make_graph(nodes, "large", ends[:1], ends[1:], weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    (folder / "model" / "model.onnx").write_bytes(model.SerializeToString())
    (folder / "source.json").write_text(json.dumps({"entry": "model/model.onnx"}))


def convert(folder: Path) -> None:
    """Run the step; print seconds and the peak of memory in bytes."""
    from anfbuild.engine.step import Job
    from anfbuild.steps import GRAPH

    step, started = GRAPH["convert"], time.perf_counter()
    output = folder / "output"
    output.mkdir()
    config = step.config(shapes={"x": [1, SIZE]}, dtypes={"x": "float32"}, module=None, outputs=None, strict=False)
    step.run(Job(config, {"fetch": folder}, output, output, lambda *_: None))
    print(time.perf_counter() - started, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--matrices", type=int, default=12)
    parser.add_argument("--folder", type=Path)
    arguments = parser.parse_args()
    if arguments.folder:
        convert(arguments.folder)
        return
    with tempfile.TemporaryDirectory(prefix="anfbuild-large-") as name:
        make(Path(name), arguments.matrices)
        command = [sys.executable, __file__, "--folder", name]
        seconds, peak = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    weights = arguments.matrices * SIZE**2 * 4
    print(
        table(
            ["convert", "", "target"],
            [
                ["weights (GB)", f"{weights / 1e9:.2f}", ""],
                ["peak of memory (GB)", f"{float(peak) / 1e9:.2f}", "12"],
                ["peak over weights", f"**{float(peak) / weights:.2f}**", "3"],
                ["seconds", f"{float(seconds):.0f}", ""],
            ],
        )
    )


if __name__ == "__main__":
    main()
