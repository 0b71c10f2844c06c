"""Many builds of one command line, by Hydra's sweepers and launchers.

Hydra expands the overrides into jobs and starts them; each job composes its own recipe and reports in a file of its
own. So a job that is wrong fails alone, any launcher will do, and what is finished survives an interruption.
"""

from __future__ import annotations

import copy
import csv
import dataclasses
import datetime
import json
import re
import secrets
import shutil
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hydra._internal.callbacks import Callbacks
from hydra._internal.config_loader_impl import ConfigLoaderImpl
from hydra.core.hydra_config import HydraConfig
from hydra.core.override_parser.types import Override
from hydra.core.plugins import Plugins
from hydra.core.utils import JobRuntime, setup_globals
from hydra.errors import HydraException
from hydra.types import HydraContext, RunMode
from omegaconf import DictConfig, open_dict, read_write

from anfbuild.cli.console import Console
from anfbuild.cli.seam import INTERRUPTED, Build, describe
from anfbuild.errors import AnfbuildError, RecipeError, StepError
from anfbuild.recipe import compose
from anfbuild.recipe.catalogue import PRIMARY, Catalogue
from anfbuild.recipe.composition import is_hydra, parse
from anfbuild.recipe.files import shipped

_QUIET = (
    "hydra/job_logging=none",
    "hydra/hydra_logging=none",
    "hydra.output_subdir=null",
    "hydra.job.chdir=false",
    "hydra.sweep.subdir=.",
)
_ALLOWED = ("hydra/launcher", "hydra/sweeper", "hydra.launcher.KEY", "hydra.sweeper.KEY")
"""What of Hydra the command line may set: who runs the jobs, and who makes them up."""


_NO_FIGURES = ("overrides", "results", "error", "planned", "steps", "failed")
"""What of a job's record is no cell of the table."""


@dataclasses.dataclass(frozen=True)
class Sweep:
    """What a sweep left in its folder: a record for each job that ended, in their order."""

    folder: Path
    jobs: list[dict[str, Any]]
    interrupted: bool = False

    @property
    def exit_code(self) -> int:
        """130 if interrupted, else the highest of the jobs'."""
        return 130 if self.interrupted else max(int(job["exit_code"]) for job in self.jobs)

    def table(self) -> list[tuple[str, ...]]:
        """Rows of job, overrides, exit code, accuracy, latency and key."""
        return [
            (
                str(job["job"]),
                " ".join(job["overrides"]),
                str(job["exit_code"]),
                f"{job['metric']} {job['accuracy_quantized']:.4g}" if job["accuracy_quantized"] is not None else "–",
                f"{job['latency_ms']:.4g}" if job["latency_ms"] is not None else "–",
                str(job["key"] or "–")[:12],
            )
            for job in self.jobs
        ]

    def to_json(self) -> dict[str, Any]:
        """The sweep as JSON, as in its results.json."""
        error = {"what": INTERRUPTED} if self.interrupted else None
        return {"sweep": self.folder.name, "exit_code": self.exit_code, "jobs": self.jobs, "error": error}


class _Loader(ConfigLoaderImpl):
    """Leaves the composing to the job, so that Hydra does not stop at the first job that cannot be composed."""

    def load_sweep_config(self, master_config: DictConfig, sweep_overrides: list[str]) -> DictConfig:
        config = copy.deepcopy(master_config)
        with read_write(config), open_dict(config):
            config.hydra.overrides.task = list(sweep_overrides)
        return config


@dataclasses.dataclass(frozen=True)
class _Job:
    """One job, called by a launcher, in whatever process that uses."""

    project: Path
    folder: Path
    fixed: frozenset[str]
    build: Build
    console: Console
    debug: bool

    def __call__(self, _config: DictConfig) -> dict[str, Any]:
        hydra = HydraConfig.get()
        overrides = [str(item) for item in hydra.overrides.task]
        varied = [item for item in overrides if item not in self.fixed]
        folder = self.folder / "-".join([f"{int(hydra.job.num):03d}", *map(_slug, varied)])[:120]
        folder.mkdir(parents=True, exist_ok=True)
        self.console.print(f"job {hydra.job.num}: {' '.join(varied)}")
        record = {
            "job": int(hydra.job.num),
            "folder": folder.name,
            "overrides": varied,
            **self._outcome(overrides, folder),
        }
        (folder / "job.json").write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
        return record

    def _outcome(self, overrides: list[str], folder: Path) -> dict[str, Any]:
        try:
            recipe = compose(overrides, self.project)
            outcome = self.build(recipe, self.project, latest=False, folder=folder, report=self.console)
        except AnfbuildError as error:
            self._failed(str(error))
            return _record(error.exit_code, error=describe(error))
        except Exception as error:
            text = f"unexpected {type(error).__name__}: {' '.join(str(error).split())}"
            self._failed(text)
            return _record(1, error={"what": text, "remedy": "Run the job alone with --debug."})
        if outcome.error is not None:
            self._failed(str(outcome.error))
        error_json = describe(outcome.error) if outcome.error is not None else None
        return {
            **_record(outcome.exit_code, key=outcome.key, results=outcome.results, error=error_json),
            "planned": list(outcome.planned),
            "steps": list(outcome.steps),
            "failed": outcome.failed,
        }

    def _failed(self, text: str) -> None:
        self.console.print(traceback.format_exc() if self.debug else text)


