"""`anfbuild reproduce +recipe=NAME`: build again from nothing, in another environment, and compare all files."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from anfbuild.cli.arguments import Arguments
from anfbuild.cli.build import PACKAGE, build, print_event, store_root
from anfbuild.cli.console import Console
from anfbuild.cli.outcome import Outcome
from anfbuild.cli.single import single_recipe
from anfbuild.cli.twice import DIFFERS, SAME, Built, Line, compare, first
from anfbuild.engine.store import Store
from anfbuild.errors import AnfbuildError, GateError, RecipeError, StepError, VersionError

_LOCK = ".lock"
"""Held as long as the folder is in use."""
_GRACE_S = 20
"""What an interrupted rebuild may take to end its workers."""


def run(arguments: Arguments, project: Path, console: Console) -> tuple[int, dict[str, Any]]:
    """Build, rebuild, compare. Exit code 3 where something differs. Raises AnfbuildError where either build fails."""
    recipe = single_recipe(arguments, project)
    outcome = build(recipe, project, latest=True, folder=None, notify=lambda event: print_event(event, console))
    if outcome.error is not None and not isinstance(outcome.error, GateError):
        raise outcome.error
    keep = "--keep" in arguments.options
    with _scratch(project, keep=keep) as folder:
        console.print(f"building again from nothing in {folder}")
        again = _rebuild(arguments.overrides, project, folder, to_stderr=console.use_stderr)
        lines = compare(
            outcome.planned,
            Built(Store(store_root(project)), _keys(outcome.steps)),
            Built(Store(folder / "store"), _keys(again["steps"])),
        )
    console.table([_row(line) for line in lines], headings=("step", "files", "same?"))
    culprit = first(lines)
    console.print(_verdict(lines, culprit))
    if keep:
        console.print(f"kept: {folder}")
    code = 0 if culprit is None else GateError.exit_code
    return code, _document(outcome, lines, culprit, code, folder if keep else None)


@contextlib.contextmanager
def _scratch(project: Path, *, keep: bool) -> Iterator[Path]:
    """A new folder `artifacts/reproduce-XXXX`; unless it is to be kept, gone afterwards, however that comes.

    What killed ones left goes too: their locks are free. One that was kept has no lock.
    """
    from filelock import FileLock

    artifacts = project / "artifacts"
    try:
        artifacts.mkdir(exist_ok=True)
        _clear(artifacts)
        hidden = Path(tempfile.mkdtemp(prefix=".", dir=artifacts))  # until its lock is held
        lock = FileLock(hidden / _LOCK)
        lock.acquire()
        folder = hidden.rename(artifacts / f"reproduce-{hidden.name[1:]}")
    except OSError as error:
        raise StepError(
            f"no folder can be made to build in: {error.strerror or error}",
            where=str(project / "artifacts"),
            remedy="Check the rights of the project's folder.",
        ) from error
    try:
        yield folder
    finally:
        if keep:
            (folder / _LOCK).unlink(missing_ok=True)
        else:
            shutil.rmtree(folder, ignore_errors=True)
        lock.release()


def _clear(artifacts: Path) -> None:
    """Remove the folders of reproductions that were killed."""
    from filelock import FileLock, Timeout

    for file in artifacts.glob(f"reproduce-*/{_LOCK}"):
        with contextlib.suppress(OSError, Timeout), FileLock(file, timeout=0):
            shutil.rmtree(file.parent, ignore_errors=True)


def _rebuild(overrides: Sequence[str], project: Path, folder: Path, *, to_stderr: bool) -> dict[str, Any]:
    """The document of a build of its own process, environment and store. Raises AnfbuildError where it fails."""
    work, file = folder / "elsewhere", folder / "outcome.json"
    for path in (work, folder / "home", folder / "tmp"):
        path.mkdir()
    request = {"project": str(project), "overrides": overrides, "files": str(folder / "files"), "outcome": str(file)}
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", "anfbuild.cli.rebuild"],
        cwd=work,
        env=_environment(folder),
        stdin=subprocess.PIPE,
        stdout=2 if to_stderr else None,
    )
    try:
        assert process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # it did not come up, which its exit code tells
            process.stdin.write(json.dumps(request).encode() + b"\n")
            process.stdin.flush()
        process.wait()
    finally:
        _end(process)
    if process.returncode == 130:
        raise KeyboardInterrupt
    if not file.exists():
        raise StepError(
            f"the second build ended with code {process.returncode} and no outcome",
            remedy="Run again with --keep, and look at what it said above.",
        )
    document: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    if document["error"] is not None and document["exit_code"] != GateError.exit_code:
        raise _error(document)
    return document


def _environment(folder: Path) -> dict[str, str]:
    """This process's environment with all changed that must not matter, and with no remote."""
    was = {name: value for name, value in os.environ.items() if not name.startswith("ANFBUILD_")}
    path = [] if PACKAGE.parent.name in ("site-packages", "dist-packages") else [str(PACKAGE.parent)]
    path += filter(None, [was.get("PYTHONPATH")])
    locale = "C" if was.get("LC_ALL", was.get("LANG", "")) != "C" else "C.UTF-8"
    return {
        **was,
        **_index_settings(was),
        **dict.fromkeys(("HOME", "USERPROFILE"), str(folder / "home")),
        **dict.fromkeys(("TMPDIR", "TMP", "TEMP"), str(folder / "tmp")),
        **dict.fromkeys(("LANG", "LC_ALL"), locale),
        "TZ": "Pacific/Kiritimati" if was.get("TZ") != "Pacific/Kiritimati" else "Pacific/Niue",
        "PYTHONHASHSEED": "1" if was.get("PYTHONHASHSEED") != "1" else "2",
        "PYTHONPATH": os.pathsep.join(path),
        "ANFBUILD_CACHE": str(folder / "store"),
    }


