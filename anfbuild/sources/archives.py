"""Archives (.zip, .tar) that a model comes in: what is in one, and how it is unpacked into one folder alone."""

from __future__ import annotations

import shutil
import stat
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, NamedTuple, cast

from anfbuild.errors import AnfbuildError, StepError

MOST_BYTES = 64 * 10**9
"""Bound on what an archive holds, unpacked."""
MOST_FILES = 100_000
MOST_RATIO = 1000
"""Unpacked bytes over packed ones: trained weights do not shrink to a hundredth."""
_CHUNK = 1 << 20
_DAMAGED = "Fetch it again and pin its SHA-256, or pack it again."
_REPACK = "Pack the plain files of the model again, by names that are relative to its folder."


class _Member(NamedTuple):
    name: str
    stream: IO[bytes] | None
    """Null for a folder."""


def zip_names(path: Path) -> list[str] | None:
    """The names of the files in a zip archive; None where it is no sound one."""
    try:
        with zipfile.ZipFile(path) as archive:
            return [info.filename for info in archive.infolist() if not info.is_dir()]
    except Exception:  # of a malformed one, the library raises whatever comes of it
        return None


def unpack(path: Path, folder: Path) -> None:
    """Write the files of the archive `path` below the empty folder `folder`.

    Raises StepError naming the archive and the member: damaged, encrypted, a path that leads out of the folder, a link
    or device, a name twice, more than MOST_FILES, or more bytes than MOST_BYTES or MOST_RATIO times its own size allow.
    """
    left = min(MOST_BYTES, max(path.stat().st_size, _CHUNK) * MOST_RATIO)
    try:
        members = _zip_members(path) if zipfile.is_zipfile(path) else _tar_members(path, left)
        for count, (name, stream) in enumerate(members, 1):
            if count > MOST_FILES:
                raise _refused(path, f"the archive holds more than {MOST_FILES} files")
            target = folder.joinpath(*_parts(path, name))
            if stream is None:
                target.mkdir(parents=True, exist_ok=True)
                continue
            target.parent.mkdir(parents=True, exist_ok=True)
            with target.open("xb") as file:
                left -= _copy(stream, file, left, path)
    except FileExistsError as error:
        raise _refused(path, f"the archive holds {name!r} twice, or as a file and a folder") from error
    except AnfbuildError:
        raise
    except Exception as error:  # as above
        shutil.rmtree(folder, ignore_errors=True)
        raise StepError(
            f"the archive cannot be unpacked: {str(error) or type(error).__name__}", where=str(path), remedy=_DAMAGED
        ) from error


def _zip_members(path: Path) -> Iterator[_Member]:
    with zipfile.ZipFile(path) as archive:
        for info in archive.infolist():
            kind = stat.S_IFMT(info.external_attr >> 16)
            if kind not in (0, stat.S_IFREG, stat.S_IFDIR):
                raise _refused(path, f"{info.filename!r} in the archive is a link or a device")
            if info.is_dir():
                yield _Member(info.filename, None)
            else:
                with archive.open(info) as stream:
                    yield _Member(info.filename, stream)


def _tar_members(path: Path, most: int) -> Iterator[_Member]:
    with path.open("rb") as raw, tarfile.open(fileobj=raw, mode="r:*") as plain:
        inner = cast(IO[bytes], plain.fileobj)  # what is packed, without its compression
        inner.seek(0)
        with tarfile.open(fileobj=cast(IO[bytes], Bounded(inner, most, _bomb(path))), mode="r|") as archive:
            for member in archive:
                if not (member.isreg() or member.isdir()):
                    raise _refused(path, f"{member.name!r} in the archive is a link or a device")
                yield _Member(member.name, archive.extractfile(member) if member.isreg() else None)


class Bounded:
    """A stream that ends with `error` where a few bytes would unpack to more than a disk holds."""

    def __init__(self, stream: IO[bytes], most: int, error: StepError) -> None:
        self._stream, self._left, self._error = stream, most, error

    def read(self, size: int) -> bytes:
        data = self._stream.read(min(size, self._left + 1))
        self._left -= len(data)
        if self._left < 0:
            raise self._error
        return data


def _copy(stream: IO[bytes], file: IO[bytes], most: int, path: Path) -> int:
    copied = 0
    while chunk := stream.read(_CHUNK):
        copied += len(chunk)
        if copied > most:
            raise _bomb(path)
        file.write(chunk)
    return copied


def _parts(path: Path, name: str) -> list[str]:
    """The parts of a member's name, which lead into the folder."""
    parts = [part for part in name.rstrip("/").split("/") if part != "."]
    if "\\" in name or "\0" in name or any(part in ("", "..") or part.endswith(":") for part in parts):
        raise _refused(path, f"{name!r} in the archive leads out of its folder")
    return parts


def _bomb(path: Path) -> StepError:
    return _refused(path, f"the archive unpacks to more than {MOST_RATIO} times its size, or than {MOST_BYTES} bytes")


def _refused(path: Path, what: str) -> StepError:
    return StepError(what, where=str(path), remedy=_REPACK)
