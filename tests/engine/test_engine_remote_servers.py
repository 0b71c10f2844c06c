"""Remotes on servers that others use: nginx as docs/remotes.md configures it, and S3."""

from __future__ import annotations

import contextlib
import hashlib
import os
import pwd
import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
import toy
from extras import missing
from real_servers import free_ports, running, seaweedfs

from anfbuild.engine.cache import Cache
from anfbuild.engine.remote.connect import connect
from anfbuild.engine.remote.remote import RemoteError
from anfbuild.engine.remote.settings import Settings
from anfbuild.engine.remote.shared import Shared
from anfbuild.engine.store import Store

pytestmark = pytest.mark.full

DOCS = Path(__file__).parents[2] / "docs" / "remotes.md"


@pytest.fixture
def nginx() -> Iterator[str]:
    """The URL of an nginx with the configuration of docs/remotes.md, but for the port."""
    program = shutil.which("nginx", path=os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin"]))
    if program is None:
        missing("Debian's nginx-light")
    (text,) = re.findall(r"```nginx\n(.*?)```", DOCS.read_text(encoding="utf-8"), re.DOTALL)
    (port,) = free_ports(1)
    folder = Path(tempfile.mkdtemp(prefix="anfbuild-nginx-"))  # pytest's own folders are closed to other users
    try:
        folder.chmod(0o755)
        for name in ("cache", "tmp"):
            (folder / name).mkdir()
            with contextlib.suppress(KeyError, PermissionError):  # started by root, it works as this user
                os.chown(folder / name, pwd.getpwnam("www-data").pw_uid, -1)
        (folder / "nginx.conf").write_text(text.replace("8980", str(port)), encoding="utf-8")
        words = [str(program), "-p", str(folder), "-c", "nginx.conf", "-e", "stderr", "-g", "daemon off;"]
        with running(words, folder, port):
            yield f"http://127.0.0.1:{port}"
    finally:
        shutil.rmtree(folder)


@pytest.fixture
def s3(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    with seaweedfs(tmp_path, monkeypatch) as url:
        yield url


def check(url: str, tmp_path: Path, environ: Mapping[str, str]) -> None:
    """What one builds another takes over, large and empty files come back, and what is lost is built and sent again."""
    warnings: list[str] = []

    def run(name: str, *, write: bool) -> list[str]:
        (tmp_path / name).mkdir(exist_ok=True)
        shared = Shared(connect(Settings(url), environ), warnings.append, write=write)
        build = toy.make(tmp_path / name, cache=Cache(Store(tmp_path / name / "store"), shared))
        assert build.run("shout"), build.error
        build.export("shout", "shout.txt", tmp_path / name / "out.txt")
        build.close()
        return [event.step for event in build.events if event.kind == "done"]

    assert run("a", write=True) == ["words", "count", "shout"]
    assert warnings == []
    assert run("b", write=False) == []
    assert (tmp_path / "a" / "out.txt").read_bytes() == (tmp_path / "b" / "out.txt").read_bytes()
    assert warnings == []
    remote = connect(Settings(url), environ)
    for number, size in enumerate((0, 1, 12_000_001)):
        data = os.urandom(size)
        sha = hashlib.sha256(data).hexdigest()
        (tmp_path / sha).write_bytes(data)
        assert not remote.get_blob(sha, size, tmp_path / f"{number}.none")
        remote.put_blob(sha, tmp_path / sha)
        assert remote.has_blob(sha, size)
        assert not remote.has_blob(sha, size + 1)
        assert remote.get_blob(sha, size, tmp_path / f"{number}.back")
        assert (tmp_path / f"{number}.back").read_bytes() == data
    wrong = hashlib.sha256((tmp_path / "a" / "out.txt").read_bytes()).hexdigest()
    (tmp_path / "wrong").write_bytes(bytes((tmp_path / "a" / "out.txt").stat().st_size))
    remote.put_blob(wrong, tmp_path / "wrong")
    assert run("c", write=True) == ["shout"]
    assert run("d", write=False) == []
    assert (tmp_path / "d" / "out.txt").read_bytes() == (tmp_path / "a" / "out.txt").read_bytes()


def test_nginx(nginx: str, tmp_path: Path) -> None:
    check(nginx, tmp_path, {"ANFBUILD_REMOTE_TOKEN": "CHANGE-ME"})


def test_nginx_lets_only_the_token_write(nginx: str) -> None:
    for token in ({}, {"ANFBUILD_REMOTE_TOKEN": "other"}):
        remote = connect(Settings(nginx), token)
        assert remote.get_action("0" * 64) is None
        with pytest.raises(RemoteError, match="403 Forbidden"):
            remote.put_action("0" * 64, b"{}")
    with pytest.raises(RemoteError):
        connect(Settings(nginx), {"ANFBUILD_REMOTE_TOKEN": "CHANGE-ME"}).put_action("../up", b"{}")


def test_s3(s3: str, tmp_path: Path) -> None:
    check(s3, tmp_path, os.environ)


def test_s3_with_a_wrong_key_is_told_in_few_words(s3: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wrong-secret")
    remote = connect(Settings(s3), os.environ)
    with pytest.raises(RemoteError, match=r"^permission denied$"):
        remote.get_action("0" * 64)
