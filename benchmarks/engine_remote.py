"""What a hit on a remote costs over a hit on this disk: `python benchmarks/engine.py remote`.

The text detector at 160x160 is built once and pushed to a folder, which a web server of Python's own shows on loopback.
Then, in turn and in one process: all results local; an empty store that takes the entries over; an empty store that
takes entries and all bytes. The store's memo of the code's digests is kept in all of them, as it is on a machine that
builds again. About two minutes, most of it the one build.
"""

from __future__ import annotations

import contextlib
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median

from project import command

from anfbuild.cli.build import make
from anfbuild.engine.remote.connect import connect
from anfbuild.engine.remote.settings import Settings
from anfbuild.engine.remote.shared import Shared
from anfbuild.recipe import Recipe, compose

OVERRIDES = (
    "+recipe=ocr_detect",
    "dataset.size=160",
    "model.inputs.x.shape=[1,3,160,160]",
    "dataset.samples=2",
    "evaluation.samples=2",
)
GOAL = "report"
REPEATS = 7

SERVER = """
import functools, http.server, sys

class Handler(http.server.SimpleHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # head and body are written apart: each body would wait 40 ms
    log_message = lambda *_: None

handler = functools.partial(Handler, directory=sys.argv[1])
http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[2])), handler).serve_forever()
"""


@contextlib.contextmanager
def served(folder: Path) -> Iterator[str]:
    """The URL under which a server of its own process shows `folder`."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    process = subprocess.Popen([sys.executable, "-c", SERVER, str(folder), str(port)])
    try:
        for _ in range(200):
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
                break
            time.sleep(0.05)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait()


def seconds(recipe: Recipe, project: Path, url: str | None, *, whole: bool = False) -> float:
    """Wall time of a build that runs no step; `whole`: with all bytes of all results brought here."""
    remote = Shared(connect(Settings(url), {}), lambda text: sys.exit(text)) if url else None
    ran: list[str] = []
    build = make(recipe, project, lambda event: ran.append(event.step) if event.kind == "start" else None, remote)
    started = time.perf_counter()
    good = build.run(GOAL) and (not whole or all(map(build.bring, build.ancestors(GOAL))))
    spent = time.perf_counter() - started
    if not good or ran:
        raise SystemExit(f"this build should have run nothing, and ran {ran}: {build.error}")
    return spent


def emptied(project: Path, store: Path) -> None:
    """Leave of the project's store its memo alone."""
    shutil.rmtree(project / "artifacts")
    shutil.copytree(store / "memo", project / "artifacts" / "store" / "memo")


def rows() -> list[tuple[str, str, str]]:
    """(what, figure, target) for entries, and for entries with their bytes."""
    with tempfile.TemporaryDirectory(prefix="anfbuild-benchmark-") as name:
        root = Path(name).resolve()
        project, share, store = root / "project", root / "share", root / "store"
        project.mkdir()
        share.mkdir()
        anfbuild = [sys.executable, "-m", "anfbuild", *OVERRIDES]
        command([*anfbuild, "--remote", str(share), "--push"], project, allowed=(0, 3))
        shutil.copytree(project / "artifacts" / "store", store)
        recipe = compose(OVERRIDES, project)
        with served(share) as url:
            times: list[tuple[float, float, float]] = []
            for _ in range(REPEATS):
                emptied(project, store)
                entries = seconds(recipe, project, url)
                emptied(project, store)
                whole = seconds(recipe, project, url, whole=True)
                times.append((seconds(recipe, project, None), entries, whole))
        local, entries, whole = (median(column) for column in zip(*times, strict=True))
        blobs = list((share / "cas").iterdir())
        size = sum(path.stat().st_size for path in blobs) / 10**6
        steps = len(list((share / "ac").iterdir()))
        return [
            (f"a hit on a remote, {steps} entries over loopback, over local ones", f"{entries / local:.1f}", "–"),
            ("what that adds for an entry", f"{(entries - local) / steps * 1e3:.1f} ms", "–"),
            (f"the same with all bytes ({len(blobs)} files, {size:.0f} MB)", f"{whole / local:.1f}", "–"),
            ("bytes brought here and verified", f"{size / (whole - entries):.0f} MB/s", "–"),
        ]
