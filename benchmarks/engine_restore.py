"""How fast results come back from the store, over hashing alone: `python benchmarks/engine.py restore`.

Both are timed in turn, in one process, over the same bytes, which are in the page cache. Every byte that is restored is
hashed too: a rate above that of hashing comes from the threads that share the large files. About a minute, and 1.7 GB
below the folder for temporary files.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from anfbuild.engine.result import Result
from anfbuild.engine.store import Store

MB = 10**6
TARGET = 0.7

LARGE = [32 * MB] * 16
SMALL = [20_000] * 500

REPEATS = 9


def committed(store: Store, sizes: Sequence[int], folder: Path) -> Result:
    """A result of files of random bytes, `sizes` of them, in the store."""
    folder.mkdir()
    for number, size in enumerate(sizes):
        (folder / f"{number:05}").write_bytes(os.urandom(size))
    return store.commit(hashlib.sha256(folder.name.encode()).hexdigest(), folder, {})


def hash_all(store: Store, result: Result) -> None:
    """What the bytes of a result cost to hash, file by file."""
    for sha, _ in result.files.values():
        with store.blob(sha).open("rb") as file:
            hashlib.file_digest(file, "sha256")


def cost(work: Callable[[], None]) -> tuple[float, float]:
    """Wall and CPU seconds of `work` in this process."""
    wall, cpu = time.perf_counter(), time.process_time()
    work()
    return time.perf_counter() - wall, time.process_time() - cpu


def ratios(store: Store, results: Sequence[Result], out: Path) -> tuple[float, float]:
    """Hashing over restoring, in wall and in CPU seconds: each by the least of runs taken in turn."""

    def hashing() -> None:
        for result in results:
            hash_all(store, result)

    def restoring() -> None:
        for result in results:
            store.copy_out(result, "", out / result.key)

    pairs = []
    for _ in range(REPEATS):
        pairs.append((cost(hashing), cost(restoring)))
        shutil.rmtree(out)
    alone, restored = (tuple(map(min, zip(*costs, strict=True))) for costs in zip(*pairs, strict=True))
    return alone[0] / restored[0], alone[1] / restored[1]


def rows() -> list[tuple[str, str, str]]:
    """(what, figure, target) for each set of files."""
    with tempfile.TemporaryDirectory(prefix="anfbuild-benchmark-") as name:
        root = Path(name).resolve()
        store = Store(root / "store")
        large = committed(store, LARGE, root / "large")
        small = committed(store, SMALL, root / "small")
        one = committed(store, LARGE[:1], root / "one")
        files = f"{len(LARGE)} files of 32 MB, {len(SMALL)} of 20 kB"
        wall, cpu = ratios(store, [large, small], root / "out")
        return [
            (f"restoring from the store, verified: rate over that of SHA-256 ({files})", f"{wall:.2f}", f"≥ {TARGET}"),
            ("the same in CPU seconds", f"{cpu:.2f}", "–"),
            ("one file of 32 MB, rate over that of SHA-256", f"{ratios(store, [one], root / 'out')[0]:.2f}", "–"),
            ("the small files alone", f"{ratios(store, [small], root / 'out')[0]:.2f}", "–"),
        ]
