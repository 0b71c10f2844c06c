"""What workers are told by their environment: their share of the cores, and where the store is."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from omegaconf import OmegaConf

from anfbuild.cores import THREADS, available_cores, told_cores

_SHARED = ("ANFBUILD_CACHE", "ANFBUILD_REMOTE")


def environment(launcher: Any, jobs: int) -> dict[str, str]:
    """What a worker of the configured `launcher` shall have in its environment, if it has nothing of that name.

    `jobs` is how many there are to run. Workers of Ray do not get it from the process that starts them.
    """
    told: dict[str, str] = {}
    cores = told_cores() or _share(launcher, jobs)
    if cores is not None:
        told[THREADS] = str(cores)
    if _select(launcher, "ray") is not None:
        told |= {name: os.environ[name] for name in _SHARED if os.environ.get(name)}
        if "ANFBUILD_CACHE" in told:
            told["ANFBUILD_CACHE"] = str(Path(told["ANFBUILD_CACHE"]).absolute())
    return told


def _share(launcher: Any, jobs: int) -> int | None:
    """The cores of one job, or None where the launcher runs one job at a time or leaves it to a scheduler."""
    if (workers := _select(launcher, "n_jobs")) is not None:
        cores = available_cores()
        count = int(workers) if workers > 0 else max(1, cores + 1 + int(workers))
        return max(1, cores // min(count, max(1, jobs)))
    if _select(launcher, "ray") is not None:
        return max(1, int(_select(launcher, "ray.remote.num_cpus") or 1))
    cpus = _select(launcher, "cpus_per_task")
    return None if cpus is None else int(cpus)


def _select(launcher: Any, key: str) -> Any:
    return OmegaConf.select(launcher, key)
