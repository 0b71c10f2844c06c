"""The code behind a step: which modules of this package it reaches, and which third-party packages they import.

Both are read from the syntax trees, lazy imports included, so that nothing heavy is imported to compute a key.
A name imported through a room's `__init__` is followed to the module that defines it: a change in one pass does not
touch the steps that only use another. Data files that lie beside a reached module belong to it.
"""

from __future__ import annotations

import ast
import hashlib
import sys
from collections.abc import Iterator
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import Any

from anfbuild.engine.memo import Memo

_DATA_SUFFIXES = {".json", ".csv", ".txt", ".html"}


def analyse(package: str, path: Path) -> dict[str, Any]:
    """What one file says of itself, as JSON: `sha256`; `internal`, the `[module, name | None]` it imports from
    `package`; `external`, the top-level names it imports from elsewhere; `exports`, the names it passes on; and
    `door`, whether it does nothing but that."""
    data = path.read_bytes()
    facts: dict[str, Any] = {
        "sha256": hashlib.sha256(data).hexdigest(),
        "internal": [],
        "external": [],
        "exports": {},
        "door": False,
    }
    if path.suffix != ".py":
        return facts
    tree = ast.parse(data, str(path))
    references = [reference for node in ast.walk(tree) for reference in _references(node, package)]
    facts["internal"] = [[m, name] for m, name in references if m.split(".")[0] == package]
    outside = {m.split(".")[0] for m, _ in references} - {package, "__future__"}
    facts["external"] = sorted(outside - set(sys.stdlib_module_names))
    facts["exports"] = {
        alias.asname or alias.name: [node.module, alias.name]
        for node in tree.body
        if isinstance(node, ast.ImportFrom) and node.module
        for alias in node.names
    }
    facts["door"] = all(map(_is_door, tree.body))
    return facts


def _version(distribution: str) -> str:
    """Its version; "absent" where what was remembered of its import names is no longer true."""
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return "absent"


def _references(node: ast.AST, package: str) -> Iterator[tuple[str, str | None]]:
    if isinstance(node, ast.Import):
        for alias in node.names:
            yield alias.name, None
    elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
        for alias in node.names:
            yield node.module, alias.name
    elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.startswith(f"{package}."):
        # A module that is started by name, as a worker process is, is code of the step as well.
        yield node.value, None


def _is_door(node: ast.stmt) -> bool:
    if isinstance(node, ast.ImportFrom | ast.Import):
        return True
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Constant)
    return isinstance(node, ast.Assign) and [getattr(target, "id", None) for target in node.targets] == ["__all__"]


class CodeIndex:
    """Closures over the modules of one package. It looks at each file once, and then trusts that look."""

    def __init__(self, package: str, root: Path, memo: Memo) -> None:
        """`root` is the folder of the top-level package `package`."""
        self._package = package
        self._root = root
        self._memo = memo
        self._files: dict[str, Path | None] = {}
        self._known: dict[Path, dict[str, Any]] = {}
        self._beside: dict[Path, list[Path]] = {}
        self._owners: dict[str, list[str]] | None = None
        self._closures: dict[str, tuple[dict[str, str], list[str]]] = {}

    def closure(self, module: str) -> tuple[dict[str, str], list[str]]:
        """What `module` reaches: `{file relative to the package: sha256}` and the third-party import names, sorted."""
        if module not in self._closures:
            self._closures[module] = self._close(module)
        return self._closures[module]

    def _close(self, module: str) -> tuple[dict[str, str], list[str]]:
        files: dict[str, str] = {}
        external: set[str] = set()
        seen: set[str] = set()
        todo = [module]
        while todo:
            name = todo.pop()
            path = None if name in seen else self._file(name)
            seen.add(name)
            if path is None:
                continue
            facts = self._facts(path)
            for reached in (path, *self._data_beside(path.parent)):
                files[reached.relative_to(self._root).as_posix()] = self._facts(reached)["sha256"]
            external.update(facts["external"])
            todo += [found for target, attribute in facts["internal"] for found in self._resolve(target, attribute)]
        return files, sorted(external)

    def digest(self, module: str) -> str:
        """SHA-256 over the names and digests of the files that `module` reaches."""
        files, _ = self.closure(module)
        return hashlib.sha256("\n".join(f"{k} {v}" for k, v in sorted(files.items())).encode()).hexdigest()

    def versions(self, module: str) -> dict[str, str]:
        """Distribution -> version of the third-party packages that `module` reaches.

        A package that this host does not have is "absent": its lack decides what a step can do.
        """
        _, names = self.closure(module)
        return {owner: version for name in names for owner, version in self._distributions(name).items()}

    def _distributions(self, name: str) -> dict[str, str]:
        try:
            return {name: metadata.version(name)}
        except metadata.PackageNotFoundError:
            owners = self._distribution_names().get(name, [])
            return {owner: _version(owner) for owner in owners} or {name: "absent"}

    def _distribution_names(self) -> dict[str, list[str]]:
        """Import name -> distributions. Slow to find out, so it is remembered until something is (un)installed."""
        if self._owners is None:
            site = next((p for p in sys.path if Path(p).name in ("site-packages", "dist-packages")), sys.prefix)
            self._owners = self._memo.get(
                Path(site), lambda _: {k: sorted(set(v)) for k, v in metadata.packages_distributions().items()}
            )
        return self._owners or {}

    def _facts(self, path: Path) -> dict[str, Any]:
        if path not in self._known:
            self._known[path] = self._memo.get(path, partial(analyse, self._package))
        return self._known[path]

    def _data_beside(self, folder: Path) -> list[Path]:
        if folder not in self._beside:
            self._beside[folder] = sorted(p for p in folder.iterdir() if p.suffix in _DATA_SUFFIXES)
        return self._beside[folder]

    def _file(self, module: str) -> Path | None:
        if module not in self._files:
            base = self._root.joinpath(*module.split(".")[1:])
            candidates = [base / "__init__.py", *([base.with_suffix(".py")] if base != self._root else [])]
            self._files[module] = next((path for path in candidates if path.is_file()), None)
        return self._files[module]

    def _resolve(self, module: str, attribute: str | None) -> list[str]:
        """The modules that `from module import attribute` makes use of."""
        if attribute is None:
            return [module]
        if self._file(f"{module}.{attribute}") is not None:
            return [f"{module}.{attribute}"]
        path = self._file(module)
        facts: dict[str, Any] = self._facts(path) if path is not None else {"door": False}
        if facts["door"] and attribute in facts["exports"]:
            return self._resolve(*facts["exports"][attribute])
        return [module]
