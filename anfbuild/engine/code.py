"""The code behind a step: which modules of this package it reaches, and which third-party packages they import.

Both are read from the syntax trees, lazy imports included, so that nothing heavy is imported to compute a key.
A name imported through a room's `__init__` is followed to the module that defines it: a change in one pass does not
touch the steps that only use another, and which module the name led to is part of the code. An `__init__` above a
reached module belongs to it where it does more than import and define. So do data files that lie beside the module.
"""

from __future__ import annotations

import ast
import hashlib
import os
import re
import sys
from collections.abc import Iterable, Iterator
from functools import partial
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from anfbuild import plugins
from anfbuild.engine.memo import Memo
from anfbuild.errors import RecipeError

_BODIES = ("body", "orelse", "finalbody", "handlers", "cases")
"""The fields of compound statements that hold statements."""

_DATA_SUFFIXES = {".json", ".csv", ".txt", ".html"}


def analyse(package: str, path: Path) -> dict[str, Any]:
    """What one file says of itself, as JSON: `sha256`; `internal`, the `[module, name | None]` it imports from
    `package`, relative ones with their dots; `external`, the top-level names it imports from elsewhere; `exports`, the
    names it passes on; `door`, whether it does nothing but that; and `inert`, whether it only imports and defines."""
    data = path.read_bytes()
    facts: dict[str, Any] = {
        "sha256": hashlib.sha256(data).hexdigest(),
        "internal": [],
        "external": [],
        "exports": {},
        "door": False,
        "inert": True,
    }
    if path.suffix != ".py":
        return facts
    tree = ast.parse(data, str(path))
    references = [*_imported(tree.body), *_started(tree, data.decode(), package)]
    facts["internal"] = [[m, name] for m, name in references if m.split(".")[0] in (package, "")]
    outside = {m.split(".")[0] for m, _ in references} - {package, "__future__", ""}
    facts["external"] = sorted(outside - set(sys.stdlib_module_names))
    facts["exports"] = {
        alias.asname or alias.name: [_dotted(node), alias.name]
        for node in tree.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    facts["door"] = all(map(_is_door, tree.body))
    facts["inert"] = all(map(_is_inert, tree.body))
    return facts


def _version(distribution: str) -> str:
    """Its version; "absent" where what was remembered of its import names is no longer true."""
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return "absent"


def _canonical(distribution: str) -> str:
    """The one spelling of a distribution's name (PyPA, Names and normalization)."""
    return re.sub(r"[-_.]+", "-", distribution).lower()


def _imported(body: Iterable[ast.AST]) -> Iterator[tuple[str, str | None]]:
    """`(module, name | None)` of each import in these statements and in those below them."""
    for node in body:
        if isinstance(node, ast.Import):
            yield from ((alias.name, None) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from ((_dotted(node), alias.name) for alias in node.names)
        else:  # expressions are left out: they hold most of a tree, and no import
            for part in _BODIES[1:] if _is_for_types(node) else _BODIES:
                yield from _imported(getattr(node, part, ()))


def _is_for_types(node: ast.AST) -> bool:
    """Whether the body of `node` is for type checkers alone."""
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


def _dotted(node: ast.ImportFrom) -> str:
    """The module that it imports from, a relative one with its dots."""
    return "." * node.level + (node.module or "")


def _started(tree: ast.Module, text: str, package: str) -> Iterator[tuple[str, None]]:
    """The modules of `package` that a string names: one that is started by name, as a worker process is, is code of the
    step as well. Only a text that quotes such a name is worth a walk through its tree."""
    name = rf"{re.escape(package)}(?:\.\w+)+"
    if re.search(rf"""["']{name}["']""", text):
        constants = {str(node.value) for node in ast.walk(tree) if isinstance(node, ast.Constant)}
        yield from ((module, None) for module in sorted(constants) if re.fullmatch(name, module))


def _is_door(node: ast.stmt) -> bool:
    if isinstance(node, ast.ImportFrom | ast.Import):
        return True
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Constant)
    return isinstance(node, ast.Assign) and [getattr(target, "id", None) for target in node.targets] == ["__all__"]


def _is_inert(node: ast.stmt) -> bool:
    """Whether the statement, in a package that is loaded on the way to a module, cannot change what that one does."""
    if isinstance(node, ast.Assign | ast.AnnAssign):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        return all(isinstance(target, ast.Name) for target in targets)  # not an attribute of something else
    return _is_door(node) or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)


