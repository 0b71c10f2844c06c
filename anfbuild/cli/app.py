"""From argv to an exit code."""

from __future__ import annotations

import contextlib
import functools
import gc
import importlib
import json
import os
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

from anfbuild import __version__
from anfbuild.cli import interruption
from anfbuild.cli.arguments import Arguments, parse
from anfbuild.cli.console import Console, open_streams, visible, write
from anfbuild.cli.seam import INTERRUPTED, Build, describe
from anfbuild.errors import AnfbuildError, RecipeError


def run() -> NoReturn:
    """Be the process `anfbuild`: run its command line and end with the exit code."""
    code = main()
    if code == interruption.EXIT_CODE:
        # CPython remembers an interruption that came while it ran source text, as the making of a dataclass does, also
        # when it was handled: it would end by a signal, not with the exit code. All is tidied up and flushed by now.
        os._exit(code)
    sys.exit(code)


def main(argv: Sequence[str] | None = None, *, build: Build | None = None) -> int:
    """Run the command line `argv` (default: the process's own) in the working directory.

    Returns the exit code: 0 built, 1 a step failed, 2 recipe or command line wrong, 3 a gate failed, 4 versions do not
    match, 130 interrupted. `build` stands in for the real build.
    """
    # Imports and the composed recipe make some 10^5 objects that all live on: looking for garbage among them each time
    # another 700 are made costs a tenth of a build that has nothing to do.
    gc.set_threshold(1_000_000)
    with interruption.listening():
        return _main(sys.argv[1:] if argv is None else list(argv), build)


def _main(words: Sequence[str], build: Build | None) -> int:
    open_streams()
    as_json, debug = "--json" in words, "--debug" in words
    failure: BaseException
    try:
        code = _run(parse(words), build)
        return interruption.EXIT_CODE if code and interruption.noted() else code
    except (Exception, KeyboardInterrupt) as error:
        failure = error
    code, document, text = _tell(failure)
    if debug:
        _print_traceback(failure)
    _stderr(text)
    if as_json:
        _print_json({"exit_code": code, "error": document})
    return code


def _tell(failure: BaseException) -> tuple[int, dict[str, Any], str]:
    """The exit code, the JSON document and the text of what ended the run; after an interruption, that one."""
    if interruption.noted() or isinstance(failure, KeyboardInterrupt):
        return interruption.EXIT_CODE, {"what": INTERRUPTED}, INTERRUPTED
    if isinstance(failure, AnfbuildError):
        return failure.exit_code, describe(failure), str(failure)
    what = f"unexpected {type(failure).__name__}: {' '.join(str(failure).split())}"
    return 1, {"what": what, "remedy": "Run again with --debug."}, f"{what} (run again with --debug)"


def _run(arguments: Arguments, build: Build | None) -> int:
    if arguments.help or arguments.version:
        from anfbuild.cli.help import HELP

        write(HELP if arguments.help else f"anfbuild {__version__}\n", sys.stdout)
        return 0
    project = _project()
    if arguments.completion:
        from anfbuild.cli.completion import complete

        complete(arguments.overrides, project)
        return 0
    if arguments.config:
        return _print_config(arguments, project)
    console = Console(use_stderr=arguments.json)
    # Whatever a library prints must not end up in the document.
    with contextlib.redirect_stdout(sys.stderr) if arguments.json else contextlib.nullcontext():
        if arguments.verb is not None:
            code, document = _verb(arguments, project, console)
        else:
            code, document = _build(arguments, project, build, console)
    if arguments.json:
        _print_json(document)
    return code


def _project() -> Path:
    try:
        return Path.cwd()
    except OSError as error:
        raise RecipeError(
            "the current folder is gone or cannot be read", remedy="Go to the project's folder and run again."
        ) from error


def _verb(arguments: Arguments, project: Path, console: Console) -> tuple[int, dict[str, Any]]:
    code: int
    document: dict[str, Any]
    module = importlib.import_module(f"anfbuild.cli.verbs.{arguments.verb}")
    code, document = module.run(arguments, project, console)
    return code, document


