from __future__ import annotations

import hashlib
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest
from servers import Server, send, serving

from anfbuild import sources
from anfbuild.errors import RecipeError, StepError
from anfbuild.sources.downloads import Downloads, Limits
from anfbuild.sources.https import fetch_url

BODY = bytes(range(256)) * 5000
DIGEST = hashlib.sha256(BODY).hexdigest()
BOUNDS = Limits(most_bytes=10**7, timeout_s=20, idle_s=5, pause_s=0.0)
QUICK = Downloads(limits=BOUNDS)


def answer(request: BaseHTTPRequestHandler) -> None:
    """A behaviour a folder."""
    kind = request.path.partition("/m.onnx")[0]
    if kind == "/whole":
        send(request, 200, BODY)
    elif kind == "/ignores":
        body = BODY if request.headers.get("Range") else BODY[:99]
        send(request, 200, body, Content_Length=str(len(BODY)), ETag='"1"')
        request.close_connection = True
    elif kind == "/endless":
        request.send_response(200)
        request.end_headers()
        while True:
            request.wfile.write(BODY)
    elif kind == "/long":
        send(request, 200, b"", Content_Length=str(10**12))
    elif kind == "/unsafe":
        send(request, 302, b"", Location="http://models.example.org/m.onnx")
    elif kind == "/moved":
        send(request, 301, b"", Location="/whole/m.onnx")
    elif kind == "/round":
        send(request, 302, b"", Location="/round/m.onnx")
    elif kind == "/busy":
        send(request, 503, b"")
    else:
        send(request, 404, b"not here")


@pytest.fixture
def server() -> Iterator[Server]:
    with serving(answer) as server:
        yield server


def fetch(server: Server, kind: str, folder: Path, sha256: str | None = DIGEST) -> Path:
    return fetch_url(f"{server.url}/{kind}/m.onnx?version=1", sha256, folder, QUICK)


@pytest.mark.parametrize("kind", ["whole", "moved"])
def test_a_file_comes_whole_under_its_name(server: Server, tmp_path: Path, kind: str) -> None:
    path = fetch(server, kind, tmp_path)
    assert path == tmp_path / "m.onnx"
    assert path.read_bytes() == BODY
    assert list(tmp_path.iterdir()) == [path]


def test_the_kind_is_one_of_the_sources(server: Server, tmp_path: Path) -> None:
    path = sources.fetch("https", url=f"{server.url}/whole/m.onnx", sha256=DIGEST, folder=tmp_path)
    assert path.read_bytes() == BODY


def test_a_download_that_is_cut_goes_on_where_it_stopped(tmp_path: Path) -> None:
    cuts: list[str | None] = []

    def cut(request: BaseHTTPRequestHandler) -> None:
        wanted = request.headers.get("Range")
        cuts.append(wanted)
        start = int(wanted[6:-1]) if wanted else 0
        rest = BODY[start:]
        end = len(rest) if len(cuts) == 3 else len(rest) // 2
        part = {"Content_Range": f"bytes {start}-{len(BODY) - 1}/{len(BODY)}"} if start else {}
        send(request, 206 if start else 200, rest[:end], Content_Length=str(len(rest)), ETag='"1"', **part)
        request.close_connection = True

    with serving(cut) as server:
        assert fetch(server, "cut", tmp_path).read_bytes() == BODY
    assert cuts == [None, f"bytes={len(BODY) // 2}-", f"bytes={3 * len(BODY) // 4}-"]


@pytest.mark.parametrize("tag", [None, 'W/"1"'])
def test_without_a_mark_of_the_version_it_starts_again(tmp_path: Path, tag: str | None) -> None:
    asked: list[str | None] = []

    def cut(request: BaseHTTPRequestHandler) -> None:
        asked.append(request.headers.get("Range"))
        body = BODY if len(asked) > 1 else BODY[:100]
        send(request, 200, body, Content_Length=str(len(BODY)), **({"ETag": tag} if tag else {}))
        request.close_connection = True

    with serving(cut) as server:
        assert fetch(server, "cut", tmp_path).read_bytes() == BODY
    assert asked == [None, None]


def test_a_server_that_does_not_know_of_parts_sends_the_whole(server: Server, tmp_path: Path) -> None:
    assert fetch(server, "ignores", tmp_path).read_bytes() == BODY
    assert len(server.asked) == 2


@pytest.mark.parametrize(
    ("kind", "says", "times"),
    [
        ("nothing", "404 Not Found", 1),
        ("busy", "503 Service Unavailable", 6),
        ("endless", "larger than 10000000 bytes, the most allowed: it does not end", 1),
        ("long", "larger than 10000000 bytes, the most allowed: it has 1000000000000", 1),
        ("unsafe", "redirects to http://models.example.org/m.onnx, which is refused", 1),
        ("round", "infinite loop", None),
    ],
)
def test_what_cannot_be_had_leaves_nothing(
    server: Server, tmp_path: Path, kind: str, says: str, times: int | None
) -> None:
    with pytest.raises(StepError, match=says) as caught:
        fetch(server, kind, tmp_path)
    assert caught.value.remedy
    assert list(tmp_path.iterdir()) == []
    assert times in (None, len(server.asked))


def test_another_digest_and_none_are_refused(server: Server, tmp_path: Path) -> None:
    with pytest.raises(StepError, match=f"its SHA-256 is {DIGEST}, expected 0000"):
        fetch(server, "whole", tmp_path, "0" * 64)
    with pytest.raises(RecipeError, match="is not pinned") as caught:
        fetch(server, "whole", tmp_path, None)
    assert DIGEST in (caught.value.remedy or "")
    assert list(tmp_path.iterdir()) == []


def test_a_server_that_falls_silent_is_given_up(tmp_path: Path) -> None:
    def silent(request: BaseHTTPRequestHandler) -> None:
        send(request, 200, BODY[:10], Content_Length=str(len(BODY)))
        request.rfile.read(1)  # until the client goes

    with serving(silent) as server, pytest.raises(StepError, match=r"cannot be fetched: .*timed out"):
        fetch_url(f"{server.url}/m.onnx", DIGEST, tmp_path, Downloads(limits=BOUNDS._replace(idle_s=0.05)))


def test_a_trickle_is_bounded_in_time(tmp_path: Path) -> None:
    with serving(answer) as server, pytest.raises(StepError, match="not downloaded within 0 s"):
        fetch_url(f"{server.url}/whole/m.onnx", DIGEST, tmp_path, Downloads(limits=BOUNDS._replace(timeout_s=0)))


def test_a_server_out_of_reach_is_named(tmp_path: Path) -> None:
    with serving(answer) as server:
        url = f"{server.url}/m.onnx"
    with pytest.raises(StepError, match="cannot be fetched"):
        fetch_url(url, DIGEST, tmp_path, QUICK)


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("http://models.example.org/m.onnx", "not protected"),
        ("ftp://models.example.org/m.onnx", "not an https address"),
        ("file:///etc/passwd", "not an https address"),
        ("https://", "not an https address"),
        ("https://a.example.org:x/m", "is no address"),
        ("https://a.example.org/m\r\nHost: b", "not an https address"),
        ("https://me:secret@a.example.org/m.onnx", "holds a user name"),
    ],
)
def test_addresses_that_are_refused_before_any_work(url: str, says: str) -> None:
    with pytest.raises(RecipeError, match=says) as caught:
        sources.check("https", url=url)
    assert caught.value.where == "source.url"
    assert "secret" not in str(caught.value)
