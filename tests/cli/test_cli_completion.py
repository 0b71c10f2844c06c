from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import anfbuild
from anfbuild.cli import main

pytestmark = pytest.mark.usefixtures("project")


def complete(line: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> list[str]:
    monkeypatch.setenv("COMP_LINE", line)
    assert main(["-sc", "query=bash"]) == 0
    return capsys.readouterr().out.split()


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("anfbuild +recipe=ocr_d", ["+recipe=ocr_detect"]),
        ("anfbuild --json +recipe=vision/", ["+recipe=vision/det"]),
        ("anfbuild +recipe=plain dataset.sa", ["dataset.samples="]),
        ("anfbuild +recipe=plain quantization=ma", ["quantization=made"]),
        ("anfbuild +recipe=nope dataset.sa", []),
    ],
)
def test_queries(
    project: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    line: str,
    expected: list[str],
) -> None:
    (project / "recipes" / "vision").mkdir()
    (project / "recipes" / "plain.yaml").write_text(
        "dataset: {samples: 3}\n" + (project / "recipes/plain.yaml").read_text()
    )
    (project / "recipes" / "vision" / "det.yaml").write_text("")
    assert complete(line, monkeypatch, capsys) == expected


def test_a_broken_recipe_completes_to_nothing(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (project / "recipes" / "plain.yaml").write_text("a: b: c\n")
    assert complete("anfbuild +recipe=plain dataset.sa", monkeypatch, capsys) == []


def test_install(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["-sc", "install=bash"]) == 0
    assert "complete " in capsys.readouterr().out


@pytest.mark.parametrize("arguments", [["install=tcsh"], [], ["query=bash"]])
def test_wrong_requests(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], arguments: list[str]
) -> None:
    monkeypatch.delenv("COMP_LINE", raising=False)
    assert main(["--shell-completion", *arguments]) == 2
    assert capsys.readouterr().err.startswith("anfbuild: --shell-completion")


def test_a_full_disk_is_no_reason_to_fail() -> None:
    command = [sys.executable, "-c", "import sys; from anfbuild.cli import main; sys.exit(main())"]
    environment = {**os.environ, "PYTHONPATH": str(Path(anfbuild.__file__).parents[1])}
    with Path("/dev/full").open("w") as full:
        run = subprocess.run([*command, "-sc", "install=bash"], stdout=full, env=environment, check=False)
    assert run.returncode == 0
