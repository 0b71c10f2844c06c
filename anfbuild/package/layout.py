"""The byte layout of a package: a STORED zip with fixed headers, laid out and taken apart.

That of PKWARE's APPNOTE.TXT 6.3, sections 4.3.7 (local header), 4.3.12 (central directory), 4.3.16 (end record). Laid
out here rather than by `zipfile`, whose choices may change with Python and platform.
"""

from __future__ import annotations

import io
import stat
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from anfbuild.errors import StepError
from anfbuild.package.manifest import check_names

LIMIT = 2**32 - 1
"""Bytes of an archive: beyond it the format needs extra fields (zip64)."""
MEMBERS_LIMIT = 2**16 - 1
CHUNK = 1 << 20

_LOCAL = struct.Struct("<IHHHHHIIIHH")
_CENTRAL = struct.Struct("<IHHHHHHIIIHHHHHII")
_END = struct.Struct("<IHHHHIIH")
_LOCAL_SIGNATURE, _CENTRAL_SIGNATURE, _END_SIGNATURE = 0x04034B50, 0x02014B50, 0x06054B50
_DATE = 0 << 9 | 1 << 5 | 1  # 1980-01-01, the earliest that the format knows
_MODE = stat.S_IFREG | 0o644
_UNIX = 3 << 8 | 20  # "version made by": without it the mode is not looked at
_NEEDED = 10  # "version needed": 1.0, nothing but STORED


@dataclass(frozen=True)
class Member:
    """One file of the archive; `sha256` is not in the zip's own headers."""

    name: str
    size: int
    crc: int
    sha256: str = ""


def local_header(member: Member) -> bytes:
    """What stands before the content of `member`."""
    sizes = (member.crc, member.size, member.size)
    name = member.name.encode()
    return _LOCAL.pack(_LOCAL_SIGNATURE, _NEEDED, 0, 0, 0, _DATE, *sizes, len(name), 0) + name


def tail(members: list[Member]) -> bytes:
    """What stands after the last content: central directory and end record. `members` in the order of the file."""
    starts = content_offsets(members)
    entries = b""
    for member in members:
        name = member.name.encode()
        head = (_CENTRAL_SIGNATURE, _UNIX, _NEEDED, 0, 0, 0, _DATE, member.crc, member.size, member.size)
        start = starts[member.name] - _LOCAL.size - len(name)
        entries += _CENTRAL.pack(*head, len(name), 0, 0, 0, 0, _MODE << 16, start) + name
    start = archive_size(members) - _END.size - len(entries)
    return entries + _END.pack(_END_SIGNATURE, 0, 0, len(members), len(members), len(entries), start, 0)


def content_offsets(members: list[Member]) -> dict[str, int]:
    """Where each member's content starts."""
    starts, position = {}, 0
    for member in members:
        position += _LOCAL.size + len(member.name.encode())
        starts[member.name] = position
        position += member.size
    return starts


def archive_size(members: list[Member]) -> int:
    """Bytes of the whole archive."""
    headers = _LOCAL.size + _CENTRAL.size
    return sum(headers + 2 * len(member.name.encode()) + member.size for member in members) + _END.size


def directory(stream: BinaryIO, path: Path) -> list[Member]:
    """The members that the central directory lists; the stream stands at 0 afterwards.

    Raises StepError for what `tail` and `local_header` cannot lay out (compression, links, unsafe or double names) and
    for sizes that do not add up. It does not compare the headers byte for byte: that is the caller's.
    """
    total = stream.seek(0, io.SEEK_END)
    end = read_at(stream, max(0, total - _END.size), _END.size)
    if len(end) < _END.size or not end.startswith(_END_SIGNATURE.to_bytes(4, "little")):
        raise damaged(path, "it does not end as a package does (another kind of file, or truncated)")
    _, _, _, _, count, size, start, _ = _END.unpack(end)
    if start + size + _END.size != total:
        raise damaged(path, "its central directory is not where the end record says")
    data = read_at(stream, start, size)
    members, position = [], 0
    for _ in range(count):
        member, position = _central_entry(data, position, path)
        members.append(member)
    check_names([member.name for member in members], str(path))
    if sorted(member.name for member in members) != [member.name for member in members]:
        raise damaged(path, "its members are not sorted by name")
    if archive_size(members) != total:
        raise damaged(path, "the sizes of its members do not add up to the size of the file")
    stream.seek(0)
    return members


def _central_entry(data: bytes, position: int, path: Path) -> tuple[Member, int]:
    if position + _CENTRAL.size > len(data):
        raise damaged(path, "its central directory is cut short")
    entry = _CENTRAL.unpack_from(data, position)
    signature, method, crc, stored, size, name_length = entry[0], entry[4], *entry[7:11]
    position += _CENTRAL.size
    name = data[position : position + name_length].decode(errors="replace")
    if signature != _CENTRAL_SIGNATURE:
        raise damaged(path, "its central directory is not as written")
    if method != 0 or stored != size:
        raise damaged(path, f"member {name!r} is compressed")
    if stat.S_ISLNK(entry[15] >> 16):
        raise damaged(path, f"member {name!r} is a symbolic link")
    return Member(name, size, crc), position + name_length + entry[11] + entry[12]


def read_at(stream: BinaryIO, position: int, size: int) -> bytes:
    """Up to `size` bytes from `position`."""
    stream.seek(position)
    return stream.read(size)


def read_chunks(stream: BinaryIO, size: int) -> Iterator[bytes]:
    """The next `size` bytes, or fewer where the file ends."""
    while size > 0 and (chunk := stream.read(min(size, CHUNK))):
        size -= len(chunk)
        yield chunk


def damaged(path: Path, what: str) -> StepError:
    """The error for an archive that `write` did not make, or that changed since."""
    return StepError(
        f"not a sound package: {what}", where=str(path), remedy="Get the file again, or build the package again."
    )
