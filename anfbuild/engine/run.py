"""The run: a graph of step instances, brought up to date for one composed recipe.

doit orders the steps and reports on them; its `uptodate` is a look into the store and its action is the step. The
store alone knows what is up to date, so doit's own record lives in memory and dies with the process.
"""

from __future__ import annotations

import dataclasses
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from anfbuild.engine.cache import Cache
from anfbuild.engine.code import CodeIndex
from anfbuild.engine.faults import as_user_error, without_workspace
from anfbuild.engine.instances import Part, expand, part_of, step_of
from anfbuild.engine.key import FORMAT, action_key, content_digest, content_stamps, key_values, read_slice
from anfbuild.engine.result import Result
from anfbuild.engine.step import Job, Step
from anfbuild.engine.store import Damaged
from anfbuild.errors import AnfbuildError, RecipeError, StepError, did_you_mean

_ATTEMPTS = 3
"""How often the same damaged blobs are rebuilt before the disk is taken for broken."""


@dataclasses.dataclass(frozen=True)
class Event:
    """Something the user may want to see: `kind` is hit, wait, start, progress, done or failed; `seconds` is null but
    for done; `origin` says of a hit whether it is local or was found on a remote now; `received` and `total` say how
    many bytes of a download have come, and how many there are, if that is known."""

    kind: str
    step: str
    key: str | None = None
    seconds: float | None = None
    origin: str | None = None
    received: int | None = None
    total: int | None = None


