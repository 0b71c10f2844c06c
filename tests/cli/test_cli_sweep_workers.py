from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hydra.core.utils import JobReturn, JobStatus
from omegaconf import OmegaConf

from anfbuild.cli.sweep import records, state
from anfbuild.cli.sweep.jobs import Job
from anfbuild.cli.sweep.results import collect, record
from anfbuild.cli.sweep.task import keep
from anfbuild.cli.sweep.workers import environment
from anfbuild.cores import available_cores
from anfbuild.errors import RecipeError


@pytest.fixture(autouse=True)
def _eight_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ANFBUILD_THREADS", "ANFBUILD_CACHE", "ANFBUILD_REMOTE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("os.sched_getaffinity", lambda _pid: set(range(8)))


@pytest.mark.parametrize(
    ("launcher", "jobs", "threads"),
    [
        ({"n_jobs": 2}, 9, "4"),
        ({"n_jobs": -1}, 9, "1"),
        ({"n_jobs": -1}, 4, "2"),
        ({"n_jobs": 20}, 30, "1"),
        ({"ray": {"init": {}, "remote": {}}}, 9, "1"),
        ({"ray": {"init": {}, "remote": {"num_cpus": 3}}}, 9, "3"),
        ({"cpus_per_task": 4}, 9, "4"),
        ({"cpus_per_task": None}, 9, None),
        ({}, 9, None),
    ],
)
def test_each_worker_gets_its_share_of_the_cores(launcher: dict[str, Any], jobs: int, threads: str | None) -> None:
    assert environment(OmegaConf.create(launcher), jobs).get("ANFBUILD_THREADS") == threads


def test_what_the_user_says_goes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANFBUILD_THREADS", "3")
    assert available_cores() == 3
    assert environment(OmegaConf.create({"n_jobs": 8}), 8) == {"ANFBUILD_THREADS": "3"}
    for wrong in ("0", "-1", "x", "1.5", "²"):
        monkeypatch.setenv("ANFBUILD_THREADS", wrong)
        with pytest.raises(RecipeError, match="ANFBUILD_THREADS"):
            available_cores()


def test_workers_of_ray_are_told_where_the_store_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANFBUILD_CACHE", "store")
    monkeypatch.setenv("ANFBUILD_REMOTE", "http://cache")
    told = environment(OmegaConf.create({"ray": {"init": {}, "remote": {}}}), 2)
    assert told["ANFBUILD_CACHE"] == str(Path("store").absolute())
    assert told["ANFBUILD_REMOTE"] == "http://cache"
    assert set(environment(OmegaConf.create({"n_jobs": 2}), 2)) == {"ANFBUILD_THREADS"}


def test_a_record_from_elsewhere_is_kept(tmp_path: Path) -> None:
    job = Job(1, ("+recipe=a", "b=2"), ("b=2",))
    made = {"job": 1, "folder": "001-b_2", "overrides": ["b=2"], **record(3, key="k")}
    keep(tmp_path, job, JobReturn(_return_value=made, status=JobStatus.COMPLETED))
    assert records.read(tmp_path / "001-b_2") == made
    told = state.read(tmp_path / "001-b_2")
    assert told is not None
    assert (told.state, told.exit_code) == (state.FAILED, 3)
    written = (tmp_path / "001-b_2" / "state.json").stat().st_mtime_ns
    keep(tmp_path, job, JobReturn(_return_value=made, status=JobStatus.COMPLETED))
    assert (tmp_path / "001-b_2" / "state.json").stat().st_mtime_ns == written


def test_a_worker_that_broke_leaves_a_record_too(tmp_path: Path) -> None:
    broken = JobReturn(_return_value=OSError("no disk"), status=JobStatus.FAILED, overrides=[])
    keep(tmp_path, Job(0, ("+recipe=a",), ()), broken)
    (job,) = collect(tmp_path, records.records(tmp_path)).jobs
    assert job["exit_code"] == 1
    assert "no disk" in job["error"]["what"]
    assert job["pareto"] is None
    assert json.loads((tmp_path / "results.json").read_text())["jobs"] == [job]
