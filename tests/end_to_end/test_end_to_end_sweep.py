"""Sweeps by real workers: other processes, other nodes, with and without a store in common."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from extras import needed
from projects import Project, write_tiny

JOBLIB = ("hydra/launcher=joblib", "hydra.launcher.n_jobs=2")
RAY = ("hydra/launcher=ray", "+hydra.launcher.ray.init.num_cpus=2")
SWEEP = ("-m", "+recipe=mine", "calibration=minmax,percentile", "quantization=int8,int8_per_channel")
QUICK = (*SWEEP, "goal=quantize")


@pytest.fixture
def tiny(tmp_path: Path) -> Project:
    write_tiny(tmp_path / "project")
    return Project(tmp_path / "project", tmp_path / "store")


def folder_of(project: Project) -> Path:
    (folder,) = (project.folder / "artifacts" / "sweeps").iterdir()
    return folder


def keys_run(project: Project) -> list[str]:
    """The keys of all steps that a job of the sweep ran, rather than found."""
    documents = [json.loads(path.read_text()) for path in folder_of(project).glob("*/run.json")]
    return [step["key"] for document in documents for step in document["steps"] if not step["hit"]]


def results_of(project: Project) -> list[Any]:
    return [json.loads(path.read_text()) for path in sorted(folder_of(project).glob("*/results.json"))]


def processes_of(project: Project) -> list[int]:
    """The processes that have the project's store in their environment."""
    found = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        with suppress(OSError):
            if str(project.store).encode() in path.read_bytes():
                found.append(int(path.parent.name))
    return found


def start_and_wait(project: Project, *arguments: str, line: str) -> subprocess.Popen[str]:
    """Start anfbuild and wait until it prints a line that begins with `line`."""
    process = project.start(*arguments)
    assert process.stdout is not None
    assert any(text.startswith(line) for text in process.stdout)
    return process


def assert_no_process_left(project: Project) -> None:
    until = time.monotonic() + 15
    while processes_of(project) and time.monotonic() < until:
        time.sleep(0.1)
    assert processes_of(project) == []


def test_two_workers_run_each_step_once(tiny: Project) -> None:
    needed("hydra_plugins.hydra_joblib_launcher")
    ran = tiny.run("-m", "+recipe=mine", "quantization=int8,int8_per_channel", *JOBLIB, "--json")
    assert ran.code == 0, ran.err
    jobs = ran.document["jobs"]
    assert [job["exit_code"] for job in jobs] == [0, 0]
    assert any(job["pareto"] for job in jobs)
    assert {job["package_mb"] for job in jobs} == {job["results"]["package"]["bytes"] / 1e6 for job in jobs}
    counts = Counter(keys_run(tiny))
    assert counts
    assert set(counts.values()) == {1}
    assert len(counts) == len(list((tiny.store / "ac").iterdir()))
    assert "job 1 done" in ran.err
    assert_no_process_left(tiny)


STORE_OF_ITS_OWN = """\
import os, sys
if "loky" in " ".join(sys.orig_argv):
    os.environ["ANFBUILD_CACHE"] = os.path.join(os.environ["STORES"], str(os.getpid()))
"""
"""A `sitecustomize` that gives each of joblib's workers a store, as if it were on a machine of its own."""


def test_workers_without_a_common_store_share_a_remote(tiny: Project, tmp_path: Path) -> None:
    needed("hydra_plugins.hydra_joblib_launcher")
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "sitecustomize.py").write_text(STORE_OF_ITS_OWN)
    (tmp_path / "remote").mkdir()
    sources = []
    for name, push in (("makers", "1"), ("takers", "0")):
        (tmp_path / name).mkdir()
        variables = {
            "PYTHONPATH": str(tmp_path / "site"),
            "STORES": str(tmp_path / name),
            "ANFBUILD_REMOTE": str(tmp_path / "remote"),
            "ANFBUILD_REMOTE_WRITE": push,
        }
        ran = tiny.run(*QUICK, "dataset.private=false", *JOBLIB, "--json", **variables)
        assert ran.code == 0, ran.err
        assert "remote" not in ran.err
        assert len(list((tmp_path / name).iterdir())) == 2, "one worker did all the work"
        sources.append({step["source"] for job in ran.document["jobs"] for step in job["steps"]})
        keys = [job["key"] for job in ran.document["jobs"]]
    assert "built" in sources[0]
    assert sources[1] == {"remote", "local"}  # what one maker made, the other one's taker has
    by_loop = tiny.run(*QUICK, "dataset.private=false", "--json")
    assert [job["key"] for job in by_loop.document["jobs"]] == keys