def sweep(overrides: Sequence[str], project: Path, build: Build, console: Console, *, debug: bool = False) -> Sweep:
    """Build every combination that `overrides` give, below `artifacts/sweeps/ID/` of the project.

    Raises RecipeError: no recipe, no combination, unreadable overrides, no such launcher or sweeper.
    KeyboardInterrupt passes if no job has ended by then; else the jobs that have are the result.
    """
    catalogue = Catalogue(project.resolve(), _Loader)
    parsed = parse(overrides, catalogue.loader)
    for item in parsed:
        _check_hydra(item)
    if not any(item.key_or_group == "recipe" for item in parsed):
        compose(overrides, project)  # says which recipes there are
    stamp = datetime.datetime.now(datetime.UTC).strftime("%Y%m%dT%H%M%SZ")
    folder = project / "artifacts" / "sweeps" / f"{stamp}-{secrets.token_hex(2)}"
    _make(folder)
    fixed = frozenset(item.input_line or "" for item in parsed if not item.is_sweep_override())
    interruption: KeyboardInterrupt | None = None
    try:
        _launch(catalogue.loader, parsed, folder, _Job(project, folder, fixed, build, console, debug))
    except KeyboardInterrupt as error:
        interruption = error
    finally:
        result = _collect(folder, interrupted=interruption is not None)
        if not result.jobs:
            shutil.rmtree(folder)
    if result.jobs:
        return result
    raise interruption or RecipeError(
        "there is nothing to build", where="command line", remedy="Look at what the globs match."
    )


def _check_hydra(override: Override) -> None:
    allowed = re.fullmatch(r"hydra(/|\.(?=\w+\.))(launcher|sweeper)(\.[\w.]+)?", override.key_or_group)
    if is_hydra(override) and (not allowed or override.package or "_target_" in (override.input_line or "")):
        raise RecipeError(
            f"{override.input_line!r} is an option of Hydra that a sweep does not take",
            where="command line",
            choices=_ALLOWED,
            remedy="Remove it.",
        )


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True)
    except OSError as error:
        raise StepError(
            f"the sweep's folder cannot be made: {error.strerror}",
            where=str(folder),
            remedy="Check the rights of the project's folder, and that artifacts is a folder.",
        ) from error


def _launch(loader: ConfigLoaderImpl, parsed: Sequence[Override], folder: Path, job: _Job) -> None:
    lines = [item.input_line or "" for item in parsed]
    own = [item.input_line or "" for item in parsed if is_hydra(item)]
    task = [line for line in lines if line not in own]
    hydras = Catalogue(shipped(), _Loader).loader  # how Hydra itself runs is no affair of the project's files
    try:
        config = hydras.load_configuration(PRIMARY, [*_QUIET, f"hydra.sweep.dir='{folder}'", *own], RunMode.MULTIRUN)
        config.hydra.mode = RunMode.MULTIRUN
        config.hydra.overrides.task = task
        setup_globals()
        JobRuntime.instance().set("name", "anfbuild")
        context = HydraContext(config_loader=loader, callbacks=Callbacks(config))
        sweeper = Plugins.instance().instantiate_sweeper(config=config, hydra_context=context, task_function=job)
        sweeper.sweep(arguments=task)
    except (HydraException, ImportError) as error:
        first = " ".join(str(error).partition("\nConfig search path")[0].split())
        raise RecipeError(f"Hydra cannot run this sweep: {first}", where="command line") from error


def _collect(folder: Path, *, interrupted: bool) -> Sweep:
    """Gather the jobs' records into results.json and results.csv."""
    jobs = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(folder.glob("*/job.json"))]
    jobs.sort(key=lambda job: int(job["job"]))
    result = Sweep(folder, jobs, interrupted)
    if not jobs:
        return result
    document = json.dumps(result.to_json(), indent=2)
    (folder / "results.json").write_text(document + "\n", encoding="utf-8")
    rows = [_row(job) for job in jobs]
    columns = list(dict.fromkeys(column for row in rows for column in row))
    # The name of a file that is no text, in a message, is no reason to lose the table.
    with (folder / "results.csv").open("w", encoding="utf-8", errors="backslashreplace", newline="") as stream:
        writer = csv.DictWriter(stream, columns)
        writer.writeheader()
        writer.writerows(rows)
    return result


def _row(job: dict[str, Any]) -> dict[str, Any]:
    varied = dict(item.lstrip("+~").partition("=")[::2] for item in job["overrides"])
    figures = {key: job[key] for key in job if key not in _NO_FIGURES}
    return {"job": job["job"], **varied, **figures, "error": (job["error"] or {}).get("what")}


def _record(
    exit_code: int,
    *,
    key: str | None = None,
    results: dict[str, Any] | None = None,
    error: dict[str, Any] | None = None,
) -> dict[str, Any]:
    accuracy = (results or {}).get("accuracy") or {}
    latency = (results or {}).get("latency_ms") or {}
    return {
        "exit_code": exit_code,
        "key": key,
        "metric": accuracy.get("metric"),
        "accuracy_float": accuracy.get("float"),
        "accuracy_quantized": accuracy.get("quantized"),
        "accuracy_emulated": accuracy.get("emulated"),
        "latency_ms": latency.get("total"),
        "error": error,
        "results": results,
        "planned": [],
        "steps": [],
        "failed": None,
    }


def _slug(override: str) -> str:
    return re.sub(r"[^\w.]+", "_", override, flags=re.ASCII).strip("_.")
