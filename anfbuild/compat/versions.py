"""The version matrix: which parts of the toolchain a recipe asks for, and which are here.

Light on purpose: it runs before every build, and reads what is installed without importing it.
"""

from __future__ import annotations

import ast
import dataclasses
import importlib.util
from collections.abc import Callable, Mapping
from importlib import metadata
from pathlib import Path

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import InvalidVersion, Version

from anfbuild.compat.compiler import DISTRIBUTION, no_wheel
from anfbuild.errors import RecipeError, VersionError, did_you_mean


@dataclasses.dataclass(frozen=True)
class Part:
    """One line of the version matrix."""

    part: str
    required: str
    """A version specifier (PEP 440)."""
    found: str | None
    """The version that is here; None for a part of the compiler on a host that cannot have it."""
    verified: bool
    """True where `found` satisfies `required`."""
    reason: str | None = None
    """Why `found` is None."""

    def to_json(self) -> dict[str, object]:
        return dataclasses.asdict(self)


def check(required: Mapping[str, str]) -> list[Part]:
    """Compare each required part, in the order of their names, with what is installed.

    Raises RecipeError for an unknown part or a specifier that does not follow PEP 440, VersionError for a part that is
    missing or has another version. A host that cannot have the compiler is no error, since a build does without: its
    parts are found as None.
    """
    specifiers = {part: _specifier(part, text) for part, text in sorted(required.items())}
    return [_check_part(part, required[part], specifier) for part, specifier in specifiers.items()]


def _specifier(part: str, text: str) -> SpecifierSet:
    if part not in _PARTS:
        raise RecipeError(
            f"{did_you_mean(part, _PARTS)}there is no part {part!r} whose version can be checked",
            where=f"versions.{part}",
            choices=_PARTS,
            remedy="Remove it from the recipe's versions, or correct its name.",
        )
    try:
        if not isinstance(text, str):  # a set of specifiers can be made of other things too
            raise InvalidSpecifier(text)
        return SpecifierSet(text)
    except InvalidSpecifier as error:
        raise RecipeError(
            f"{text!r} is not a version specifier",
            where=f"versions.{part}",
            remedy='Write it as in ">=1.32,<1.33" (PEP 440).',
        ) from error


def _check_part(part: str, required: str, specifier: SpecifierSet) -> Part:
    distribution, find = _PARTS[part]
    lack = no_wheel() if distribution == DISTRIBUTION and _distribution_version(distribution) is None else None
    if lack is not None:
        return Part(part, required, None, verified=False, reason=lack)
    remedy = _remedy(part, required)
    found = find()
    if found is None:
        raise VersionError(f"{part} {required} is required, and none is found", where=f"versions.{part}", remedy=remedy)
    try:
        matches = specifier.contains(Version(found), prereleases=True)
    except InvalidVersion:
        matches = False
    if not matches:
        raise VersionError(
            f"{part} {required} is required, and {found} is installed", where=f"versions.{part}", remedy=remedy
        )
    return Part(part, required, found, verified=True)


def _remedy(part: str, required: str) -> str:
    if part == "qnn":
        return (
            f'Install the {DISTRIBUTION} that holds QNN {required} (pip install "{DISTRIBUTION}==VERSION"), '
            "or change versions.qnn."
        )
    return f'Run: pip install "{part}{required}", or change versions.{part}.'


def _distribution_version(distribution: str) -> str | None:
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return None


def _qnn_version() -> str | None:
    """The QNN SDK's version, as the wheel's own `build_and_package_info.py` states it: read as text, never run."""
    package = importlib.util.find_spec("onnxruntime_qnn")  # finds a top-level package without importing it
    for folder in (package.submodule_search_locations or []) if package else []:
        file = Path(folder) / "build_and_package_info.py"
        if file.is_file():
            return _assigned_text(file.read_text(encoding="utf-8", errors="replace"), "qnn_version")
    return None


def _assigned_text(source: str, name: str) -> str | None:
    """The text that `source` assigns to `name` at its top level."""
    try:
        tree = ast.parse(source)
    except SyntaxError:
        return None
    for statement in tree.body:
        if isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Constant):
            names = [target.id for target in statement.targets if isinstance(target, ast.Name)]
            if name in names and isinstance(statement.value.value, str):
                return statement.value.value
    return None


_PARTS: dict[str, tuple[str, Callable[[], str | None]]] = {
    "onnxruntime": ("onnxruntime", lambda: _distribution_version("onnxruntime")),
    "onnxruntime-qnn": (DISTRIBUTION, lambda: _distribution_version(DISTRIBUTION)),
    "qnn": (DISTRIBUTION, _qnn_version),
}
"""Part -> the distribution that brings it, and how its version is found."""
