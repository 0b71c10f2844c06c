"""What a host lacks: the compiler, the right versions, the package index."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from projects import SMALL, Project

NO_COMPILER = '''\
"""Python as it is where onnxruntime-qnn was never installed; {machine} is the processor, if it is another."""
import importlib.util
import platform
from importlib import metadata

_find_spec, _version = importlib.util.find_spec, metadata.version


def find_spec(name, package=None):
    return None if name.split(".")[0] == "onnxruntime_qnn" else _find_spec(name, package)


def version(name):
    if name.replace("_", "-") == "onnxruntime-qnn":
        raise metadata.PackageNotFoundError(name)
    return _version(name)


importlib.util.find_spec, metadata.version = find_spec, version
if "{machine}":
    platform.machine = lambda: "{machine}"
'''


def hidden_compiler(folder: Path, machine: str = "") -> str:
    """A folder for PYTHONPATH that hides onnxruntime-qnn."""
    (folder / "hide").mkdir()
    code = NO_COMPILER.replace("{machine}", machine)
    (folder / "hide" / "sitecustomize.py").write_text(code, encoding="utf-8")
    return str(folder / "hide")


@pytest.fixture
def no_compiler(tmp_path: Path) -> str:
    """A host that cannot have the compiler."""
    return hidden_compiler(tmp_path, machine="riscv64")


def test_a_compiler_that_could_be_installed_is_asked_for(tiny: Project, tmp_path: Path) -> None:
    ran = tiny.run("+recipe=mine", PYTHONPATH=hidden_compiler(tmp_path))
    assert ran.code == 4
    for word in ("onnxruntime-qnn", "none is found", "pip install", "versions.onnxruntime-qnn"):
        assert word in ran.err


def test_a_build_without_the_compiler(tiny: Project, no_compiler: str) -> None:
    ran = tiny.run("+recipe=mine", PYTHONPATH=no_compiler)
    assert ran.code == 0, ran.err
    reason = f"onnxruntime-qnn has no wheel for {sys.platform} on riscv64"
    summary = {line.split()[0]: line for line in ran.out.splitlines() if not line.startswith("gate")}
    for row in ("agreement", "placement", "traffic"):
        assert f"not known: {reason}" in summary[row]
    assert "not judged" in ran.out

    results = tiny.run("+recipe=mine", "--json", PYTHONPATH=no_compiler).document["results"]
    for group, figure in (
        ("placement", "htp"),
        ("agreement", "max_lsb"),
        ("traffic", "spill_mb"),
        ("accuracy", "emulated"),
    ):
        assert results[group][figure] is None
        assert results["reasons"][f"/{group}/{figure}"] == reason
    parts = {part["part"]: part["found"] for part in results["versions"]}
    assert parts["onnxruntime-qnn"] is parts["qnn"] is None
    assert parts["onnxruntime"] is not None
    assert (tiny.folder / "artifacts" / "builds" / "mine" / "latest" / "mine.anf").is_file()


@pytest.mark.parametrize(
    ("override", "code", "words"),
    [
        ("versions.onnxruntime='>=99'", 4, ["onnxruntime >=99 is required", "is installed", "pip install"]),
        ("versions.onnxruntime=new", 2, ["'new' is not a version specifier", "PEP 440"]),
        ("+versions.onnxrutime='>=1'", 2, ["did you mean 'onnxruntime'?", "valid choices: onnxruntime"]),
    ],
)
def test_versions_are_checked_before_anything_is_built(
    tiny: Project, override: str, code: int, words: list[str]
) -> None:
    ran = tiny.run("+recipe=mine", override)
    assert ran.code == code
    for word in ("command line (versions.", *words):
        assert word in ran.err
    assert ran.out == ""


OUT_OF_REACH = {"PIP_INDEX_URL": "http://127.0.0.1:9/simple", "PIP_EXTRA_INDEX_URL": "", "PIP_RETRIES": "1"}


def test_the_index_out_of_reach(detector: Project, tmp_path: Path) -> None:
    cached = detector.run(*SMALL, "--json", **OUT_OF_REACH)
    assert (cached.code, cached.steps_run) == (0, [])
    changed = detector.run(*SMALL, "calibration=minmax", "goal=quantize", **OUT_OF_REACH)
    assert changed.code == 0, changed.err

    ran = Project(tmp_path, tmp_path / "store").run(*SMALL, **OUT_OF_REACH)
    assert ran.code == 1
    for word in ("rapidocr-onnxruntime==1.4.4", "the package index is out of reach", "Once is enough"):
        assert word in ran.err
    assert "Traceback" not in ran.err
