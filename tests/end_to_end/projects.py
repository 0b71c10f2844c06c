"""Projects that are built through the command line, as a subprocess."""

from __future__ import annotations

import dataclasses
import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from PIL import Image

import anfbuild

RECIPE = """\
defaults:
  - override /source: file
  - override /dataset: folder
  - override /task: text_detection
  - _self_
source: {path: models/mine.onnx, license: Apache-2.0}
dataset: {path: data, samples: 2}
evaluation: {samples: 2}
model:
  inputs: {x: {shape: [1, 3, 32, 32], scale: 0.00392156862745098}}
gates: {accuracy_drop: {max: 1.0}, htp_macs: {min: 0.0}, agreement_lsb: {max: 255}}
"""


TWO = """\
defaults:
  - override /dataset: folder
  - override /task: text_detection
  - _self_
dataset: {path: data, samples: 2}
evaluation: {samples: 2}
gates: {accuracy_drop: {max: 1.0}, htp_macs: {min: 0.0}, agreement_lsb: {max: 255}, latency_ms: {max: 25}}
components:
  left:
    source: {choice: file, path: models/mine.onnx, license: Apache-2.0}
    model: {inputs: {x: {shape: [1, 3, 32, 32], scale: 0.00392156862745098}}}
  right:
    source: {choice: file, path: models/other.onnx, license: MIT}
    model: {inputs: {x: {shape: [1, 3, 48, 48]}}}
    quantization: a16w8
    gates: {latency_ms: {max: 20}}
"""


SMALL = (
    "+recipe=ocr_detect",
    "dataset.size=160",
    "model.inputs.x.shape=[1,3,160,160]",
    "dataset.samples=2",
    "evaluation.samples=2",
)
"""The real detector at a size that builds in seconds."""


_FEW = ("dataset.samples=8", "evaluation.samples=8", "emulate.samples=2", "gates.accuracy_drop.max=1.0")
READ = ("+recipe=ocr_recognize", *_FEW)
SEARCH = (
    *("+recipe=text_retrieval", *_FEW, "model.inputs.input_ids.shape=[1,32]"),
    "model.inputs.attention_mask.shape=[1,32]",
)
"""The real recogniser and the real language model on few samples."""


@dataclasses.dataclass(frozen=True)
class Ran:
    """A call of anfbuild that has ended."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> dict[str, Any]:
        """What `--json` printed: one document and nothing else."""
        parsed: dict[str, Any] = json.loads(self.out)
        return parsed

    @property
    def steps_run(self) -> list[str]:
        """The steps that were not cached, from a `--json` document."""
        return [step["step"] for step in self.document["steps"] if not step["hit"]]


@dataclasses.dataclass(frozen=True)
class Project:
    """A folder in which anfbuild is called, and the store that it uses."""

    folder: Path
    store: Path

    def run(self, *arguments: str, prefix: Sequence[str] = (), **variables: str) -> Ran:
        """Call anfbuild; `variables` are added to its environment."""
        process = self.start(*arguments, prefix=prefix, **variables)
        out, err = process.communicate(timeout=600)
        return Ran(process.returncode, out, err)

    def start(self, *arguments: str, prefix: Sequence[str] = (), **variables: str) -> subprocess.Popen[str]:
        """Start anfbuild as the leader of a process group of its own."""
        root = str(Path(anfbuild.__file__).parents[1])
        path = [variables.pop("PYTHONPATH", ""), root]
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(filter(None, path)),
            "PYTHONIOENCODING": "utf-8",
            "ANFBUILD_CACHE": str(self.store),
            **variables,
        }
        return subprocess.Popen(
            [*prefix, sys.executable, "-m", "anfbuild", *arguments],
            cwd=self.folder,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            encoding="utf-8",
            start_new_session=True,
        )

    def stop_at(self, step: str, number: signal.Signals, *arguments: str) -> tuple[int, set[str], str]:
        """Call anfbuild and send the signal to its process group when `step` starts.

        Returns the exit code, the steps that had ended by then and what was said on stderr.
        """
        process = self.start(*arguments)
        assert process.stdout is not None
        ended = set()
        for line in process.stdout:
            name, *state = line.split()
            if state == ["..."] and name == step:
                break
            if state != ["..."]:
                ended.add(name)
        os.killpg(process.pid, number)
        _, err = process.communicate(timeout=60)
        return process.returncode, ended, err


def tiny_model(shape: Sequence[int | str] = (1, 3, 32, 32), op: str = "Conv") -> onnx.ModelProto:
    """A heat map out of one convolution; a name in `shape` is an open dimension."""
    weights = numpy_helper.from_array(np.full((1, 3, 3, 3), 0.1, np.float32), "w")
    nodes = [
        helper.make_node(op, ["x", "w"], ["y"], "conv", pads=[1, 1, 1, 1]),
        helper.make_node("Sigmoid", ["y"], ["z"], "sigmoid"),
    ]
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, list(shape))]
    outputs = [helper.make_tensor_value_info("z", TensorProto.FLOAT, [shape[0], 1, *shape[2:]])]
    graph = helper.make_graph(nodes, "tiny", inputs, outputs, [weights])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


def write_data(folder: Path) -> None:
    """Nine images with a word each, as truth.json says."""
    random = np.random.default_rng(1)
    folder.mkdir()
    for index in range(9):
        Image.fromarray(random.integers(0, 255, (40, 40, 3), np.uint8)).save(folder / f"{index}.png")
    quad = [[2, 2], [30, 2], [30, 12], [2, 12]]
    truth = {f"{index}.png": {"quads": [quad]} for index in range(9)}
    (folder / "truth.json").write_text(json.dumps(truth), encoding="utf-8")


def write_tiny(folder: Path) -> None:
    """A project whose recipe `mine` builds a tiny model in a second or two."""
    for name in ("models", "recipes"):
        (folder / name).mkdir(parents=True)
    onnx.save(tiny_model(), folder / "models" / "mine.onnx")
    write_data(folder / "data")
    (folder / "recipes" / "mine.yaml").write_text(RECIPE, encoding="utf-8")


def write_two(folder: Path) -> None:
    """A project whose recipe `two` builds two tiny models, `left` and `right`, into one package."""
    write_tiny(folder)
    onnx.save(tiny_model((1, 3, 48, 48)), folder / "models" / "other.onnx")
    (folder / "recipes" / "two.yaml").write_text(TWO, encoding="utf-8")