def test_a_killed_sweep_goes_on(tiny: Project) -> None:
    process = start_and_wait(tiny, *QUICK, line="job 0 done")
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate(timeout=60)
    first = next(folder_of(tiny).glob("000*/run.json"))
    before = first.stat().st_mtime_ns
    ran = tiny.run("-m", "--resume", "latest", "--json")
    assert ran.code == 0, ran.err
    assert [job["job"] for job in ran.document["jobs"]] == [0, 1, 2, 3]
    assert first.stat().st_mtime_ns == before
    assert len(list(folder_of(tiny).glob("*/job.json"))) == 4


@pytest.mark.parametrize(
    ("number", "launcher"),
    [
        (signal.SIGINT, JOBLIB),
        pytest.param(signal.SIGTERM, JOBLIB, marks=pytest.mark.full),
        pytest.param(signal.SIGINT, RAY, marks=pytest.mark.full),
    ],
)
def test_an_interruption_ends_the_workers(tiny: Project, number: signal.Signals, launcher: Sequence[str]) -> None:
    needed("hydra_plugins.hydra_joblib_launcher")
    process = start_and_wait(tiny, *QUICK, *launcher, line="job 1 started")
    os.kill(process.pid, number)
    process.communicate(timeout=60)
    assert process.returncode == 130
    assert_no_process_left(tiny)


def test_the_number_of_threads_changes_no_key_and_no_byte(tiny: Project, tmp_path: Path) -> None:
    stores = [tmp_path / "one", tmp_path / "three"]
    for store, threads in zip(stores, ("1", "3"), strict=True):
        ran = Project(tiny.folder, store).run("+recipe=mine", "goal=quantize", ANFBUILD_THREADS=threads)
        assert ran.code == 0, ran.err
    one, three = ({path.name: path.read_bytes() for path in (store / "ac").iterdir()} for store in stores)
    assert one == three
    wrong = Project(tiny.folder, tmp_path / "none").run("+recipe=mine", ANFBUILD_THREADS="many")
    assert wrong.code == 2
    assert "$ANFBUILD_THREADS is 'many'" in wrong.err


@pytest.mark.full
def test_jobs_of_a_batch_system(tiny: Project) -> None:
    local = ("hydra/launcher=submitit_local", "hydra.launcher.timeout_min=10")
    process = start_and_wait(tiny, *SWEEP, *local, line="job 1 started")
    os.kill(process.pid, signal.SIGINT)
    process.communicate(timeout=60)
    assert process.returncode == 130
    assert_no_process_left(tiny)
    # Where no job had ended, nothing is left to go on with but what a job wrote while it was being ended.
    left = any(tiny.folder.glob("artifacts/sweeps/*/sweep.json"))
    ran = tiny.run("-m", "--resume", "latest", "--json") if left else None
    if ran is None:
        ran = tiny.run(*SWEEP, *local, "--json")
    assert ran.code == 0, ran.err
    assert len(ran.document["jobs"]) == 4
    assert_no_process_left(tiny)


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A Ray cluster of two nodes of one core, each with a store of its own."""
    import anfbuild

    monkeypatch.setenv("PYTHONPATH", str(Path(anfbuild.__file__).parents[1]))
    monkeypatch.setenv("RAY_AUTH_MODE", "disabled")
    from ray.cluster_utils import Cluster

    def node(name: str) -> dict[str, Any]:
        return {
            "num_cpus": 1,
            "object_store_memory": 100_000_000,
            "include_dashboard": False,
            "env_vars": {"ANFBUILD_CACHE": str(tmp_path / name)},
        }

    nodes = Cluster(initialize_head=True, head_node_args=node("store0"))
    try:
        nodes.add_node(**node("store1"))
        nodes.wait_for_nodes()
        yield nodes
    finally:
        nodes.shutdown()


@pytest.mark.full
def test_two_nodes_of_ray(tiny: Project, cluster: Any, tmp_path: Path) -> None:
    ray = ("hydra/launcher=ray", f"hydra.launcher.ray.init.address={cluster.address}")
    ran = tiny.run(*SWEEP, *ray, "--json")
    assert ran.code == 0, ran.err
    assert [job["exit_code"] for job in ran.document["jobs"]] == [0] * 4
    assert all((tmp_path / name / "ac").is_dir() for name in ("store0", "store1")), "one node did all the work"
    by_loop = Project(tiny.folder, tmp_path / "other").run(*SWEEP, "--json")
    assert [job["key"] for job in by_loop.document["jobs"]] == [job["key"] for job in ran.document["jobs"]]
