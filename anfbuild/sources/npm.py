"""Kind `npm`: a file out of a pinned package of an npm registry, taken as data. Nothing is installed, no script runs.

npm itself downloads where it is there, so that the registry and the proxy that the user has set up for it are used.
Elsewhere the registry is asked directly: the one that npm's environment variable or an .npmrc names.
"""

from __future__ import annotations

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

from anfbuild.errors import RecipeError, StepError
from anfbuild.sources.addresses import check_url, parse_package
from anfbuild.sources.archives import Bounded
from anfbuild.sources.downloads import Limits
from anfbuild.sources.https import download
from anfbuild.sources.verify import copy_verified, digest_of
from anfbuild.sources.wheel import TIMEOUT_S, parse_member

MOST_BYTES = 16 * 10**9
"""Bound on what a package holds, unpacked."""

_CREDENTIALS = re.compile(r"(?<=//)[^/@\s]+@")


def fetch_package_file(
    package: str, file: str, sha256: str | None, folder: Path, *, timeout_s: float = TIMEOUT_S
) -> Path:
    """Download `package` (`name@version`) and leave `file` of it in `folder`, under its base name.

    `file` is the path inside of the package, without the tarball's own first folder.
    Raises RecipeError for malformed values, and for a missing digest, naming it; StepError for all that cannot be had.
    """
    parse_package(package)
    parse_member(file)
    with tempfile.TemporaryDirectory(prefix="anfbuild-npm-") as scratch:
        npm = shutil.which("npm")
        if npm is not None:
            tarball = _pack(npm, package, Path(scratch), timeout_s)
        else:
            tarball = _from_registry(package, Path(scratch), timeout_s)
        return _take(tarball, package, file, sha256, folder)


def _pack(npm: str, package: str, folder: Path, timeout_s: float) -> Path:
    command = [npm, "pack", package, f"--pack-destination={folder}", "--ignore-scripts", "--silent", "--json"]
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=timeout_s,
            check=False,
            stdin=subprocess.DEVNULL,
        )
    except subprocess.TimeoutExpired as error:
        raise StepError(
            f"{package} was not downloaded within {timeout_s:g} s", remedy="Look at the connection to the npm registry."
        ) from error
    made = list(folder.glob("*.tgz"))
    if done.returncode or len(made) != 1:
        raise StepError(
            f"{package} cannot be fetched. npm says: {_said(done.stdout + done.stderr)}",
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


def _from_registry(package: str, folder: Path, timeout_s: float) -> Path:
    """The tarball, by the registry's own protocol."""
    name, version = parse_package(package)
    limits = Limits(timeout_s=timeout_s)
    base = _registry().rstrip("/")
    check_url(base)
    described = folder / "package.json"
    download(f"{base}/{urllib.parse.quote(name, safe='@')}/{version}", described, limits._replace(most_bytes=10**8))
    try:
        address = json.loads(described.read_bytes())["dist"]["tarball"]
        check_url(address)
    except (ValueError, KeyError, TypeError, RecipeError) as error:
        raise StepError(f"the npm registry names no tarball for {package} that can be fetched: {error}") from error
    tarball = folder / "package.tgz"
    download(address, tarball, limits)
    return tarball


def _registry() -> str:
    """The registry that the user has set up for npm."""
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