def _index_settings(was: dict[str, str]) -> dict[str, str]:
    """Where a user's package index is told below a home that the second build does not see."""
    home = Path.home()
    places = {
        "PIP_CONFIG_FILE": [home / ".config" / "pip" / "pip.conf", home / ".pip" / "pip.conf"],
        "NETRC": [home / ".netrc"],
    }
    found = {name: [path for path in paths if path.is_file()] for name, paths in places.items() if name not in was}
    return {name: str(paths[0]) for name, paths in found.items() if paths}


def _end(process: subprocess.Popen[bytes]) -> None:
    """End the rebuild, if it still runs, and let it end its workers."""
    if process.stdin is not None:
        with contextlib.suppress(OSError):
            process.stdin.close()
    if process.poll() is None:
        process.terminate()
    try:
        process.wait(_GRACE_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _error(document: dict[str, Any]) -> AnfbuildError:
    told = document["error"]
    kinds: dict[int, type[AnfbuildError]] = {kind.exit_code: kind for kind in (StepError, RecipeError, VersionError)}
    kind = kinds.get(document["exit_code"], StepError)
    what = f"the second build, from nothing, failed: {told['what']}"
    return kind(what, where=told["where"], choices=told["choices"], remedy=told["remedy"])


def _keys(steps: Sequence[Any]) -> dict[str, str]:
    return {step["step"]: step["key"] for step in steps}


def _row(line: Line) -> tuple[str, str, str]:
    names = ", ".join(file.name for file in line.off[:3])
    more = f" and {len(line.off) - 3} more" if len(line.off) > 3 else ""
    told = line.verdict if line.verdict == SAME else f"{line.verdict}: {names}{more}"
    return line.step, str(line.files), told


def _verdict(lines: Sequence[Line], culprit: Line | None) -> str:
    if culprit is None:
        off = [f"{line.step}/{file.name} {file.verdict}: {file.detail}" for line in lines for file in line.off]
        return "reproduced, but:\n  " + "\n  ".join(off) if off else "reproduced: all files are the same"
    inputs = "its inputs are the same" if culprit.same_inputs else "its inputs are the same within the tolerance"
    files = [f"{file.name} {file.detail}".rstrip() for file in culprit.off if file.verdict == DIFFERS]
    return f"not reproduced: {culprit.step} is the first that differs ({inputs}):\n  " + "\n  ".join(files)


def _document(
    outcome: Outcome, lines: Sequence[Line], culprit: Line | None, code: int, folder: Path | None
) -> dict[str, Any]:
    return {
        "recipe": outcome.name,
        "exit_code": code,
        "steps": [{**dataclasses.asdict(line), "verdict": line.verdict} for line in lines],
        "first_difference": None if culprit is None else culprit.step,
        "kept": None if folder is None else str(folder),
    }
