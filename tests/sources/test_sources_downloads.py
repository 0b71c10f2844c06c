"""A download goes on where another run stopped, says how far it is, and takes nothing on trust."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest
from filelock import FileLock
from servers import Server, send, serving

from anfbuild import sources
from anfbuild.errors import RecipeError, StepError
from anfbuild.sources import downloads
from anfbuild.sources.downloads import Downloads, Limits

BODY = bytes(range(256)) * 5000
DIGEST = hashlib.sha256(BODY).hexdigest()
HALF = len(BODY) // 2


class Script:
    """Sends `body` in `tag`'s version, the rest of it where that is asked for; of `cuts` answers the last is none, the
    others are cut in the middle."""

    def __init__(self) -> None:
        self.body, self.tag, self.ranges, self.cuts = BODY, '"1"', True, 0
        self.never = False
        """Answer 416 to everything."""

    def __call__(self, request: BaseHTTPRequestHandler) -> None:
        if self.cuts == 1 or self.never:
            send(request, 416 if self.never else 404, b"")
            return
        wanted = request.headers.get("Range")
        known = wanted and self.ranges and request.headers.get("If-Range") == self.tag
        start = int(wanted[6:-1]) if wanted and known else 0
        if start >= len(self.body):
            send(request, 416, b"")
            return
        rest = self.body[start:]
        part = {"Content_Range": f"bytes {start}-{len(self.body) - 1}/{len(self.body)}"} if start else {}
        tag = {"ETag": self.tag} if self.tag else {}
        sent = rest[:HALF] if self.cuts else rest
        self.cuts = max(self.cuts - 1, 0)
        send(request, 206 if start else 200, sent, Content_Length=str(len(rest)), **part, **tag)
        request.close_connection = True


@pytest.fixture
def script() -> Script:
    return Script()


@pytest.fixture
def server(script: Script) -> Iterator[Server]:
    with serving(script) as server:
        yield server


def fetch(server: Server, folder: Path, *, told: list[tuple[int, int | None]] | None = None) -> bytes:
    tell = (lambda received, total: told.append((received, total))) if told is not None else lambda *_: None
    settings = Downloads(keep=folder / "keep", tell=tell, limits=Limits(pause_s=0.0, tell_s=0.0, idle_s=5))
    path = sources.fetch("https", url=f"{server.url}/m.onnx", sha256=DIGEST, folder=folder / "out", downloads=settings)
    return path.read_bytes()


def interrupted(script: Script, server: Server, folder: Path) -> None:
    """Leave the first half of the file behind."""
    script.cuts = 2
    with pytest.raises(StepError, match="404"):
        fetch(server, folder)
    script.cuts = 0
    server.asked.clear()


def test_another_run_asks_for_the_rest_alone(script: Script, server: Server, tmp_path: Path) -> None:
    interrupted(script, server, tmp_path)
    told: list[tuple[int, int | None]] = []
    assert fetch(server, tmp_path, told=told) == BODY
    assert server.asked == [("/m.onnx", f"bytes={HALF}-")]
    assert told[0] == (HALF, len(BODY))
    assert told[-1] == (len(BODY), len(BODY))
    assert [path.suffix for path in (tmp_path / "keep").iterdir() if path.suffix != ".lock"] == []


@pytest.mark.parametrize("change", ["version", "no ranges", "no tag"])
def test_it_begins_anew_where_the_server_has_no_such_rest(
    script: Script, server: Server, tmp_path: Path, change: str
) -> None:
    interrupted(script, server, tmp_path)
    script.tag = {"version": '"2"', "no ranges": '"1"', "no tag": ""}[change]
    script.ranges = change != "no ranges"
    assert fetch(server, tmp_path) == BODY
    assert server.asked == [("/m.onnx", f"bytes={HALF}-")]


def test_a_server_without_any_rest_is_asked_for_the_whole_once(script: Script, server: Server, tmp_path: Path) -> None:
    interrupted(script, server, tmp_path)
    script.never = True
    with pytest.raises(StepError, match="416"):
        fetch(server, tmp_path)
    assert server.asked == [("/m.onnx", f"bytes={HALF}-"), ("/m.onnx", None)]


@pytest.mark.parametrize("harm", ["flipped", "longer", "a link", "no note", "odd note", "wrong note"])
def test_what_was_kept_is_not_trusted(script: Script, server: Server, tmp_path: Path, harm: str) -> None:
    interrupted(script, server, tmp_path)
    (part,) = (tmp_path / "keep").glob("*.part")
    note = part.with_suffix(".json")
    if harm == "flipped":
        part.write_bytes(b"\xff" + part.read_bytes()[1:])
    elif harm == "longer":
        part.write_bytes(BODY + b"more")
    elif harm == "a link":
        (tmp_path / "mine").write_bytes(b"mine")
        part.unlink()
        part.symlink_to(tmp_path / "mine")
    elif harm == "no note":
        note.unlink()
    elif harm == "odd note":
        note.write_text('{"tag": 7, "total": "x"}')
    else:
        note.write_text(json.dumps({"tag": '"1"', "total": HALF}))
    assert fetch(server, tmp_path) == BODY
    if harm == "a link":
        assert (tmp_path / "mine").read_bytes() == b"mine"


def test_what_came_whole_before_is_not_asked_for(script: Script, server: Server, tmp_path: Path) -> None:
    interrupted(script, server, tmp_path)
    (part,) = (tmp_path / "keep").glob("*.part")
    part.write_bytes(BODY)
    assert fetch(server, tmp_path) == BODY
    assert server.asked == []


def test_the_wrong_file_is_not_kept(script: Script, server: Server, tmp_path: Path) -> None:
    script.body = b"other"
    with pytest.raises(StepError, match="is not the pinned file"):
        fetch(server, tmp_path)
    assert not any(path.stat().st_size for path in (tmp_path / "keep").iterdir())
    assert len(server.asked) == 1


def test_without_a_pin_nothing_is_taken_up_or_kept(server: Server, tmp_path: Path) -> None:
    settings = Downloads(keep=tmp_path / "keep")
    with pytest.raises(RecipeError, match="is not pinned") as caught:
        sources.fetch("https", url=f"{server.url}/m.onnx", folder=tmp_path / "out", downloads=settings)
    assert DIGEST in (caught.value.remedy or "")
    assert not (tmp_path / "keep").exists()


def test_who_comes_second_downloads_on_his_own(script: Script, server: Server, tmp_path: Path) -> None:
    interrupted(script, server, tmp_path)
    (part,) = (tmp_path / "keep").glob("*.part")
    with FileLock(part.with_suffix(".lock")):
        assert fetch(server, tmp_path) == BODY
    assert part.stat().st_size == HALF
    assert server.asked == [("/m.onnx", None)]


def test_the_oldest_make_room_and_those_in_use_stay(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keep = tmp_path / "keep"
    keep.mkdir()
    for age, name in enumerate(("new", "held", "old")):
        (keep / f"{name}.part").write_bytes(bytes(100))
        os.utime(keep / f"{name}.part", (10**9 * 1.7 - age, 10**9 * 1.7 - age))
    monkeypatch.setattr(downloads, "KEPT_S", float("inf"))
    monkeypatch.setattr(downloads, "KEPT_BYTES", 200)
    with FileLock(keep / "held.lock"):
        assert fetch(server, tmp_path) == BODY
    assert sorted(path.stem for path in keep.glob("*.part")) == ["held", "new"]
    monkeypatch.setattr(downloads, "KEPT_S", 3600.0)
    fetch(server, tmp_path)
    assert list(keep.glob("*.part")) == []


KILLED = """
import os, sys
from pathlib import Path
from anfbuild import sources

def tell(received, total):
    if received > 10**6:
        os._exit(9)

limits = sources.Downloads().limits._replace(tell_s=0.0)
settings = sources.Downloads(keep=Path(sys.argv[2]) / "keep", tell=tell, limits=limits)
sources.fetch("https", url=sys.argv[1], sha256=sys.argv[3], folder=Path(sys.argv[2]) / "out", downloads=settings)
"""


def test_a_build_that_is_killed_leaves_what_has_come(server: Server, tmp_path: Path) -> None:
    url = f"{server.url}/m.onnx"
    done = subprocess.run([sys.executable, "-c", KILLED, url, str(tmp_path), DIGEST], check=False)
    assert done.returncode == 9
    assert not (tmp_path / "out" / "m.onnx").exists()
    assert fetch(server, tmp_path) == BODY
    (_, (_, wanted)) = server.asked
    assert wanted is not None
    assert int(wanted[6:-1]) > 10**6
