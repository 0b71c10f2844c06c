"""Servers that others use, started on this machine for tests that run with --full."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path

import pytest
from extras import missing

from anfbuild.engine.remote.connect import connect
from anfbuild.engine.remote.remote import RemoteError
from anfbuild.engine.remote.settings import Settings

UP_S = 60


def free_ports(count: int) -> list[int]:
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]


@contextlib.contextmanager
def running(words: Sequence[str], folder: Path, port: int) -> Iterator[None]:
    """A server, once it takes connections, until the end of the block."""
    with (folder / "server.log").open("wb") as log:
        process = subprocess.Popen(words, cwd=folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        try:
            deadline = time.monotonic() + UP_S
            while time.monotonic() < deadline:
                assert process.poll() is None, (folder / "server.log").read_text(errors="replace")
                with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
                    break
                time.sleep(0.05)
            yield
        finally:
            process.terminate()
            try:
                process.wait(3)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


@contextlib.contextmanager
def seaweedfs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The URL of a folder in a bucket of SeaweedFS; skips where it is not installed."""
    program = shutil.which("weed", path=os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]))
    if program is None or find_spec("obstore") is None:
        missing("the extra test-full")
    ports = free_ports(8)
    folder = tmp_path / "weed"
    (folder / "data").mkdir(parents=True)
    key = {"accessKey": "ci", "secretKey": "ci-secret"}
    identity = {"name": "ci", "credentials": [key], "actions": ["Admin", "Read", "Write", "List"]}
    (folder / "s3.json").write_text(json.dumps({"identities": [identity]}))
    parts = [f"{part}.port{kind}" for part in ("master", "volume", "filer", "s3") for kind in ("", ".grpc")]
    words = [str(program), "server", "-dir=data", "-ip=127.0.0.1", "-ip.bind=127.0.0.1", "-filer", "-s3",
             "-s3.config=s3.json", "-master.telemetry=false", "-volume.max=4",
             *(f"-{part}={port}" for part, port in zip(parts, ports, strict=True))]  # fmt: skip
    for name, value in {
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{ports[6]}",
        "AWS_ALLOW_HTTP": "true",
        "AWS_ACCESS_KEY_ID": "ci",
        "AWS_SECRET_ACCESS_KEY": "ci-secret",
        "AWS_REGION": "us-east-1",
    }.items():
        monkeypatch.setenv(name, value)
    with running(words, folder, ports[6]):
        (tmp_path / "probe").write_bytes(bytes(100_000))
        remote = connect(Settings("s3://cache/anfbuild"), os.environ)
        deadline = time.monotonic() + UP_S
        while time.monotonic() < deadline:  # its parts find one another some time after they listen
            with contextlib.suppress(RemoteError):
                remote.put_blob("probe", tmp_path / "probe")
                break
            time.sleep(0.5)
        yield "s3://cache/anfbuild"
