from __future__ import annotations

from pathlib import Path

import pytest

from anfbuild.cli import main

pytestmark = pytest.mark.usefixtures("project")


def complete(line: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> list[str]:
    monkeypatch.setenv("COMP_LINE", line)
    assert main(["-sc", "query=bash"]) == 0
    return capsys.readouterr().out.split()


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("anfbuild +recipe=ocr", ["+recipe=ocr_detect"]),
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
