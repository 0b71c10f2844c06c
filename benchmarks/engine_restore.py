"""How fast results come back from the store, over hashing alone: `python benchmarks/engine_restore.py`.

Both are timed in turn, in one process, over the same bytes, which are in the page cache. Every byte that is restored is
hashed too, so that SHA-256 is the bound of one thread. About a minute, and 1.7 GB below the folder for temporary files.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median

from anfbuild.engine.result import Result
from anfbuild.engine.store import Store

MB = 10**6
TARGET = 0.7

LARGE = [32 * MB] * 16
SMALL = [20_000] * 500

REPEATS = 7


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


def seconds(work: Callable[[], None]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def ratio(store: Store, results: Sequence[Result], out: Path) -> float:
    """Seconds of hashing over seconds of restoring, the median of pairs taken in turn; the first does not count."""

    def hashing() -> None:
        for result in results:
            hash_all(store, result)

    def restoring() -> None:
        for result in results:
            store.copy_out(result, "", out / result.key)

    found = []
    for _ in range(REPEATS + 1):
        alone = seconds(hashing)
        found.append(alone / seconds(restoring))
        shutil.rmtree(out)
    return median(found[1:])


def rows() -> list[tuple[str, str, str]]:
    """(what, figure, target) for each set of files."""
    with tempfile.TemporaryDirectory(prefix="anfbuild-benchmark-") as name:
        root = Path(name).resolve()
        store = Store(root / "store")
        large = committed(store, LARGE, root / "large")
        small = committed(store, SMALL, root / "small")
        one = committed(store, LARGE[:1], root / "one")
        return [
            (
                "restoring results from the store, verified, over SHA-256 of the same bytes "
                f"({len(LARGE)} files of 32 MB, {len(SMALL)} of 20 kB)",
                f"{ratio(store, [large, small], root / 'out'):.2f}",
                f"≥ {TARGET}",
            ),
            ("the same, one file of 32 MB", f"{ratio(store, [one], root / 'out'):.2f}", "–"),
            ("the same, the small files alone", f"{ratio(store, [small], root / 'out'):.2f}", "–"),
        ]


def main() -> None:
    print("| what | figure | target |\n|---|---|---|")
    for row in rows():
        print(f"| {' | '.join(row)} |")


if __name__ == "__main__":
    main()
