"""The store: results of steps by action key, bytes by their SHA-256.

    store.json              {"format"} of this layout
    ac/<key>.json           {"key", "result": ActionResult, "private", "remote", "sha256": of the JSON of the rest}
    cas/<2>/<sha256>        bytes
    meta/<key>.json         where a result comes from: manifest, needs, code, seconds, observations (not part of it)
    builds/NAME/<key>.json  the keys of all steps of a build of recipe NAME, under that of its goal
    pins/NAME/<key>.json    the same of a build that is kept whatever happens
    downloads/              what has come of files that are being fetched, never trusted
    locks/ tmp/ memo/       working matter        quarantine/  entries and blobs found damaged

Every blob is verified when it is read; what does not verify is put aside and counts as missing. Blobs are written
before the entry that names them, each by a temporary file and an atomic rename: a build that is killed leaves at worst
blobs that nobody names. The time of an entry's or a build's file is when it was last used: what clears the store goes
by that.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import shutil
import stat
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path, PurePosixPath
from typing import Any

from anfbuild.atomic import replacing
from anfbuild.engine.entry import format_entry, parse_entry
from anfbuild.engine.faults import disk_remedy
from anfbuild.engine.files import CHUNK, NotRegular, copy_verified, hash_regular, read_regular
from anfbuild.engine.key import canonical
from anfbuild.engine.result import Result, is_inside
from anfbuild.errors import StepError

FORMAT = 1
"""Of the layout. A store of another one is neither read nor written."""

_STALE_S = 3600
"""How far the time of last use may lag: a build that has nothing to do should write next to nothing."""

_COPIERS = 4
"""Threads that copy large files: hashing one while another is written is what hashing alone costs."""


class Damaged(Exception):
    """A blob of this result is missing or is not what its name says: the step has to run again."""


class Store:
    """A folder that any number of processes may share. Raises StepError where it cannot be written, or is none."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._checked = False

    @property
    def memo_file(self) -> Path:
        """Where the memo of file digests is kept."""
        return self.root / "memo" / "files.json"

    @property
    def downloads(self) -> Path:
        """Where unfinished downloads are kept."""
        return self.root / "downloads"

    # ---- entries

    def lookup(self, key: str) -> Result | None:
        """The result under `key`, or None. Blobs are not looked at: bytes are verified when somebody reads them."""
        self.check_format()
        path = self.entry(key)
        try:
            found = parse_entry(key, read_regular(path))
            _note_use(path)
        except FileNotFoundError:
            return None
        except ValueError:
            self.quarantine(path)
            return None
        except OSError as error:
            raise self._unusable(error) from error
        return found

    def commit(self, key: str, folder: Path, meta: Mapping[str, Any], *, private: bool = False) -> Result:
        """Take the files of `folder` as the result under `key`, replacing what was there. Links are a StepError."""
        _refuse_odd_files(folder)
        found = {path: hash_regular(path) for path in sorted(p for p in folder.rglob("*") if p.is_file())}
        files = {
            PurePosixPath(path.relative_to(folder)).as_posix(): (sha, path.stat().st_size)
            for path, sha in found.items()
        }
        intact = {sha for sha in found.values() if self._intact(sha)}
        with self.lock("commit"):  # what clears the store holds it too, so that no blob goes before its entry comes
            for path, sha in found.items():
                self._add_blob(path, sha, intact=sha in intact)
            return self.enter(Result(key, files, private=private), meta)

    def enter(self, result: Result, meta: Mapping[str, Any]) -> Result:
        """Write the entry of a result, replacing what was there, and beside it what is known of its making."""
        self.check_format(create=True)
        self.write(self.root / "meta" / f"{result.key}.json", json.dumps(meta, sort_keys=True, indent=1).encode())
        self.write(self.entry(result.key), format_entry(result))
        return result

    def meta(self, key: str) -> dict[str, Any]:
        """What is known of how the result under `key` was made; empty where nothing is."""
        return _load_mapping(self.root / "meta" / f"{key}.json")

    def metas(self, step: str) -> list[tuple[str, dict[str, Any]]]:
        """(key, meta) of every result of `step` that something is known of, the newest first."""
        dated = []
        for path in (self.root / "meta").glob("*.json"):
            with suppress(OSError):
                dated.append((path.stat().st_mtime, path))
        read = [(path.stem, _load_mapping(path)) for _, path in sorted(dated, reverse=True)]
        return [(key, meta) for key, meta in read if (meta.get("manifest") or {}).get("step") == step]

    def made(self, key: str) -> float | None:
        """When, in seconds since the epoch, the result under `key` came into this store; None where that is unknown."""
        try:
            return (self.root / "meta" / f"{key}.json").stat().st_mtime
        except OSError:
            return None

    # ---- builds

    def record(self, name: str, key: str, document: Mapping[str, Any]) -> None:
        """Note that a build of the recipe `name`, whose goal has `key`, was made now, if that can be noted."""
        path = self.root / "builds" / name / f"{key}.json"
        with suppress(OSError, StepError):
            if _load_mapping(path) != document:
                self.write(path, json.dumps(document, sort_keys=True, indent=1).encode())
            else:
                _note_use(path)

    def builds(self, name: str | None = None) -> list[dict[str, Any]]:
        """The documents of the builds of recipe `name`, or of all, the newest first. Unreadable ones are left out."""
        dated = []
        for path in (self.root / "builds").glob(f"{name or '*'}/*.json"):
            with suppress(OSError):
                dated.append((path.stat().st_mtime, path))
        documents = [_load_mapping(path) for _, path in sorted(dated, reverse=True)]
        return [document for document in documents if _is_build(document)]

    # ---- bytes

    def has(self, sha: str, size: int) -> bool:
        """Whether a blob is there with its size (a cheap look; reading verifies)."""
        try:
            status = self.blob(sha).stat()
        except OSError:
            return False
        return stat.S_ISREG(status.st_mode) and status.st_size == size

    def missing(self, blobs: Iterable[tuple[str, int]]) -> list[tuple[str, int]]:
        """Those of `blobs`, as (SHA-256, bytes), that are not there, each once."""
        return [blob for blob in dict.fromkeys(blobs) if not self.has(*blob)]

    def copy_out(self, result: Result, folder: str, destination: Path) -> None:
        """Write the files of `result` below `folder` into `destination`, verified. Raises Damaged."""
        files = {destination / name: blob for name, blob in sorted(result.select(folder).items())}
        for parent in {path.parent for path in files}:
            parent.mkdir(parents=True, exist_ok=True)
        large = {path: blob for path, blob in files.items() if blob[1] > CHUNK}
        with self._copying(large) if len(large) > 1 else nullcontext():
            for path, blob in files.items():
                if path not in large or len(large) == 1:
                    self._copy_blob(path, blob)

    def copy_file(self, result: Result, name: str, destination: Path) -> None:
        """Write one file of `result` to `destination`, verified, atomically. Raises Damaged."""
        destination.parent.mkdir(parents=True, exist_ok=True)
        with replacing(destination) as partial:
            self._copy_blob(partial, result.files[name])

    def read(self, result: Result, name: str) -> bytes:
        """The bytes of one file of `result`, verified. Raises Damaged."""
        sha, _ = result.files[name]
        try:
            data = read_regular(self.blob(sha))
        except OSError as error:
            raise Damaged(name) from error
        except NotRegular as error:
            self.quarantine(self.blob(sha))
            raise Damaged(name) from error
        if hashlib.sha256(data).hexdigest() != sha:
            self.quarantine(self.blob(sha))
            raise Damaged(name)
        return data

    def add_blob(self, path: Path, sha: str) -> None:
        """Move the file `path`, whose bytes the caller found to have `sha`, into the store; one that is there stays."""
        intact = self._intact(sha)
        with self.lock("commit"):
            self._add_blob(path, sha, intact=intact)

    # ---- working matter

    @contextmanager
    def lock(self, key: str, waiting: Callable[[], None] = lambda: None) -> Iterator[None]:
        """Be the only one who builds `key`; `waiting` is called, once, where another one is at it.

        The lock goes with its owner, also when that is killed.
        """
        from filelock import FileLock, Timeout

        self.check_format(create=True)
        path = self.root / "locks" / f"{key}.lock"
        self._make(path.parent)
        lock = FileLock(path)
        try:
            lock.acquire(blocking=False)
        except Timeout:
            waiting()
            lock.acquire()
        try:
            yield
        finally:
            lock.release()

    @contextmanager
    def workspace(self, key: str) -> Iterator[Path]:
        """An empty folder to build `key` in, whose lock the caller holds. What killed owners left is cleared."""
        tmp = self.root / "tmp"
        self._make(tmp)
        for left in tmp.iterdir():
            if left.name.startswith(f"{key[:16]}-") or self.has_owner(left) is False:
                shutil.rmtree(left, ignore_errors=True)
        folder = Path(tempfile.mkdtemp(prefix=f"{key[:16]}-", dir=tmp))
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def has_owner(self, workspace: Path) -> bool | None:
        """Whether somebody holds the lock that a workspace belongs to; None where no lock tells."""
        from filelock import FileLock, Timeout

        told: bool | None = None
        for lock in (self.root / "locks").glob(f"{workspace.name[:16]}*.lock"):
            try:
                with FileLock(lock, timeout=0):
                    told = False
            except (Timeout, OSError):  # a lock that cannot be taken may be held
                return True
        return told

    def quarantine(self, path: Path) -> None:
        """Put aside a file of the store that is not what it should be. On a disk that cannot be written it stays."""
        target = self.root / "quarantine"
        with suppress(OSError, StepError):  # another process was quicker, or nobody can
            self._make(target)
            place = target / path.name
            path.replace(place.with_name(f"{path.name}.{secrets.token_hex(4)}") if place.exists() else place)

    def set_aside(self, name: str, data: bytes) -> None:
        """Keep in quarantine what came from outside and is not what it should be, if that can be kept."""
        with suppress(OSError, StepError):
            self.write(self.root / "quarantine" / name, data)

    # ---- places

    def entry(self, key: str) -> Path:
        """Where the entry of `key` is, or would be."""
        return self.root / "ac" / f"{key}.json"

    def blob(self, sha: str) -> Path:
        """Where the bytes with this SHA-256 are, or would be."""
        return self.root / "cas" / sha[:2] / sha

    def check_format(self, *, create: bool = False) -> None:
        """Refuse a store of another layout. Without the file that tells, it is a new one, and becomes ours."""
        if self._checked:
            return
        path = self.root / "store.json"
        try:
            told = json.loads(read_regular(path))["format"]
        except FileNotFoundError:
            if create:
                self.write(path, canonical({"format": FORMAT}))
                self._checked = True
            return
        except NotADirectoryError as error:
            raise StepError(
                "the store is no folder", where=str(self.root), remedy="Set ANFBUILD_CACHE to a folder."
            ) from error
        except (OSError, ValueError, LookupError, TypeError, RecursionError) as error:
            raise StepError(
                f"this does not say which format the store has: {error}",
                where=str(path),
                remedy="If the folder is a store of anfbuild, remove this file; else set ANFBUILD_CACHE to another "
                "folder.",
            ) from error
        if told != FORMAT:
            raise StepError(
                f"the store has format {told!r}, this anfbuild knows {FORMAT}",
                where=str(path),
                remedy="Set ANFBUILD_CACHE to another folder, or use the anfbuild that made this one.",
            )
        self._checked = True

    @contextmanager
    def _copying(self, files: Mapping[Path, tuple[str, int]]) -> Iterator[None]:
        """Copy `files` in threads of their own, and be done with them at the end."""
        from concurrent.futures import ThreadPoolExecutor

        with ThreadPoolExecutor(min(len(files), os.cpu_count() or 1, _COPIERS)) as pool:
            copies = pool.map(self._copy_blob, files.keys(), files.values())
            yield
            for _ in copies:  # raises what went wrong
                pass

    def _copy_blob(self, destination: Path, blob: tuple[str, int]) -> None:
        sha, size = blob
        try:
            if copy_verified(self.blob(sha), destination, sha, size):
                return
        except FileNotFoundError as error:
            raise Damaged(sha) from error
        except NotRegular:
            pass
        except OSError as error:
            if error.filename == str(self.blob(sha)):
                raise self._unusable(error) from error
            raise
        self.quarantine(self.blob(sha))
        raise Damaged(sha)

    def _add_blob(self, path: Path, sha: str, *, intact: bool) -> None:
        blob = self.blob(sha)
        if not (intact and blob.exists()):
            self._make(blob.parent)
            if blob.is_dir():  # no file can take its place
                self.quarantine(blob)
            path.chmod(0o444)  # nobody edits a blob in place
            path.replace(blob)
        _touch(blob)  # it is wanted now, however old the bytes are

    def _intact(self, sha: str) -> bool:
        try:
            return hash_regular(self.blob(sha)) == sha
        except (FileNotFoundError, NotRegular):
            return False
        except OSError as error:
            raise self._unusable(error) from error

    def write(self, path: Path, data: bytes) -> None:
        """Write a file of the store, atomically, replacing what was there."""
        self._make(path.parent)
        with replacing(path) as partial:
            partial.write_bytes(data)

    def _make(self, folder: Path) -> None:
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise self._unusable(error) from error

    def _unusable(self, error: OSError) -> StepError:
        """What is wrong with the place in the store that could not be used."""
        place = Path(error.filename or self.root)
        for folder in (place, *place.parents):
            if isinstance(error, NotADirectoryError | FileExistsError) and os.path.lexists(folder):
                if folder.is_dir():
                    break
                return StepError(
                    "a folder of the store should be here, and something else is",
                    where=str(folder),
                    remedy="Remove it, what is lost is built again; or set ANFBUILD_CACHE to another folder.",
                )
        return StepError(
            f"the store cannot be used: {error.strerror}",
            where=str(place),
            remedy=disk_remedy(error),
        )


