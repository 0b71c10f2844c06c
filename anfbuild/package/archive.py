"""NAME.anf: a STORED zip with one possible byte form, written and read strictly.

The reader recomputes every byte that is not a member's content and checks every content by CRC-32 and SHA-256: an
archive is what `write` would have made of its members, or it is refused.
"""

from __future__ import annotations

import hashlib
import io
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, TypedDict

from anfbuild.atomic import replacing
from anfbuild.errors import StepError
from anfbuild.package.documents import canonical
from anfbuild.package.layout import (
    CHUNK,
    LIMIT,
    MEMBERS_LIMIT,
    Member,
    archive_size,
    content_offsets,
    damaged,
    directory,
    local_header,
    read_at,
    read_chunks,
    tail,
)
from anfbuild.package.manifest import (
    MANIFEST,
    README,
    SCHEMA_VERSION,
    check_manifest,
    check_names,
    models,
    parse,
    readme,
)

_MANIFEST_LIMIT = 16 * 10**6


class Written(TypedDict):
    """The file that `write` made."""

    bytes: int
    sha256: str


@dataclass(frozen=True)
class Package:
    """An archive whose every byte was verified when it was read."""

    path: Path
    manifest: dict[str, Any]
    """As `manifest.schema.json` says."""
    _offsets: dict[str, int] = field(repr=False)

    @property
    def models(self) -> dict[str, Mapping[str, Any]]:
        """Component -> its tensors, task, source and entry; the only model of a package is `main`."""
        return models(self.manifest)

    @property
    def names(self) -> list[str]:
        """All members but the manifest, sorted."""
        return sorted(self.manifest["files"])

    def read(self, member: str) -> bytes:
        """The content of `member`, verified again: the file may have changed since it was opened."""
        return b"".join(self._chunks(member))

    def extract(self, folder: Path) -> None:
        """Write every member, the manifest included, below `folder`, which is made where needed."""
        for name in self.names:
            target = folder / name
            target.parent.mkdir(parents=True, exist_ok=True)
            with target.open("wb") as stream:
                for chunk in self._chunks(name):
                    stream.write(chunk)
        (folder / MANIFEST).write_bytes(canonical(self.manifest))

    def _chunks(self, member: str) -> Iterator[bytes]:
        if member not in self.manifest["files"]:
            raise StepError(f"has no member {member!r}", where=str(self.path), choices=self.names)
        entry = self.manifest["files"][member]
        digest = hashlib.sha256()
        with self.path.open("rb") as stream:
            stream.seek(self._offsets[member])
            for chunk in read_chunks(stream, entry["size"]):
                digest.update(chunk)
                yield chunk
        if digest.hexdigest() != entry["sha256"]:
            raise damaged(self.path, f"member {member!r} changed since the package was opened")


def write(path: Path, *, files: Mapping[str, Path | bytes], manifest: Mapping[str, Any]) -> Written:
    """Write the package at `path`, atomically, and return its size in bytes and SHA-256.

    `files` maps member names to content. `manifest` obeys `manifest.schema.json` but for `schema_version` and `files`,
    which are filled in here; README.md is written from it. Raises StepError for a member name that is not safe on every
    file system, a missing file, a manifest that is not valid, and more than 4 GiB.
    """
    where = str(path)
    for reserved in (MANIFEST, README):
        if reserved in files:
            raise StepError(f"member {reserved!r} is written by anfbuild itself", where=where)
    check_names([*files, MANIFEST, README], where)
    members = {name: _measure(name, content, where) for name, content in files.items()}
    document = {**manifest, "schema_version": SCHEMA_VERSION, "files": _listing(members)}
    check_manifest(document, where)
    contents: dict[str, Path | bytes] = {**files, README: readme(document).encode()}
    members[README] = _measure(README, contents[README], where)
    contents[MANIFEST] = canonical({**document, "files": _listing(members)})
    members[MANIFEST] = _measure(MANIFEST, contents[MANIFEST], where)
    return _write_atomically(path, [members[name] for name in sorted(members)], contents)


def join(packages: Mapping[str, Package], root: Path) -> tuple[dict[str, Path], dict[str, Any]]:
    """What `write` takes for one package of several components: component -> its own package, extracted to a folder of
    that name below `root`. The manifest lacks a name."""
    files: dict[str, Path] = {}
    components = {}
    for component, package in packages.items():
        names = [name for name in package.names if name != README]
        files |= {f"{component}/{name}": root / component / name for name in names}
        (model,) = package.models.values()
        entry = {role: f"{component}/{member}" for role, member in model["entry"].items()}
        components[component] = {**model, "entry": entry}
    one = next(iter(packages.values())).manifest
    return files, {**{key: one[key] for key in ("backend", "target", "versions")}, "components": components}


