"""What is in a store, looked at without changing anything: the facts that status, verify and gc go by."""

from __future__ import annotations

import dataclasses
import re
import stat
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from anfbuild.atomic import is_partial
from anfbuild.engine.entry import parse_entry
from anfbuild.engine.files import read_regular
from anfbuild.engine.result import Result
from anfbuild.engine.store import Store
from anfbuild.errors import StepError

_SHA256 = re.compile(r"[0-9a-f]{64}")

UNKNOWN = "?"
"""Recipe or step of an entry about whose making nothing is known."""


@dataclasses.dataclass(frozen=True)
class Entry:
    """A result in the store: what it is of, when it was last used, which bytes it names."""

    key: str
    step: str
    recipes: frozenset[str]
    """Of all builds that are recorded to use it, and of the one that made it."""
    used: float
    """Seconds since 1970, of the file system's clock."""
    blobs: Mapping[str, int]
    """SHA-256 -> bytes."""
    needs: frozenset[str] = frozenset()
    """Keys of what it was made from."""
    private: bool = False
    remote: bool = False


@dataclasses.dataclass(frozen=True)
class Blob:
    """Bytes in the store: how many, and when they were last wanted."""

    sha: str
    size: int
    used: float


def is_there(store: Store) -> bool:
    """Whether there is a store. Raises StepError: the folder is something else, or a store of another format."""
    try:
        names = {path.name for path in store.root.iterdir() if not is_partial(path)}
    except FileNotFoundError:
        return False
    except OSError as error:
        raise StepError(
            f"the store cannot be read: {error.strerror}",
            where=str(store.root),
            remedy="Set ANFBUILD_CACHE to the folder of a store.",
        ) from error
    store.check_format()
    if names <= {"memo"}:  # a recipe was read, nothing built
        return False
    if "store.json" not in names:
        raise StepError(
            "this folder is no store of anfbuild: it holds no store.json",
            where=str(store.root),
            remedy="Set ANFBUILD_CACHE to the folder of a store. A build makes one.",
        )
    return True


def entry_files(store: Store) -> list[Path]:
    """All that lies where entries are, but for partial files."""
    return [path for path in _listed(store.root / "ac") if not is_partial(path)]


def blob_files(store: Store) -> Iterator[Path]:
    """All that lies where blobs are and is named like one."""
    for folder in _listed(store.root / "cas"):
        for path in _listed(folder):
            if _SHA256.fullmatch(path.name) and path.name.startswith(folder.name):
                yield path


def partial_files(store: Store) -> Iterator[Path]:
    """What writers left unfinished, or are writing now."""
    for pattern in (".*", "ac/.*", "meta/.*", "cas/*/.*", "builds/*/.*", "pins/*/.*"):
        yield from filter(is_partial, store.root.glob(pattern))


def dead_workspaces(store: Store, before: float) -> Iterator[Path]:
    """Workspaces of processes that ended; where no lock tells, those older than `before`, in seconds since 1970."""
    for path in _listed(store.root / "tmp"):
        owned = store.has_owner(path)
        if owned is False or (owned is None and any(older([path], before))):
            yield path


def older(paths: Iterable[Path], before: float) -> Iterator[Path]:
    """Those of `paths`, sorted, that were written before a time, in seconds since 1970."""
    for path in sorted(paths):
        with suppress(FileNotFoundError):
            if path.lstat().st_mtime < before:
                yield path


def read_entry(path: Path) -> Result:
    """The result that an entry's file tells of. Raises ValueError: damaged; OSError: not to be read, or gone."""
    return parse_entry(path.name.removesuffix(".json"), read_regular(path))


def entries(store: Store) -> list[Entry]:
    """The readable entries, by key."""
    users = _users(store)
    found = []
    for path in entry_files(store):
        with suppress(OSError, ValueError):  # gone by now, or damaged: `verify` tells of those
            result = read_entry(path)
            found.append(_entry(store, result, path.stat().st_mtime, users.get(result.key, set())))
    return found


def blobs(store: Store) -> list[Blob]:
    """The blobs that are there, damaged ones among them."""
    found = []
    for path in blob_files(store):
        with suppress(OSError):
            status = path.lstat()
            if stat.S_ISREG(status.st_mode):
                found.append(Blob(path.name, status.st_size, status.st_mtime))
    return found


def size_below(paths: Iterable[Path]) -> int:
    """Bytes of files, and of those below folders."""
    total = 0
    for path in paths:
        with suppress(OSError):
            if path.is_dir() and not path.is_symlink():
                total += size_below(path.iterdir())
            else:
                total += path.lstat().st_size
    return total


def _entry(store: Store, result: Result, used: float, users: set[str]) -> Entry:
    meta = store.meta(result.key)
    manifest, needs, recipe = meta.get("manifest"), meta.get("needs"), meta.get("recipe")
    step = manifest.get("step") if isinstance(manifest, dict) else None
    made_for = {recipe} if isinstance(recipe, str) else set()
    return Entry(
        result.key,
        step if isinstance(step, str) else UNKNOWN,
        frozenset(users | made_for) or frozenset({UNKNOWN}),
        used,
        dict(result.files.values()),
        frozenset(key for key in needs.values() if isinstance(key, str)) if isinstance(needs, dict) else frozenset(),
        result.private,
        result.remote,
    )


def _users(store: Store) -> dict[str, set[str]]:
    """Key -> the recipes of whose recorded builds it is."""
    users: dict[str, set[str]] = {}
    for document in store.builds():
        name, steps = document.get("recipe"), document.get("steps")
        if isinstance(name, str) and isinstance(steps, dict):
            for key in steps.values():
                users.setdefault(str(key), set()).add(name)
    return users


def _listed(folder: Path) -> list[Path]:
    """What is in a folder, sorted; nothing where there is no such folder. Raises StepError: it cannot be read."""
    try:
        return sorted(folder.iterdir())
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise StepError(
            f"the store cannot be read: {error.strerror}",
            where=str(folder),
            remedy="Check the folder's rights.",
        ) from error