def _refuse_odd_files(folder: Path) -> None:
    """StepError for what an entry cannot list: it would be lost, or the entry taken for damaged each time."""
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if path.is_symlink() or not (path.is_file() or path.is_dir()):
            raise StepError(f"the step left {name!r}, which is neither a file nor a folder")
        if not is_inside(name):
            raise StepError(f"the step left {name!r}, a name that cannot be kept")


def _load_mapping(path: Path) -> dict[str, Any]:
    """The JSON mapping in a file; empty where there is none that can be read."""
    try:
        value = json.loads(read_regular(path))
    except (OSError, ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _is_build(document: Mapping[str, Any]) -> bool:
    """Whether a document is one that `record` wrote."""
    kinds = {"recipe": str, "goal": str, "steps": dict, "private": list}
    if not all(isinstance(document.get(name), kind) for name, kind in kinds.items()):
        return False
    return all(isinstance(text, str) for text in [*document["steps"].values(), *document["private"]])


def _note_use(path: Path) -> None:
    """Make now the time of last use, unless it is nearly that. One in the future is wrong: clocks differ."""
    if abs(time.time() - path.stat().st_mtime) > _STALE_S:
        _touch(path)


def _touch(path: Path) -> None:
    with suppress(OSError):  # a store that cannot be written still serves
        os.utime(path)
