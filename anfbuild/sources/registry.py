"""The kinds of source by name, and the one way to fetch from any of them."""

from __future__ import annotations

from pathlib import Path

from anfbuild.errors import RecipeError, did_you_mean
from anfbuild.sources.addresses import check_url, parse_package
from anfbuild.sources.file import copy_file, copy_folder
from anfbuild.sources.verify import check_digest
from anfbuild.sources.wheel import TIMEOUT_S, check_tags, fetch_members, parse_member, parse_requirement

KINDS: dict[str, dict[str, bool]] = {
    "file": {"path": True, "file": False},
    "https": {"url": True},
    "npm": {"distribution": True, "file": True},
    "wheel": {"distribution": True, "file": True, "python": False, "platform": False},
}
"""Kind -> the keys that it reads (besides `sha256`), and whether each must be given."""


def check(
    kind: str,
    *,
    path: Path | None = None,
    url: str | None = None,
    distribution: str | None = None,
    file: str | None = None,
    python: str | None = None,
    platform: str | None = None,
    sha256: str | None = None,
    where: str = "source",
) -> None:
    """Refuse a source that cannot be fetched, without touching a file or the network.

    Raises RecipeError: an unknown kind, a missing key, a key of another kind, an unpinned distribution, an address that
    is not protected, a malformed digest, tag or member name.
    """
    if kind not in KINDS:
        raise RecipeError(
            f"unknown kind of source {kind!r}", where=f"{where}.kind", choices=KINDS, remedy=did_you_mean(kind, KINDS)
        )
    given = {
        "path": path,
        "url": url,
        "distribution": distribution,
        "file": file,
        "python": python,
        "platform": platform,
    }
    for key, value in given.items():
        if value is None and KINDS[kind].get(key):
            raise RecipeError(f"a source of kind {kind!r} needs {key!r}", where=f"{where}.{key}", remedy="Write it.")
        if value is not None and key not in KINDS[kind]:
            raise RecipeError(
                f"{key!r} has no meaning for a source of kind {kind!r}",
                where=f"{where}.{key}",
                choices=KINDS[kind],
                remedy="Set it to null, or choose another kind.",
            )
    if sha256 is not None:
        check_digest(sha256, where=f"{where}.sha256")
    if url is not None:
        check_url(url)
    if kind == "npm" and distribution is not None:
        parse_package(distribution)
    elif distribution is not None:
        parse_requirement(distribution)
        check_tags(python, platform)
    if file is not None and not (kind == "file" and file == "."):
        parse_member(file)


def fetch(
    kind: str,
    *,
    folder: Path,
    path: Path | None = None,
    url: str | None = None,
    distribution: str | None = None,
    file: str | None = None,
    python: str | None = None,
    platform: str | None = None,
    sha256: str | None = None,
    timeout_s: float = TIMEOUT_S,
) -> Path:
    """Leave what the source names in `folder`, and return the path of the model in it.

    A file comes under its own base name. A folder (kind `file`, where `file` names the model inside of `path`, or is
    "." for the folder itself) comes with all that lies in it, so that a model finds its data.
    A file appears whole or not at all, and only when its SHA-256 is `sha256` (a `file` may go unpinned).
    Raises RecipeError for what `check` refuses and for what comes from elsewhere without a digest, StepError for what
    cannot be had: no such file, another digest, no such distribution or member, an index out of reach.
    """
    check(
        kind,
        path=path,
        url=url,
        distribution=distribution,
        file=file,
        python=python,
        platform=platform,
        sha256=sha256,
    )
    if path is not None:
        return copy_file(path, sha256, folder) if file is None else copy_folder(path, file, sha256, folder)
    if url is not None:
        from anfbuild.sources.https import fetch_url

        return fetch_url(url, sha256, folder)
    assert distribution is not None
    assert file is not None
    if kind == "npm":
        from anfbuild.sources.npm import fetch_package_file

        return fetch_package_file(distribution, file, sha256, folder, timeout_s=timeout_s)
    return fetch_members(distribution, python, platform, {file: sha256}, folder, timeout_s=timeout_s)[file]
