"""Which code and tools are in which step's key, and that who, where and when are in none."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

import anfbuild
from anfbuild.engine.code import CodeIndex
from anfbuild.engine.memo import Memo
from anfbuild.steps import GRAPH

ROOT = Path(anfbuild.__file__).parents[1]
CHECKOUT = Path(__file__).parents[2]
ALL = set(GRAPH)
IMAGES = {"baseline", "calibrate", "emulate", "diagnose", "evaluate"}
ONNX = {
    "baseline",
    "calibrate",
    "condition",
    "convert",
    "emulate",
    "diagnose",
    "lint",
    "place",
    "plan",
    "prepare",
    "quantize",
    "simulate",
}
VENDOR = {"prepare", "emulate", "diagnose"}

FILES: dict[str, set[str]] = {
    "engine/step.py": ALL,
    "engine/store.py": set(),
    "engine/run.py": set(),
    "cli/build.py": set(),
    "recipe/composition.py": set(),
    "report/html.py": {"report"},
    "report/results.schema.json": {"report"},
    "package/manifest.schema.json": {"package", "report"},
    "tasks/text_detection.py": {"dataset", *IMAGES},
    "datasets/synthetic_text.py": {"dataset"},
    "datasets/samples.py": {"dataset", *IMAGES},
    "quantization/estimators/mse.py": {"quantize"},
    "quantization/histogram.py": {"calibrate", "quantize"},
    "graph/passes/fold_affine.py": {"convert", "diagnose"},
    "graph/constraints/operators.json": {"place", "lint", "diagnose"},
    "graph/constraints/structure.py": {"place", "lint", "diagnose"},
    "placement/reasons.py": {"place"},
    "simulator/roofline.py": {"simulate"},
    "sources/wheel.py": {"assets", "fetch"},
    "worker.py": {"convert", *VENDOR},
    "sources/readers/torch.py": {"convert", "diagnose"},
    "sources/readers/tensorflow.py": {"convert", "diagnose"},
    "sources/huggingface.py": {"assets", "fetch"},
    "qnn/session.py": VENDOR,
}
"""File of the package -> the steps whose code it is part of."""

TOOLS: dict[str, set[str]] = {
    "onnx": ONNX,
    "onnxruntime": ONNX - {"condition", "plan", "simulate"},
    "onnxruntime-qnn": VENDOR,
    "pillow": {"dataset", *IMAGES},
    "doit": set(),
    "hydra-core": set(),
}
"""Distribution -> the steps whose keys hold its version."""


def index(tmp_path: Path) -> CodeIndex:
    return CodeIndex("anfbuild", ROOT / "anfbuild", Memo(tmp_path / "memo"))


def test_a_file_is_in_the_code_of_the_steps_that_reach_it(tmp_path: Path) -> None:
    code = index(tmp_path)
    found = {
        file: {name for name, step in GRAPH.items() if file in code.closure(step.run.__module__)[0]} for file in FILES
    }
    assert all((ROOT / "anfbuild" / file).is_file() for file in FILES)
    assert found == FILES


@pytest.mark.parametrize("tool", TOOLS)
def test_another_version_of_a_tool_changes_the_keys_of_the_steps_that_use_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tool: str
) -> None:
    def versions() -> dict[str, dict[str, str]]:
        code = index(tmp_path)
        return {name: code.versions(step.run.__module__) for name, step in GRAPH.items()}

    before, version = versions(), metadata.version
    monkeypatch.setattr(
        metadata, "version", lambda name: "other" if name.replace("_", "-").lower() == tool else version(name)
    )
    after = versions()
    assert {name for name in GRAPH if before[name] != after[name]} == TOOLS[tool]


SHOW = """
import json
from pathlib import Path
from anfbuild.cli.build import make
from anfbuild.recipe import compose

build = make(compose(["+recipe=ocr_detect"], Path.cwd()), Path.cwd(), print)
print(json.dumps([{name: build.own_fields(name) for name in build.ancestors("report")}, build.key("fetch"),
                  build.key("assets")], sort_keys=True))
"""


def shown(folder: Path, root: Path, *prefix: str, **variables: str) -> Any:
    folder.mkdir()
    done = subprocess.run(
        [*prefix, sys.executable, "-c", SHOW],
        cwd=folder,
        env={"PATH": os.environ["PATH"], "HOME": str(folder), "PYTHONPATH": str(root), **variables},
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(done.stdout)


def test_no_key_holds_who_where_or_when(tmp_path: Path) -> None:
    copy = tmp_path / "another – checkout"
    for name in ("anfbuild", "conf", "recipes"):
        shutil.copytree(CHECKOUT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
    first = shown(tmp_path / "1", ROOT, PYTHONHASHSEED="1", TZ="UTC", USER="one")
    assert all(first[0].values())
    assert None not in first
    locale = {"LC_ALL": "POSIX", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}
    assert shown(tmp_path / "2", ROOT, PYTHONHASHSEED="2", TZ="Asia/Kathmandu", USER="two", LOGNAME="two") == first
    assert shown(tmp_path / "3 ü", copy, "sh", "-c", 'umask 077; exec "$@"', "sh", **locale) == first
