"""The kinds of source by name, and the one way to fetch from any of them.

An installed distribution may offer a model: an entry point of the group `anfbuild.models` is a callable without
arguments that returns a torch.nn.Module or a program of torch.export. A recipe names it: kind `module`.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from anfbuild import plugins
from anfbuild.errors import RecipeError, did_you_mean
from anfbuild.sources.addresses import check_object, check_repository, check_url, parse_package
from anfbuild.sources.downloads import Downloads
from anfbuild.sources.file import copy_file, copy_folder
from anfbuild.sources.verify import check_digest
from anfbuild.sources.wheel import TIMEOUT_S, check_tags, fetch_members, parse_member, parse_requirement

KINDS: dict[str, dict[str, bool]] = {
    "file": {"path": True, "file": False},
    "https": {"url": True},
    "huggingface": {"repo": True, "revision": True, "file": True},
    "module": {"name": True},
    "npm": {"distribution": True, "file": True},
    "object": {"url": True},
    "wheel": {"distribution": True, "file": True, "python": False, "platform": False},
}
"""Kind -> the keys that it reads (besides `sha256`), and whether each must be given."""


@dataclasses.dataclass(frozen=True)
class Source:
    """Where a model comes from, in the words of a recipe. What a kind does not read is null."""

    kind: str
    path: Path | None = None
    url: str | None = None
    repo: str | None = None
    revision: str | None = None
    distribution: str | None = None
    name: str | None = None
    file: str | None = None
    python: str | None = None
    platform: str | None = None
    sha256: str | None = None


def check(kind: str, *, where: str = "source", **keys: Any) -> None:
    """Refuse a source that cannot be fetched, without touching a file or the network. The keys are those of `Source`,
    `where` is the path of the recipe that has them.

    Raises RecipeError: an unknown kind, a missing key, a key of another kind, an unpinned distribution or revision, an
    address that is not protected, a malformed digest, tag or member name, a module that no distribution offers.
    """
    with _at(where):
        _check(Source(kind, **keys))


@contextlib.contextmanager
def _at(where: str) -> Iterator[None]:
    """Say of errors about a key of a source which source of the recipe it is."""
    try:
        yield
    except RecipeError as error:
        key = (error.where or "").rpartition(".")[2]
        if key in {field.name for field in dataclasses.fields(Source)}:
            error.where = f"{where}.{key}"
        raise


def _check(source: Source) -> None:
    _check_keys(source)
    if source.sha256 is not None:
        check_digest(source.sha256, where="sha256")
    if source.url is not None:
        (check_object if source.kind == "object" else check_url)(source.url)
    if source.repo is not None:
        check_repository(source.repo, source.revision or "")
    if source.name is not None:
        _check_module(source)
    if source.kind == "npm" and source.distribution is not None:
        parse_package(source.distribution)
    elif source.distribution is not None:
        parse_requirement(source.distribution)
        check_tags(source.python, source.platform)
    if source.file is not None and not (source.kind == "file" and source.file == "."):
        parse_member(source.file)


def _check_keys(source: Source) -> None:
    kind = source.kind
    if kind not in KINDS:
        raise RecipeError(
            f"unknown kind of source {kind!r}", where="kind", choices=KINDS, remedy=did_you_mean(kind, KINDS)
        )
    given = {field.name: getattr(source, field.name) for field in dataclasses.fields(source)}
    for key, value in given.items():
        if value is None and KINDS[kind].get(key):
            raise RecipeError(f"a source of kind {kind!r} needs {key!r}", where=key, remedy="Write it.")
        if value is not None and key not in ("kind", "sha256", *KINDS[kind]):
            raise RecipeError(
                f"{key!r} has no meaning for a source of kind {kind!r}",
                where=key,
                choices=KINDS[kind],
                remedy="Set it to null, or choose another kind.",
            )


def _check_module(source: Source) -> None:
    known = plugins.installed(plugins.MODELS)
    if source.name not in known:
        raise RecipeError(
            f"no installed distribution offers a model {source.name!r}",
            where="name",
            choices=sorted(known),
            remedy=f"{did_you_mean(str(source.name), known)}Install the distribution whose entry point of the group "
            f"{plugins.MODELS} has that name.",
        )
    if source.sha256 is not None:
        raise RecipeError(
            "a module has no bytes to pin: its distribution's version and files are in the build's key",
            where="sha256",
            remedy="Set it to null.",
        )


def fetch(
    kind: str,
    *,
    folder: Path,
    downloads: Downloads = Downloads(),
    timeout_s: float = TIMEOUT_S,
    where: str = "source",
    **keys: Any,
) -> Path:
    """Leave what the source names in `folder`, and return the path of the model in it. The keys are those of `Source`.

    A file comes under its own base name. A folder (kind `file`, where `file` names the model inside of `path`, or is
    "." for the folder itself) comes with all that lies in it, so that a model finds its data.
    A file appears whole or not at all, and only when its SHA-256 is `sha256` (a `file` may go unpinned). `downloads`
    says where an interrupted download is kept, and who is told how far one is; `where` is the source's path in the
    recipe.
    Raises RecipeError for what `check` refuses and for what comes from elsewhere without a digest, StepError for what
    cannot be had: no such file, another digest, no such distribution or member, an index out of reach.
    """
    with _at(where):
        return _fetch(Source(kind, **keys), folder, downloads, timeout_s)


def _fetch(source: Source, folder: Path, downloads: Downloads, timeout_s: float) -> Path:
    _check(source)
    if source.path is not None:
        if source.file is None:
            return copy_file(source.path, source.sha256, folder)
        return copy_folder(source.path, source.file, source.sha256, folder)
    if source.name is not None:
        from anfbuild.sources.module import note_module

        return note_module(source.name, folder)
    if source.url is not None or source.repo is not None:
        return _download(source, folder, downloads)
    assert source.distribution is not None
    assert source.file is not None
    if source.kind == "npm":
        from anfbuild.sources.npm import fetch_package_file

        return fetch_package_file(
            source.distribution, source.file, source.sha256, folder, downloads, timeout_s=timeout_s
        )
    files = {source.file: source.sha256}
    found = fetch_members(
        *(source.distribution, source.python, source.platform), files, folder, downloads=downloads, timeout_s=timeout_s
    )
    return found[source.file]


def _download(source: Source, folder: Path, downloads: Downloads) -> Path:
    if source.url is None:
        from anfbuild.sources.huggingface import fetch_from_hub

        assert source.repo is not None
        assert source.revision is not None
        assert source.file is not None
        return fetch_from_hub(source.repo, source.revision, source.file, source.sha256, folder, downloads)
    if source.kind == "object":
        from anfbuild.sources.object import fetch_object

        return fetch_object(source.url, source.sha256, folder, downloads)
    from anfbuild.sources.https import fetch_url

    return fetch_url(source.url, source.sha256, folder, downloads)