class Build:
    """One recipe, one graph, one store."""

    def __init__(
        self,
        name: str,
        steps: Mapping[str, Step],
        tree: Mapping[str, Any],
        cache: Cache,
        *,
        project: Path,
        code: CodeIndex,
        notify: Callable[[Event], None],
        private: Iterable[str] = (),
        host: Callable[[], Mapping[str, Any]] = dict,
        parts: Mapping[str, Part] | None = None,
        joint: Mapping[str, Step] | None = None,
    ) -> None:
        """`name` is the recipe's, `tree` the recipe composed, `project` the folder that its relative paths start from,
        `code` knows the package that holds the steps; builds of one process share it, as they share the imported code,
        and its memo of files. What the steps in `private` make, and all that
        is made from it, stays on this machine. What `host` tells is kept with each result as where it was made.
        With `parts` there is an instance of each step for every part, and one of each `joint` step over all of them;
        where a step is named, an instance is meant.
        """
        self.name = name
        self._steps = expand(steps, tree, parts, joint)
        self._cache = cache
        self._store = cache.store
        self._project = project
        self._memo = code.memo
        self._code = code
        self._notify = notify
        self._host = host
        self._private = self._descendants(private)
        self._results: dict[str, Result] = {}
        self.events: list[Event] = []
        self.error: BaseException | None = None

    # ---- what is asked of a build

    def run(self, goal: str) -> bool:
        """Bring `goal` and what it needs up to date. False when a step failed: `error` then says why."""
        from anfbuild.engine.tasks import run

        code = run(self.tasks(goal), goal)
        self._memo.save()
        if isinstance(self.error, KeyboardInterrupt):
            raise self.error
        if code and self.error is None:
            raise RuntimeError(f"doit ended with {code} though no step failed")
        if self.error is None:
            self._record(goal)
        return self.error is None

    def _record(self, goal: str) -> None:
        steps = {name: self._results[name].key for name in self.ancestors(goal)}
        document = {"recipe": self.name, "goal": goal, "steps": steps, "private": sorted(self._private & steps.keys())}
        self._store.record(self.name, self.goal_key(goal) or "", document)

    def close(self, *, wait: bool = True) -> None:
        """Finish what is on its way to a remote, within bounds; without `wait`, let it go."""
        self._cache.close(wait=wait)

    def members(self, goal: str) -> list[str]:
        """The steps that `goal` stands for: itself, or that step of every part. An unknown goal is a RecipeError."""
        if goal in self._steps:
            return [goal]
        found = [name for name in self._steps if part_of(name) and step_of(name) == goal]
        if not found:
            raise RecipeError(
                f"there is no step {goal!r}",
                where="goal",
                choices=sorted(self._steps),
                remedy=f"{did_you_mean(goal, self._steps)}Name one of the steps.",
            )
        return found

    def goal_key(self, goal: str) -> str | None:
        """The key of a goal: its step's, or one over those of the steps it stands for; None while one has none."""
        members = self.members(goal)
        if members == [goal]:
            return self.key(goal)
        keys = {name: self.key(name) for name in members}
        return None if None in keys.values() else action_key({"goal": goal, "keys": keys})

    def ancestors(self, goal: str) -> list[str]:
        """`goal` and all that it needs, each after what it needs itself. An unknown goal is a RecipeError."""
        order: dict[str, None] = {}

        def visit(name: str) -> None:
            if name not in order:
                for need, _ in self._needs(name):
                    visit(need)
                order[name] = None

        for member in self.members(goal):
            visit(member)
        return list(order)

    def result(self, name: str) -> Result:
        """The result of a step, which is run if there is none. Its bytes may be elsewhere still: `export` gets them."""
        return self._resolve(name) or self._execute(name)

    def found(self, name: str) -> Result | None:
        """The result that a step has already; nothing is run."""
        return self._resolve(name)

    def bring(self, name: str) -> bool:
        """Whether a step has a result, all of whose bytes are in the store or could be brought there."""
        result = self._resolve(name)
        return result is not None and self._ensure(name, result, result.files.values())

    def needs(self, name: str) -> Mapping[str, tuple[str, str]]:
        """Each need of a step as its manifest's `inputs` call it -> (step, folder of it or "" for all)."""
        return self._steps[name].needs

    def step_name(self, name: str) -> str:
        """The step that an instance is of, as manifests call it."""
        return self._steps[name].step.name

    def prefix(self, name: str) -> str:
        """What the recipe has before the config paths of a step."""
        return self._steps[name].prefix

    def manifest(self, name: str) -> dict[str, Any] | None:
        """All that decides what a step makes, or None while something it needs has no result yet."""
        inputs = {}
        for label, (need, folder) in self.needs(name).items():
            result = self._resolve(need)
            if result is None:
                return None
            inputs[label] = result.digest(folder)
        return {"format": FORMAT, "step": self.step_name(name), **self.own_fields(name), "inputs": inputs}

    def own_fields(self, name: str) -> dict[str, Any]:
        """The part of a step's manifest that needs no result of another one: code, config and tools."""
        module = self._steps[name].step.run.__module__
        return {
            "code": self._code.digest(module),
            "config": self.key_fields(name),
            "tools": self._code.versions(module),
        }

    def code_files(self, name: str) -> dict[str, str]:
        """The files of the package that the step's code is made of: `{path: SHA-256}`."""
        return self._code.closure(self._steps[name].step.run.__module__)[0]

    def key(self, name: str) -> str | None:
        """The action key of a step, or None while something it needs has no result yet."""
        if name in self._results:
            return self._results[name].key
        manifest = self.manifest(name)
        return None if manifest is None else action_key(manifest)

    def key_fields(self, name: str) -> dict[str, Any]:
        """The config part of a step's key: `{config path: value}`."""
        try:
            return key_values(self._slice(name), lambda path: content_digest(path, self._memo), self._code.plugin)
        except RecipeError as error:
            error.where = f"{self.prefix(name)}{error.where}"
            raise

    def _slice(self, name: str) -> Any:
        instance = self._steps[name]
        return read_slice(instance.step.config, instance.tree, self._project)

    def observations(self, key: str | None) -> dict[str, float]:
        """What the step noted that made the result under `key`: figures that differ from run to run."""
        noted: dict[str, float] = self._store.meta(key).get("observations", {}) if key else {}
        return noted

    def export(self, name: str, file: str, destination: Path) -> None:
        """Copy one file of a step's result to `destination`, building the step again if the bytes are damaged."""
        for _ in range(_ATTEMPTS):
            with suppress(Damaged):  # the blob is in quarantine now, so that it is brought or built again
                return self._store.copy_file(self._at_hand(name, files=[file]), file, destination)
        raise StepError(f"the store loses {file!r} of step {name!r} again and again", where=str(self._store.root))

    def tasks(self, goal: str) -> list[dict[str, Any]]:
        """The same graph as doit task dictionaries; the last is the goal, be it a group of steps."""
        members = self.members(goal)
        group = {"name": goal, "actions": None, "task_dep": members, "doc": f"The step {goal} of every part."}
        return [
            {
                "name": name,
                "actions": [(self._act, [name])],
                "uptodate": [(self.is_up_to_date, [name])],
                "task_dep": [need for need, _ in self._needs(name)],
                "doc": (self._steps[name].step.run.__doc__ or name)
                .strip()
                .splitlines()[0],  # `python -OO` has no docstrings
                "io": {"capture": False},
            }
            for name in self.ancestors(goal)
        ] + ([] if members == [goal] else [group])

    # ---- what doit asks

    def is_up_to_date(self, name: str, *_: Any) -> bool:
        """doit's question: is there a result under the step's key?"""
        try:
            hit = self._resolve(name)
        except Exception as error:
            self.error = as_user_error(name, error, self._store.root)
            return False
        if hit is not None:
            self._tell_hit(name, hit.key)
        return hit is not None

    def _act(self, name: str) -> bool:
        """doit's action. False, with `error` set, where the step fails."""
        try:
            if self.error is None:
                self._execute(name)
        except KeyboardInterrupt as error:
            self.error = error
        except Exception as error:
            self.error = as_user_error(name, error, self._store.root)
        if self.error is not None:
            self._tell(Event("failed", name))
        return self.error is None

    # ---- keys and results

    def _needs(self, name: str) -> Iterable[tuple[str, str]]:
        """(step, folder) of each need, in the order in which the step names them."""
        return self._steps[name].needs.values()

    def _descendants(self, roots: Iterable[str]) -> set[str]:
        """`roots` and all steps that need one of them, over any number of steps."""
        reached = set(roots)
        while more := {name for name in self._steps if any(n in reached for n, _ in self._needs(name))} - reached:
            reached |= more
        return reached

    def _resolve(self, name: str) -> Result | None:
        if name not in self._results:
            manifest = self.manifest(name)
            if manifest is None:
                return None
            found = self._lookup(name, manifest)
            if found is None:
                return None
            self._results[name] = found
        return self._results[name]

    def _lookup(self, name: str, manifest: Mapping[str, Any]) -> Result | None:
        return self._cache.lookup(action_key(manifest), self._meta(name, manifest), private=name in self._private)

    def _meta(self, name: str, manifest: Mapping[str, Any]) -> dict[str, Any]:
        """Where a result comes from, as far as it is known before the step runs."""
        return {
            "manifest": manifest,
            "needs": {
                label.partition("/")[0]: self._results[need].key
                for label, (need, _) in self.needs(name).items()
                if need in self._results
            },
            "code": self.code_files(name),
            "recipe": self.name,
        }

    def _at_hand(self, name: str, *, folder: str = "", files: Iterable[str] | None = None) -> Result:
        """The result of a step, with the bytes of the files below `folder`, or of `files`, in the store: brought, or
        built again."""
        result = self.result(name)
        wanted = result.select(folder).values() if files is None else [result.files[file] for file in files]
        return result if self._ensure(name, result, wanted) else self._execute(name)

    def _ensure(self, name: str, result: Result, blobs: Iterable[tuple[str, int]]) -> bool:
        return self._cache.ensure(blobs, private=result.private or name in self._private)

    # ---- execution

    def _execute(self, name: str) -> Result:
        damaged: Counter[str] = Counter()
        while max(damaged.values(), default=0) < _ATTEMPTS:
            for need, folder in self._needs(name):
                self._at_hand(need, folder=folder)
            needs = {need: self.result(need) for need, _ in self._needs(name)}
            manifest = self.manifest(name)
            assert manifest is not None, "all needs have results"
            key = action_key(manifest)
            try:
                return self._execute_locked(name, key, manifest, needs)
            except _InputDamaged as found:
                damaged[found.step] += 1
                self._rebuild(found.step)
        raise StepError(
            f"the inputs of step {name!r} are damaged again each time they are rebuilt",
            where=str(self._store.root),
            remedy="Check the disk, or set ANFBUILD_CACHE to another folder.",
        )

    def _rebuild(self, name: str) -> None:
        self._results.clear()
        self._execute(name)

    def _execute_locked(self, name: str, key: str, manifest: dict[str, Any], needs: Mapping[str, Result]) -> Result:
        with self._store.lock(key, lambda: self._tell(Event("wait", name, key))):
            found = self._lookup(name, manifest)
            if found is not None and self._ensure(name, found, found.files.values()):  # somebody built it meanwhile
                self._results[name] = found
                self._tell_hit(name, key)
                return found
            with self._store.workspace(key) as folder:
                result = self._run_step(name, key, manifest, needs, folder)
        self._results[name] = result
        return result

    def _run_step(
        self, name: str, key: str, manifest: dict[str, Any], needs: Mapping[str, Result], folder: Path
    ) -> Result:
        step = self._steps[name].step
        observations: dict[str, float] = {}
        job = Job(
            config=self._slice(name),
            inputs=self._copy_inputs(name, needs, folder / "inputs"),
            output=folder / "output",
            scratch=folder / "scratch",
            observe=observations.__setitem__,
            downloads=self._store.downloads,
            progress=lambda received, total: self._notify(Event("progress", name, key, received=received, total=total)),
        )
        job.output.mkdir()
        job.scratch.mkdir()
        self._tell(Event("start", name, key))
        stamps = content_stamps(job.config)
        started = time.perf_counter()
        try:
            step.run(job)
        except AnfbuildError as error:
            raise without_workspace(error, folder) from error
        seconds = time.perf_counter() - started
        self._refuse_moving_inputs(name, manifest, job.config, stamps)
        meta = {
            **self._meta(name, manifest),
            "seconds": round(seconds, 3),
            "observations": observations,
            "host": dict(self._host()),
        }
        result = self._cache.commit(key, job.output, meta, private=name in self._private)
        self._tell(Event("done", name, key, seconds))
        return result

    def _copy_inputs(self, name: str, needs: Mapping[str, Result], root: Path) -> dict[str, Path]:
        folders = {}
        for label, (need, folder) in self.needs(name).items():
            destination = root / label.replace("/", "-")
            destination.mkdir(parents=True)
            try:
                self._store.copy_out(needs[need], folder, destination)
            except Damaged as damaged:
                raise _InputDamaged(need) from damaged
            folders[label] = destination
        return folders

    def _refuse_moving_inputs(
        self, name: str, manifest: Mapping[str, Any], config: Any, stamps: Mapping[str, list[int]]
    ) -> None:
        """A file outside the store that changed while the step read it, be it for a moment, would be cached under the
        wrong key."""
        if self.key_fields(name) != manifest["config"] or content_stamps(config) != stamps:
            raise StepError(
                f"a file that step {name!r} reads changed while it ran; nothing was kept",
                remedy="Run the command again when the file is complete.",
            )

    def _tell_hit(self, name: str, key: str) -> None:
        self._tell(Event("hit", name, key, origin=self._cache.origin(key)))

    def _tell(self, event: Event) -> None:
        self.events.append(event)
        self._notify(event)


class _InputDamaged(Exception):
    def __init__(self, step: str) -> None:
        self.step = step
        super().__init__(step)
