"""Starting the jobs, by whatever of Hydra's launchers the command line names."""

from __future__ import annotations

import copy
import os
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from hydra._internal.callbacks import Callbacks
from hydra._internal.config_loader_impl import ConfigLoaderImpl
from hydra.core.override_parser.types import Override
from hydra.core.plugins import Plugins
from hydra.core.utils import JobReturn, JobRuntime, setup_globals
from hydra.errors import HydraException
from hydra.types import HydraContext, RunMode
from omegaconf import DictConfig, open_dict, read_write

from anfbuild.cli.sweep.jobs import Job
from anfbuild.cli.sweep.task import Task
from anfbuild.errors import AnfbuildError, RecipeError, StepError
from anfbuild.recipe.catalogue import PRIMARY, Catalogue
from anfbuild.recipe.composition import is_hydra
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
_EXTRAS = {
    "joblib": "joblib",
    "ray": "ray",
    "ray_aws": "ray",
    "submitit_slurm": "slurm",
    "submitit_local": "slurm",
}
"""Launcher -> the extra of anfbuild that installs it."""
_LONGEST = 300
"""Characters of another program's message."""
_BASIC_LAUNCHER = "hydra._internal.core_plugins.basic_launcher.BasicLauncher"
_BASIC_SWEEPER = "hydra._internal.core_plugins.basic_sweeper.BasicSweeper"


class Loader(ConfigLoaderImpl):
    """Leaves the composing to the job, so that Hydra does not stop at the first job that cannot be composed."""

    def load_sweep_config(self, master_config: DictConfig, sweep_overrides: list[str]) -> DictConfig:
        config = copy.deepcopy(master_config)
        with read_write(config), open_dict(config):
            config.hydra.overrides.task = list(sweep_overrides)
        return config


def check(override: Override, loader: ConfigLoaderImpl) -> None:
    """Raises RecipeError: something of Hydra's that a sweep does not take, or a launcher that is not installed."""
    if not is_hydra(override):
        return
    allowed = re.fullmatch(r"hydra(/|\.(?=\w+\.))(launcher|sweeper)(\.[\w.]+)?", override.key_or_group)
    if not allowed or override.package or override.is_sweep_override() or "_target_" in (override.input_line or ""):
        raise RecipeError(
            f"{override.input_line!r} is an option of Hydra that a sweep does not take",
            where="command line",
            choices=_ALLOWED,
            remedy="Remove it.",
        )
    if override.key_or_group == "hydra/launcher":
        _check_launcher(str(override.value()), _installed(loader))


def _installed(loader: ConfigLoaderImpl) -> list[str]:
    return loader.get_group_options("hydra/launcher")


def _check_launcher(name: str, installed: Sequence[str]) -> None:
    if name in installed:
        return
    known = sorted({*installed, *_EXTRAS})
    if name in _EXTRAS:
        raise RecipeError(
            f"hydra/launcher={name} is not installed",
            where="command line",
            remedy=f"pip install 'anfbuild[{_EXTRAS[name]}]'",
        )
    raise RecipeError(f"there is no hydra/launcher={name}", where="command line", choices=known, remedy="Name one.")


def configuration(lines: Sequence[str], folder: str, task: Sequence[str]) -> DictConfig:
    """How Hydra runs: its defaults, and of the command line what is for Hydra. It is no affair of the project's files.

    `folder` is the sweep's, `task` the overrides of the jobs. Raises RecipeError.
    """
    loader = Catalogue(shipped(), Loader).loader
    with _refusals(RecipeError):
        config = loader.load_configuration(PRIMARY, [*_QUIET, *lines], RunMode.MULTIRUN)
    with read_write(config), open_dict(config):
        config.hydra.mode = RunMode.MULTIRUN
        config.hydra.sweep.dir = folder.replace("${", "\\${")  # a path is no text of Hydra's, whatever is in it
        config.hydra.overrides.task = list(task)
        ray = config.hydra.launcher.get("ray")
        if ray is not None and (ray.init.get("address") or os.environ.get("RAY_ADDRESS")):
            # The launcher gives the size of a store by default, and Ray refuses that for a cluster that is there.
            ray.init.setdefault("object_store_memory", None)
    return config


def makes_up_jobs(config: DictConfig) -> bool:
    """Whether the sweeper decides on jobs as it goes, so that nobody else can tell which there will be."""
    return bool(config.hydra.sweeper._target_ != _BASIC_SWEEPER)


def run(
    loader: ConfigLoaderImpl, config: DictConfig, task: Task, jobs: Sequence[Job]
) -> Iterator[tuple[Job, JobReturn]]:
    """Run `jobs`, which Hydra numbers from 0 as they come. Yields each with what came back, batch by batch, where they
    ran in other processes.


    Raises RecipeError for what Hydra refuses, StepError where the launcher gives up.
    """
    if config.hydra.launcher._target_ == _BASIC_LAUNCHER:
        # It is a loop in this process, and copies Hydra's configuration five times for each job.
        for job in jobs:
            task.run(job.number, job.overrides)
        return
    with _refusals():
        launcher = Plugins.instance().instantiate_launcher(
            config=config, hydra_context=_context(loader, config), task_function=task
        )
    size = config.hydra.sweeper.max_batch_size or len(jobs)
    for start in range(0, len(jobs), size):
        batch = jobs[start : start + size]
        with _refusals():
            returned = launcher.launch([list(job.overrides) for job in batch], initial_job_idx=start)
        yield from zip(batch, returned, strict=True)


def outlives(config: DictConfig) -> bool:
    """Whether the launcher leaves its workers running when it is interrupted, so that they must end themselves."""
    return "submitit" in str(config.hydra.launcher._target_)


def run_sweeper(loader: ConfigLoaderImpl, config: DictConfig, task: Task) -> None:
    """Run the jobs that the sweeper makes up. Raises as `run` does."""
    lines = [str(line) for line in config.hydra.overrides.task]
    with _refusals():
        sweeper = Plugins.instance().instantiate_sweeper(
            config=config, hydra_context=_context(loader, config), task_function=task
        )
        sweeper.sweep(arguments=lines)


def _context(loader: ConfigLoaderImpl, config: DictConfig) -> HydraContext:
    setup_globals()
    JobRuntime.instance().set("name", "anfbuild")
    return HydraContext(config_loader=loader, callbacks=Callbacks(config))


@contextmanager
def _refusals(other: type[AnfbuildError] = StepError) -> Iterator[None]:
    """What Hydra and its launchers end with, as errors that a user can act on; `other` is what their own faults are."""
    try:
        yield
    except AnfbuildError:
        raise
    except Exception as error:
        first = " ".join(str(error).partition("\nConfig search path")[0].split())
        if other is RecipeError or isinstance(error, HydraException | ImportError):
            raise RecipeError(f"Hydra cannot run this sweep: {first}", where="command line") from error
        raise StepError(
            f"the launcher gave up: {type(error).__name__}: {first[:_LONGEST]}",
            remedy="What is finished is kept; anfbuild -m --resume latest goes on with the rest.",
        ) from error


def shut_down() -> None:
    """End what a launcher left running in the background for this process: Ray's processes, if it started any."""
    if (ray := sys.modules.get("ray")) is not None and ray.is_initialized():
        ray.shutdown()
