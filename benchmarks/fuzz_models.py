"""Mutate small models of each format and convert them: each is converted or refused, none crashes, hangs or grows.

    python benchmarks/fuzz_models.py --count 1000 [--first 0] [--seconds 20] [--gigabytes 4] [--kinds onnx tflite …]

`--kinds pt2 pt keras h5` takes PyTorch and TensorFlow, and many seconds a mutant.

They are converted in processes of their own with bounds on time and memory, so that the crash of a library is seen as
what it is. Ends with 1 where a mutant did anything but these two.
"""

from __future__ import annotations

import argparse
import collections
import resource
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

TESTS = Path(__file__).parents[1] / "tests"
sys.path[:0] = [str(TESTS / "sources"), str(TESTS / "graph")]


def work(seeds: range, kinds: Sequence[str]) -> None:
    """Convert the mutants one by one; say of each what became of it."""
    from mutations import convert, mutant

    from anfbuild.errors import AnfbuildError

    with tempfile.TemporaryDirectory() as folder:
        for seed in seeds:
            kind, data = mutant(seed, kinds)
            path = Path(folder) / f"m.{kind}"
            path.write_bytes(data)
            print(seed, "starts", flush=True)
            try:
                convert(path, kind)
                print(seed, "converted", flush=True)
            except AnfbuildError:
                print(seed, "refused", flush=True)
            except Exception as error:
                print(seed, f"broke: {type(error).__name__}: {' '.join(str(error).split())[:200]}", flush=True)


def run(seeds: range, seconds: float, gigabytes: float, kinds: Sequence[str]) -> dict[int, str]:
    """What became of each mutant; they share a process until one ends it."""
    found: dict[int, str] = {}
    left = seeds
    while left:
        command = [sys.executable, __file__, "--kinds", *kinds, "--worker", str(left.start), str(left.stop)]
        bound = int(gigabytes * 1e9)

        def limit(bound: int = bound) -> None:
            resource.setrlimit(resource.RLIMIT_AS, (bound, bound))

        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, preexec_fn=limit
        )
        try:
            out, _ = process.communicate(timeout=seconds * len(left))
            end = f"crashed: exit code {process.returncode}"
        except subprocess.TimeoutExpired:
            process.kill()
            out, _ = process.communicate()
            end = "hung"
        started = left.start - 1
        for line in out.splitlines():
            seed, _, said = line.partition(" ")
            if seed.isdigit():
                started = int(seed)
                if said != "starts":
                    found[started] = said
        if started in found or started < left.start:
            if started < left.stop - 1:
                found[started + 1] = end
                started += 1
        else:
            found[started] = end
        left = range(started + 1, left.stop)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--gigabytes", type=float, default=4.0)
    parser.add_argument("--kinds", nargs="+", default=["onnx", "tflite", "zip", "tar"])
    parser.add_argument("--worker", type=int, nargs=2)
    arguments = parser.parse_args()
    if arguments.worker:
        work(range(*arguments.worker), arguments.kinds)
        return 0
    last = arguments.first + arguments.count
    groups = [range(start, min(start + 50, last)) for start in range(arguments.first, last, 50)]
    found: dict[int, str] = {}
    with ThreadPoolExecutor(2) as pool:
        bounds = arguments.seconds, arguments.gigabytes, arguments.kinds
        for part in pool.map(lambda seeds: run(seeds, *bounds), groups):
            found |= part
    counts = collections.Counter(what.partition(":")[0] for what in found.values())
    print(", ".join(f"{count} {what}" for what, count in sorted(counts.items())))
    wrong = {seed: what for seed, what in sorted(found.items()) if what not in ("converted", "refused")}
    for seed, what in wrong.items():
        print(f"mutant {seed}: {what}")
    return 1 if wrong or len(found) != arguments.count else 0


if __name__ == "__main__":
    sys.exit(main())
