"""The store: results of steps by action key, bytes by their SHA-256.

    ac/<key>.json      {"key", "result": ActionResult, "sha256": of the canonical JSON of the two}
    cas/<2>/<sha256>   bytes
    meta/<key>.json    where a result comes from: manifest, seconds, observations (not part of the result)
    locks/ tmp/ memo/  working matter        quarantine/  entries and blobs found damaged

The ActionResult is the one of the Remote Execution API in JSON, so that a bazel-remote or any plain HTTP server can
serve the same bytes. Every blob is verified when it is read; what does not verify is put aside and counts as missing.
Blobs are written before the entry that names them, each by a temporary file and an atomic rename: a build that is
killed leaves at worst blobs that nobody names.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import secrets
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath
from typing import Any

from anfbuild.engine.key import canonical
from anfbuild.errors import StepError

_CHUNK = 1 << 20


class Damaged(Exception):
    """A blob of this result is missing or is not what its name says: the step has to run again."""


@dataclasses.dataclass(frozen=True)
class Result:
    """What a step left: file name (POSIX, relative) -> (SHA-256, bytes)."""

    key: str
    files: Mapping[str, tuple[str, int]]

    def digest(self, folder: str = "") -> str:
        """SHA-256 of the listing, or of the part of it below `folder`: what a dependent step's key holds."""
        return hashlib.sha256(canonical({k: v[0] for k, v in self.select(folder).items()})).hexdigest()

    def select(self, folder: str) -> dict[str, tuple[str, int]]:
        """The files below `folder`, named relative to it; all files for an empty name."""
        prefix = f"{folder}/" if folder else ""
        return {name[len(prefix) :]: blob for name, blob in self.files.items() if name.startswith(prefix)}