def read(path: Path) -> Package:
    """Open the package at `path` after verifying every byte of it.

    Raises StepError naming file and member for anything that `write` would not have written: another kind of file, a
    truncated or damaged one, compressed members, links, names that are unsafe or double, members that the manifest does
    not list and the reverse, a manifest of a newer anfbuild.
    """
    where = str(path)
    try:
        with path.open("rb") as stream:
            members = directory(stream, path)
            offsets = content_offsets(members)
            found = {member.name: _verify(stream, path, member, offsets[member.name]) for member in members}
            if stream.read() != tail(members):
                raise damaged(path, "its central directory is not as written")
            if MANIFEST not in found:
                raise StepError(f"has no {MANIFEST}: it is a zip, but no package", where=where)
            if found[MANIFEST].size > _MANIFEST_LIMIT:
                raise StepError(f"{MANIFEST} has {found[MANIFEST].size} bytes, which no package needs", where=where)
            stream.seek(offsets[MANIFEST])
            manifest = parse(stream.read(found.pop(MANIFEST).size), where)
    except OSError as error:
        raise StepError(f"cannot be read: {error.strerror}", where=where) from error
    check_manifest(manifest, where)
    _compare(manifest["files"], _listing(found), path)
    return Package(path, manifest, offsets)


def _listing(members: Mapping[str, Member]) -> dict[str, dict[str, str | int]]:
    return {name: {"sha256": member.sha256, "size": member.size} for name, member in members.items()}


def _compare(listed: Mapping[str, object], found: Mapping[str, object], path: Path) -> None:
    for name in sorted(set(found) - set(listed)):
        raise damaged(path, f"member {name!r} is not in the manifest")
    for name in sorted(set(listed) - set(found)):
        raise damaged(path, f"member {name!r} of the manifest is missing")
    for name in sorted(found):
        if found[name] != listed[name]:
            raise damaged(path, f"member {name!r} has another digest or size than the manifest says")


def _measure(name: str, content: Path | bytes, where: str) -> Member:
    size, crc, digest = 0, 0, hashlib.sha256()
    for chunk in _content(name, content, where):
        size, crc = size + len(chunk), zlib.crc32(chunk, crc)
        digest.update(chunk)
    return Member(name, size, crc, digest.hexdigest())


def _content(name: str, content: Path | bytes, where: str) -> Iterator[bytes]:
    try:
        with io.BytesIO(content) if isinstance(content, bytes) else content.open("rb") as stream:
            while chunk := stream.read(CHUNK):
                yield chunk
    except OSError as error:
        raise StepError(f"member {name!r} cannot be read from {content!s}: {error.strerror}", where=where) from error


def _write_atomically(path: Path, members: list[Member], contents: Mapping[str, Path | bytes]) -> Written:
    size = archive_size(members)
    if size > LIMIT or len(members) > MEMBERS_LIMIT:
        raise StepError(
            f"would have {len(members)} members and {size} bytes; a package holds {MEMBERS_LIMIT} and less than 4 GiB",
            where=str(path),
            remedy=f"Make {max(members, key=lambda member: member.size).name!r} smaller.",
        )
    digest = hashlib.sha256()
    try:
        with replacing(path) as part, part.open("wb") as stream:
            for chunk in _serialise(members, contents, str(path)):
                digest.update(chunk)
                stream.write(chunk)
    except OSError as error:
        raise StepError(f"cannot be written: {error.strerror}", where=str(path)) from error
    return {"bytes": size, "sha256": digest.hexdigest()}


def _serialise(members: list[Member], contents: Mapping[str, Path | bytes], where: str) -> Iterator[bytes]:
    for member in members:
        yield local_header(member)
        digest = hashlib.sha256()
        for chunk in _content(member.name, contents[member.name], where):
            digest.update(chunk)
            yield chunk
        if digest.hexdigest() != member.sha256:
            raise StepError(f"member {member.name!r} changed while the package was written", where=where)
    yield tail(members)


def _verify(stream: BinaryIO, path: Path, member: Member, offset: int) -> Member:
    header = local_header(member)
    if read_at(stream, offset - len(header), len(header)) != header:
        raise damaged(path, f"the header of member {member.name!r} is not as written")
    crc, digest = 0, hashlib.sha256()
    for chunk in read_chunks(stream, member.size):
        crc = zlib.crc32(chunk, crc)
        digest.update(chunk)
    if crc != member.crc:
        raise damaged(path, f"member {member.name!r} has another checksum than its header says")
    return Member(member.name, member.size, crc, digest.hexdigest())
