"""The folder of a sweep: `sweep.json` says what was asked, `job.json` in the folder of each job what became of it."""

from __future__ import annotations

import datetime
import json
import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import NoneType
from typing import Any

from anfbuild.cli.sweep.jobs import Job, folder_name
from anfbuild.cli.sweep.state import write
from anfbuild.engine.files import read_regular
from anfbuild.errors import RecipeError, StepError

PLAN, RECORD, STOP = "sweep.json", "job.json", "stop"
LATEST = "latest"
_FORMAT = 1
_TEXT, _NUMBER, _MAPPING = (str, NoneType), (int, float, NoneType), (dict, NoneType)
_KINDS: dict[str, tuple[type, ...]] = {
    "job": (int,),
    "exit_code": (int,),
    "overrides": (list,),
    "planned": (list,),
    "steps": (list,),
    "results": _MAPPING,
    "error": _MAPPING,
    "contract": _MAPPING,
    **dict.fromkeys(("folder", "key", "metric", "failed"), _TEXT),
    **dict.fromkeys(("accuracy_quantized", "latency_ms", "package_mb"), _NUMBER),
}
"""Field of a job's record -> what it may be."""
_SHOWN = 8


def new(project: Path) -> Path:
    """A folder below `artifacts/sweeps` of the project that is not there yet."""
    stamp = datetime.datetime.now(datetime.UTC).strftime("%Y%m%dT%H%M%SZ")
    return _sweeps(project) / f"{stamp}-{secrets.token_hex(2)}"


def make(folder: Path) -> None:
    """Make the folder of a sweep. Raises StepError."""
    try:
        folder.mkdir(parents=True)
    except OSError as error:
        raise StepError(
            f"the sweep's folder cannot be made: {error.strerror}",
            where=str(folder),
            remedy="Check the rights of the project's folder, and that artifacts is a folder.",
        ) from error


def find(project: Path, name: str) -> Path:
    """The folder of the sweep called `name`, or of the newest for `latest`. Raises RecipeError: there is none."""
    plans = _sweeps(project).glob(f"*/{PLAN}")
    folders = sorted((plan.parent for plan in plans), key=lambda folder: _age(folder), reverse=True)
    names = [folder.name for folder in folders]
    if folders and name in (LATEST, *names):
        return folders[0] if name == LATEST else folders[names.index(name)]
    raise RecipeError(
        f"there is no sweep {name!r}" if folders else "there is no sweep to go on with",
        where="--resume",
        choices=[LATEST, *names[:_SHOWN]] if folders else [],
        remedy="Name one of artifacts/sweeps; these are the newest." if folders else "Start one: anfbuild -m ...",
    )


def write_plan(folder: Path, overrides: Sequence[str], jobs: Sequence[Job] | None) -> None:
    """Note what was asked for; `jobs` is None where the sweeper makes them up as it goes."""
    listed = None if jobs is None else [[list(job.overrides), list(job.varied)] for job in jobs]
    write(folder / PLAN, {"format": _FORMAT, "overrides": list(overrides), "jobs": listed})


def read_plan(folder: Path) -> tuple[list[str], list[Job]]:
    """The overrides and the jobs that a sweep was started with. Raises RecipeError: it cannot be gone on with."""
    try:
        plan = json.loads(read_regular(folder / PLAN))
        if plan["format"] != _FORMAT:
            raise ValueError(f"its format is {plan['format']!r}, not {_FORMAT}")
        overrides = [str(line) for line in plan["overrides"]]
        if plan["jobs"] is not None:
            jobs = [Job(i, tuple(lines), tuple(varied)) for i, (lines, varied) in enumerate(plan["jobs"])]
            return overrides, jobs
    except (OSError, ValueError, LookupError, TypeError, RecursionError) as error:
        raise RecipeError(
            f"this does not say what the sweep is: {error}", where=str(folder / PLAN), remedy="Start a new sweep."
        ) from error
    raise RecipeError(
        "the sweeper of this sweep makes up its jobs from one another's results",
        where=str(folder),
        remedy="Start it again: anfbuild -m ...; finished steps are in the store.",
    )


def records(folder: Path) -> list[dict[str, Any]]:
    """The records of the jobs that ended, by number. What is damaged counts as missing."""
    found = [record for path in folder.glob(f"*/{RECORD}") if (record := read(path.parent)) is not None]
    return sorted(found, key=lambda record: int(record["job"]))


def read(folder: Path) -> dict[str, Any] | None:
    """The record in a job's folder; None where there is none that can be read."""
    try:
        record: dict[str, Any] = json.loads(read_regular(folder / RECORD))
        return record if _is_record(record) else None
    except (OSError, ValueError, RecursionError):
        return None


def _is_record(value: object) -> bool:
    """Whether `value` is what a job left: all that is made of a record relies on these kinds."""
    if not isinstance(value, dict) or not value.keys() >= {"job", "exit_code", "overrides"}:
        return False
    error = value.get("error")
    return all(isinstance(value[name], kinds) for name, kinds in _KINDS.items() if name in value) and (
        error is None or isinstance(error.get("what"), str)
    )


def write_record(folder: Path, record: dict[str, Any]) -> None:
    """Keep a job's record in the job's folder. Raises OSError."""
    own = folder / folder_name(int(record["job"]), record["overrides"])
    own.mkdir(parents=True, exist_ok=True)
    write(own / RECORD, record)


def pending(folder: Path, jobs: Sequence[Job]) -> list[Job]:
    """The jobs that have no record, or one that says that a step failed."""
    ended = {record["job"] for record in records(folder) if record["exit_code"] != StepError.exit_code}
    return [job for job in jobs if job.number not in ended]


@contextmanager
def held(folder: Path) -> Iterator[None]:
    """Be the only process that runs this sweep. Raises RecipeError: another one does."""
    from filelock import FileLock, Timeout

    try:
        with FileLock(folder / ".lock", timeout=0):
            yield
    except Timeout as error:
        raise RecipeError(
            f"the sweep {folder.name} is running", where="--resume", remedy="Wait for its end, or interrupt it."
        ) from error


def _sweeps(project: Path) -> Path:
    return project / "artifacts" / "sweeps"


def _age(folder: Path) -> tuple[str, int]:
    """What sorts by time: the stamp in the name, then when the plan was written."""
    return folder.name.partition("-")[0], (folder / PLAN).stat().st_mtime_ns