class Store:
    """A folder that any number of processes may share. Raises StepError where it cannot be written."""

    def __init__(self, root: Path) -> None:
        self.root = root

    @property
    def memo_file(self) -> Path:
        """Where the memo of file digests is kept."""
        return self.root / "memo" / "files.json"

    def lookup(self, key: str) -> Result | None:
        """The result under `key`, or None. Blobs are not looked at: bytes are verified when somebody reads them."""
        path = self._entry(key)
        try:
            document = json.loads(path.read_bytes())
            outputs = document["result"]["outputFiles"]
            if document["key"] != key or document["sha256"] != _checksum(key, document["result"]):
                raise ValueError("another key's entry, or a damaged one")
            files = {o["path"]: (o["digest"]["hash"], int(o["digest"]["sizeBytes"])) for o in outputs}
        except FileNotFoundError:
            return None
        except (ValueError, KeyError, TypeError, RecursionError):
            self._quarantine(path)
            return None
        except OSError as error:
            raise StepError(
                f"the store cannot be read: {error.strerror}",
                where=str(self.root),
                remedy="Set ANFBUILD_CACHE to a folder that this user can read and write.",
            ) from error
        return Result(key, files)

    def complete(self, result: Result) -> bool:
        """Whether every blob of `result` is there with its size (a cheap look; reading verifies)."""
        try:
            return all(self._blob(sha).stat().st_size == size for sha, size in result.files.values())
        except OSError:
            return False

    def copy_out(self, result: Result, folder: str, destination: Path) -> None:
        """Write the files of `result` below `folder` into `destination`, verified. Raises Damaged."""
        for name, (sha, size) in sorted(result.select(folder).items()):
            self._copy_blob(sha, size, destination / name)

    def copy_file(self, result: Result, name: str, destination: Path) -> None:
        """Write one file of `result` to `destination`, verified, atomically. Raises Damaged."""
        sha, size = result.files[name]
        partial = _partial(destination)
        try:
            self._copy_blob(sha, size, partial)
            partial.replace(destination)
        finally:
            partial.unlink(missing_ok=True)

    def read(self, result: Result, name: str) -> bytes:
        """The bytes of one file of `result`, verified. Raises Damaged."""
        sha, _ = result.files[name]
        try:
            data = self._blob(sha).read_bytes()
        except OSError as error:
            raise Damaged(name) from error
        if hashlib.sha256(data).hexdigest() != sha:
            self._quarantine(self._blob(sha))
            raise Damaged(name)
        return data

    def commit(self, key: str, folder: Path, meta: Mapping[str, Any]) -> Result:
        """Take the files of `folder` as the result under `key`, replacing what was there."""
        files = {}
        for path in sorted(p for p in folder.rglob("*") if p.is_file()):
            files[PurePosixPath(path.relative_to(folder)).as_posix()] = self._add_blob(path)
        result = {
            "outputFiles": [
                {"path": name, "digest": {"hash": sha, "sizeBytes": str(size)}} for name, (sha, size) in files.items()
            ],
            "exitCode": 0,
        }
        document = {"key": key, "result": result, "sha256": _checksum(key, result)}
        self._write(self.root / "meta" / f"{key}.json", json.dumps(meta, sort_keys=True, indent=1).encode())
        self._write(self._entry(key), canonical(document))
        return Result(key, files)

    def meta(self, key: str) -> dict[str, Any]:
        """What is known of how the result under `key` was made; empty where nothing is."""
        try:
            meta = json.loads((self.root / "meta" / f"{key}.json").read_bytes())
        except (OSError, ValueError):
            return {}
        return meta if isinstance(meta, dict) else {}

    @contextmanager
    def lock(self, key: str, waiting: Callable[[], None] = lambda: None) -> Iterator[None]:
        """Be the only one who builds `key`; `waiting` is called, once, where another one is at it.

        The lock goes with its owner, also when that is killed.
        """
        from filelock import FileLock, Timeout

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
            if left.name.startswith(f"{key[:16]}-"):
                shutil.rmtree(left, ignore_errors=True)
            else:
                self._clear_unowned(left)
        folder = Path(tempfile.mkdtemp(prefix=f"{key[:16]}-", dir=tmp))
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def _clear_unowned(self, workspace: Path) -> None:
        """Remove a workspace that nobody holds the lock for."""
        from filelock import FileLock, Timeout

        for lock in (self.root / "locks").glob(f"{workspace.name[:16]}*.lock"):
            with suppress(Timeout), FileLock(lock, timeout=0):
                shutil.rmtree(workspace, ignore_errors=True)

    def _entry(self, key: str) -> Path:
        return self.root / "ac" / f"{key}.json"

    def _blob(self, sha: str) -> Path:
        return self.root / "cas" / sha[:2] / sha

    def _copy_blob(self, sha: str, size: int, destination: Path) -> None:
        blob = self._blob(sha)
        destination.parent.mkdir(parents=True, exist_ok=True)
        hasher = hashlib.sha256()
        try:
            with blob.open("rb") as source, destination.open("wb") as target:
                while chunk := source.read(_CHUNK):
                    hasher.update(chunk)
                    target.write(chunk)
        except FileNotFoundError as error:
            raise Damaged(sha) from error
        if hasher.hexdigest() != sha or destination.stat().st_size != size:
            destination.unlink()
            self._quarantine(blob)
            raise Damaged(sha)

    def _add_blob(self, path: Path) -> tuple[str, int]:
        with path.open("rb") as file:
            sha = hashlib.file_digest(file, "sha256").hexdigest()
        size = path.stat().st_size
        blob = self._blob(sha)
        if not (blob.exists() and self._intact(blob, sha)):
            self._make(blob.parent)
            path.chmod(0o444)  # nobody edits a blob in place
            path.replace(blob)
        return sha, size

    def _intact(self, blob: Path, sha: str) -> bool:
        with blob.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest() == sha

    def _write(self, path: Path, data: bytes) -> None:
        self._make(path.parent)
        partial = _partial(path)
        try:
            partial.write_bytes(data)
            partial.replace(path)
        finally:
            partial.unlink(missing_ok=True)

    def _quarantine(self, path: Path) -> None:
        target = self.root / "quarantine"
        self._make(target)
        with suppress(FileNotFoundError):  # another process was quicker
            path.replace(target / path.name)

    def _make(self, folder: Path) -> None:
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StepError(
                f"the store's folder cannot be made: {error.strerror}",
                where=str(folder),
                remedy="Set ANFBUILD_CACHE to a folder that this user can write.",
            ) from error


def _checksum(key: str, result: Any) -> str:
    return hashlib.sha256(canonical({"key": key, "result": result})).hexdigest()


def _partial(path: Path) -> Path:
    return path.with_name(f".{secrets.token_hex(8)}.partial")
