"""Sources through the command line: what is told while a download runs, and of what cannot be had."""

from __future__ import annotations

import hashlib
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import onnx
import pytest
from projects import Project
from servers import send, serving

from anfbuild import plugins


def steps(project: Project, *arguments: str, **variables: str) -> list[str]:
    ran = project.run("+recipe=mine", *arguments, "--json", **variables)
    assert ran.code == 0, ran.err
    return ran.steps_run


def test_an_interrupted_download_goes_on_in_the_next_build_and_says_so(alone: Project) -> None:
    model = onnx.load(alone.folder / "models" / "mine.onnx")
    model.doc_string = "x" * 2_000_000
    body = model.SerializeToString()
    asked: list[str | None] = []

    def answer(request: BaseHTTPRequestHandler) -> None:
        wanted = request.headers.get("Range")
        asked.append(wanted)
        start = int(wanted[6:-1]) if wanted else 0
        if len(asked) == 2:
            send(request, 403, b"")
            return
        part = {"Content_Range": f"bytes {start}-{len(body) - 1}/{len(body)}"} if start else {}
        rest = body[start:] if start else body[:1_500_000]
        send(request, 206 if start else 200, rest, Content_Length=str(len(body) - start), ETag='"1"', **part)
        request.close_connection = True

    with serving(answer) as server:
        pin = hashlib.sha256(body).hexdigest()
        source = ("source=https", f"source.url={server.url}/mine.onnx", "source.path=null", f"source.sha256={pin}")
        first = alone.run("+recipe=mine", *source, "goal=fetch")
        assert first.code == 1
        assert "403" in first.err
        second = alone.run("+recipe=mine", *source, "goal=fetch")
    assert second.code == 0, second.err
    assert asked == [None, "bytes=1500000-", "bytes=1500000-"]
    assert f"fetch      1.5 of {len(body) / 1e6:.1f} MB (74 %)" in second.out
    assert next(alone.folder.rglob("fetch/model/mine.onnx")).read_bytes() == body


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """An installed distribution that offers a model, whose code does not import."""
    folder = tmp_path / "site"
    (folder / "nets.dist-info").mkdir(parents=True)
    (folder / "nets.py").write_text("raise OSError('no such library')\n")
    (folder / "nets.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: nets\nVersion: 1.0\n")
    (folder / "nets.dist-info" / "entry_points.txt").write_text(f"[{plugins.MODELS}]\nmine = nets:make\n")
    return folder


MODULE = ("source=module", "source.path=null", "source.name=mine")


def test_an_installed_modules_code_is_in_the_keys(alone: Project, site: Path) -> None:
    path = {"PYTHONPATH": str(site)}
    assert steps(alone, *MODULE, "goal=fetch", **path) == ["fetch"]
    (site / "nets.py").write_text("raise OSError('still none')\n")
    assert steps(alone, *MODULE, "goal=fetch", **path) == ["fetch"]


def test_a_module_that_cannot_be_read_is_told_by_the_recipes_name(tiny: Project, site: Path) -> None:
    ran = tiny.run("+recipe=mine", *MODULE, "goal=convert", PYTHONPATH=str(site))
    assert ran.code == 1
    assert "the installed model 'mine' (command line): " in ran.err
    assert "PyTorch" in ran.err or "no such library" in ran.err
    assert "Traceback" not in ran.err
