"""A remote that is a folder, such as a share that many mount. It has to be there: a share that is not mounted is an
empty folder somewhere else."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from anfbuild.atomic import replacing
from anfbuild.engine.remote.remote import CHUNK, RemoteError, collect, receive


class FolderRemote:
    """Files of the folder `root`, each written by an atomic rename."""

    def __init__(self, root: Path) -> None:
        self._root = root

    @property
    def name(self) -> str:
        return str(self._root)

    def get_action(self, key: str) -> bytes | None:
        path = self._root / "ac" / key
        return collect(_read(path)) if self._has(path) else None

    def put_action(self, key: str, data: bytes) -> None:
        self._put(self._root / "ac" / key, lambda partial: partial.write_bytes(data))

    def has_blob(self, sha: str, size: int) -> bool:
        path = self._root / "cas" / sha
        with _told():
            return self._has(path) and path.stat().st_size == size

    def get_blob(self, sha: str, size: int, destination: Path) -> bool:
        path = self._root / "cas" / sha
        if not self._has(path):
            return False
        receive(_read(path), sha, size, destination)
        return True

    def put_blob(self, sha: str, path: Path) -> None:
        self._put(self._root / "cas" / sha, lambda partial: shutil.copyfile(path, partial))

    def _has(self, path: Path) -> bool:
        with _told():
            self._check()
            return path.is_file()

    def _check(self) -> None:
        if not self._root.is_dir():
            raise RemoteError("there is no such folder")

    def _put(self, path: Path, write: Callable[[Path], object]) -> None:
        with _told():
            self._check()
            path.parent.mkdir(exist_ok=True)
            with replacing(path) as partial:
                write(partial)


def _read(path: Path) -> Iterator[bytes]:
    with _told():
        file = path.open("rb")
    with file:
        while True:
            with _told():
                chunk = file.read(CHUNK)
            if not chunk:
                return
            yield chunk


@contextmanager
def _told() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise RemoteError(error.strerror or type(error).__name__) from error