def _build(arguments: Arguments, project: Path, build: Build | None, console: Console) -> tuple[int, dict[str, Any]]:
    if "--junit" not in arguments.options:
        code, document, _ = _build_one_or_many(arguments, project, build, console)
        return code, document
    from anfbuild.cli import junit

    file = junit.check(arguments.options["--junit"], project)
    try:
        code, document, told = _build_one_or_many(arguments, project, build, console)
    except AnfbuildError as error:
        junit.write(file, [junit.broken(describe(error))])
        raise
    except Exception as error:
        junit.write(file, [junit.broken({"what": f"unexpected {type(error).__name__}: {error}", "where": None})])
        raise
    junit.write(file, [junit.suite(name, outcome) for name, outcome in told.items()])
    return code, document


def _build_one_or_many(
    arguments: Arguments, project: Path, build: Build | None, console: Console
) -> tuple[int, dict[str, Any], dict[str, Any]]:
    """The exit code, the document, and by its name what `junit.suite` has to know of each build."""
    attentive = interruption.attentive(build or _real_build(arguments, project))
    return (_sweep if arguments.multirun else _single)(arguments, project, attentive, console)


def _real_build(arguments: Arguments, project: Path) -> Build:
    from anfbuild.cli.build import build
    from anfbuild.cli.remotes import settings

    asked = [option for option in ("--lock", "--locked") if option in arguments.options]
    if len(asked) == 2 or (asked == ["--lock"] and arguments.multirun):
        raise RecipeError(
            "--lock writes the lock of one build, and checks nothing",
            where="command line",
            remedy="Give --lock without --locked and without -m; -m --locked holds each job to its lock.",
        )
    accept = "--accept" in arguments.options
    if accept and (asked == ["--locked"] or arguments.multirun):
        raise RecipeError(
            "--accept writes the placement contract of one build, which may then run its nodes elsewhere",
            where="command line",
            remedy="Give --accept without --locked and without -m; a sweep holds each job to the contract.",
        )
    return functools.partial(
        build, lock=asked[0] if asked else None, accept=accept, remote=settings(arguments, project)
    )


def _single(
    arguments: Arguments, project: Path, build: Build, console: Console
) -> tuple[int, dict[str, Any], dict[str, Any]]:
    from anfbuild.cli.build import print_event, store_root
    from anfbuild.recipe import compose

    recipe = compose(arguments.overrides, project, store_root(project) / "memo" / "recipes")
    outcome = build(recipe, project, latest=True, folder=None, notify=lambda event: print_event(event, console))
    if outcome.summary:
        console.table(outcome.summary)
    if outcome.folder is not None:
        console.print(f"files: {outcome.folder}")
    if outcome.error is not None:
        if arguments.debug:
            _print_traceback(outcome.error)
        _stderr(str(outcome.error))
    told = {
        "planned": outcome.planned,
        "steps": outcome.steps,
        "failed": outcome.failed,
        "error": None if outcome.error is None else describe(outcome.error),
        "results": outcome.results,
        "contract": outcome.to_json().get("contract"),
    }
    return outcome.exit_code, outcome.to_json(), {recipe.name: told}


def _sweep(
    arguments: Arguments, project: Path, build: Build, console: Console
) -> tuple[int, dict[str, Any], dict[str, Any]]:
    from anfbuild.cli.sweep import HEADINGS, resume, sweep

    if (name := arguments.options.get("--resume")) is not None:
        result = resume(name, project, build, console, debug=arguments.debug)
    else:
        result = sweep(arguments.overrides, project, build, console, debug=arguments.debug)
    for error in result.errors():
        console.print(error)
    console.table(result.table(), headings=HEADINGS)
    console.print(f"results: {result.folder}")
    if result.interrupted:
        _stderr(f"{INTERRUPTED}, or anfbuild -m --resume {result.folder.name}")
    elif result.error is not None:
        _stderr(str(result.error))
    return result.exit_code, result.to_json(), {job["folder"]: job for job in result.jobs}


def _print_config(arguments: Arguments, project: Path) -> int:
    from omegaconf import OmegaConf

    from anfbuild.recipe import compose

    config = compose(arguments.overrides, project).config
    if arguments.json:
        _print_json(config)
    else:
        write(OmegaConf.to_yaml(OmegaConf.create(config)), sys.stdout)
    return 0


def _print_json(document: dict[str, Any]) -> None:
    write(json.dumps(document, indent=2) + "\n", sys.stdout)  # ASCII, which every stream can take


def _stderr(text: str) -> None:
    write(f"anfbuild: {visible(text)}\n", sys.stderr)


def _print_traceback(error: BaseException) -> None:
    write(visible("".join(traceback.format_exception(error))), sys.stderr)