class CodeIndex:
    """Closures over the modules of one package. It looks at each file once, and then trusts that look: code that was
    imported does not change either."""

    def __init__(self, package: str, root: Path, memo: Memo) -> None:
        """`root` is the folder of the top-level package `package`."""
        self._package = package
        self._root = root
        self.memo = memo
        self._files: dict[str, Path] = {}
        self._beside: dict[str, list[str]] = {}
        self._scan()
        self._known: dict[Path, dict[str, Any]] = {}
        # An older analysis of a file is worth nothing to a newer one: the memo outlives both.
        self._kind = f"{package} {hashlib.sha256(Path(__file__).read_bytes()).hexdigest()}"
        self._owners: dict[str, list[str]] | None = None
        self._closures: dict[str, tuple[dict[str, str], list[str]]] = {}
        self._digests: dict[str, str] = {}
        self._versions: dict[str, dict[str, str]] = {}
        self._plugins: dict[tuple[str, Any], dict[str, Any] | None] = {}
        self._reached: dict[str, tuple[list[str], dict[str, str]]] = {}

    def closure(self, module: str) -> tuple[dict[str, str], list[str]]:
        """What `module` reaches: `{file relative to the package: sha256}` and the third-party import names, sorted.

        A name that came through a door is listed as `room/__init__.py:name`, with the digest of what it stood for.
        """
        if module not in self._closures:
            self._closures[module] = self._close(module)
        return self._closures[module]

    def _close(self, module: str) -> tuple[dict[str, str], list[str]]:
        files: dict[str, str] = {}
        external: set[str] = set()
        seen: set[str] = set()
        pending = [module]
        while pending:
            name = pending.pop()
            path = None if name in seen else self._file(name)
            seen.add(name)
            if path is None:
                continue
            facts = self._facts(path)
            for reached in (path, *self._data_beside(path.parent)):
                files[reached.relative_to(self._root).as_posix()] = self._facts(reached)["sha256"]
            external.update(facts["external"])
            targets, doors = self._reach(name, path, facts)
            files.update(doors)
            pending += targets
        return files, sorted(external)

    def _reach(self, name: str, path: Path, facts: dict[str, Any]) -> tuple[list[str], dict[str, str]]:
        """The modules that `name` makes use of, and the doors that their names came through."""
        if name not in self._reached:
            doors: dict[str, str] = {}
            targets = {
                found
                for module, attribute in facts["internal"]
                for found in self._resolve(_absolute(module, name, path), attribute, doors)
            }
            self._reached[name] = sorted(targets | self._busy_above(name)), doors
        return self._reached[name]

    def _busy_above(self, module: str) -> set[str]:
        """The packages that Python loads before `module` and that do more than import and define."""
        parts = module.split(".")
        above = {".".join(parts[:count]) for count in range(1, len(parts))}
        return {name for name in above if (path := self._file(name)) is not None and not self._facts(path)["inert"]}

    def digest(self, module: str) -> str:
        """SHA-256 over the names and digests of the files that `module` reaches."""
        if module not in self._digests:
            files, _ = self.closure(module)
            listing = "\n".join(f"{name} {digest}" for name, digest in sorted(files.items()))
            self._digests[module] = hashlib.sha256(listing.encode()).hexdigest()
        return self._digests[module]

    def versions(self, module: str) -> dict[str, str]:
        """Distribution -> version of the third-party packages that `module` reaches.

        A package that this host does not have is "absent": its lack decides what a step can do.
        """
        _, names = self.closure(module)
        return {owner: version for name in names for owner, version in self._distributions(name).items()}

    def plugin(self, group: str, name: Any) -> dict[str, Any] | None:
        """What decides what the plug-in `name` of `group` does: its distribution and version, its code, what of this
        package and of others that code reaches. None where no plug-in has the name."""
        if (group, name) not in self._plugins:
            point = plugins.installed(group).get(name)
            self._plugins[group, name] = None if point is None else self._identify(point)
        return self._plugins[group, name]

    def _identify(self, point: metadata.EntryPoint) -> dict[str, Any]:
        root, files = _files_of(point.module)
        facts = {file.relative_to(root).as_posix(): self._facts(file) for file in files}
        doors: dict[str, str] = {}
        named = [reference for fact in facts.values() for reference in fact["internal"]]
        named = [(module, name) for module, name in named if not module.startswith(".")]  # its own, all in `files`
        ours = {found for module, name in named for found in self._resolve(module, name, doors)}
        names = sorted({name for fact in facts.values() for name in fact["external"]})
        return {
            "distribution": point.dist.name if point.dist else None,
            "version": point.dist.version if point.dist else None,
            "files": {file: fact["sha256"] for file, fact in facts.items()},
            "calls": {**{module: self.digest(module) for module in sorted(ours)}, **doors},
            "tools": {owner: version for name in names for owner, version in self._distributions(name).items()},
        }

    def _distributions(self, name: str) -> dict[str, str]:
        if name not in self._versions:
            self._versions[name] = self._installed(name)
        return self._versions[name]

    def _installed(self, name: str) -> dict[str, str]:
        try:
            return {_canonical(name): metadata.version(name)}
        except metadata.PackageNotFoundError:
            owners = self._distribution_names().get(name, [])
            return {_canonical(owner): _version(owner) for owner in owners} or {name: "absent"}

    def _distribution_names(self) -> dict[str, list[str]]:
        """Import name -> distributions. Slow to find out, so it is remembered until something is (un)installed."""
        if self._owners is None:
            site = next((p for p in sys.path if Path(p).name in ("site-packages", "dist-packages")), sys.prefix)
            self._owners = self.memo.get(
                Path(site),
                lambda _: {k: sorted(set(v)) for k, v in metadata.packages_distributions().items()},
                "distributions",
            )
        return self._owners or {}

    def _facts(self, path: Path) -> dict[str, Any]:
        if path not in self._known:
            self._known[path] = self.memo.get(path, partial(analyse, self._package), self._kind)
        return self._known[path]

    def _scan(self) -> None:
        """Find all modules, and the data files of each folder: one walk is quicker than a look for each import."""
        for folder, below, names in os.walk(self._root):
            below[:] = sorted(name for name in below if name != "__pycache__")
            parts = [self._package, *Path(folder).relative_to(self._root).parts]
            for name in sorted(names):
                stem, dot, suffix = name.rpartition(".")
                if dot + suffix == ".py":
                    module = parts if stem == "__init__" else [*parts, stem]
                    self._files[".".join(module)] = Path(folder, name)
                elif dot + suffix in _DATA_SUFFIXES:
                    self._beside.setdefault(folder, []).append(name)

    def _data_beside(self, folder: Path) -> list[Path]:
        return [folder / name for name in self._beside.get(str(folder), ())]

    def _file(self, module: str) -> Path | None:
        return self._files.get(module)

    def _resolve(self, module: str, attribute: str | None, doors: dict[str, str]) -> list[str]:
        """The modules that `from module import attribute` makes use of; notes in `doors` what it went through."""
        if attribute is None:
            return [module]
        if self._file(f"{module}.{attribute}") is not None:
            return [f"{module}.{attribute}"]
        path = self._file(module)
        if path is None:
            return [module]
        facts = self._facts(path)
        if facts["door"] and attribute in facts["exports"]:
            behind, name = facts["exports"][attribute]
            behind = _absolute(behind, module, path)
            door = f"{path.relative_to(self._root).as_posix()}:{attribute}"
            doors[door] = hashlib.sha256(f"{behind} {name}".encode()).hexdigest()
            return self._resolve(behind, name, doors)
        return [module]


def _files_of(module: str) -> tuple[Path, list[Path]]:
    """All files of the top-level package that `module` is in, and the folder of that; what is compiled of them is
    not."""
    spec = find_spec(module.partition(".")[0])  # of a top-level name: nothing is imported
    if spec is None or spec.origin is None:
        raise RecipeError(f"the plug-in's module {module!r} cannot be found", remedy="Reinstall its distribution.")
    origin = Path(spec.origin)
    if spec.submodule_search_locations is None:
        return origin.parent, [origin]
    found = (path for path in sorted(origin.parent.rglob("*")) if "__pycache__" not in path.parts)
    return origin.parent, [path for path in found if path.is_file()]


def _absolute(target: str, module: str, path: Path) -> str:
    """What the import of `target` in `module`, whose file is `path`, means without leading dots."""
    level = len(target) - len(target.lstrip("."))
    if not level:
        return target
    parts = module.split(".")
    base = parts[: len(parts) - level + (path.name == "__init__.py")]
    return ".".join([*base, *filter(None, [target[level:]])])
