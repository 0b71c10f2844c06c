"""Which addresses and packages a file may be fetched from. Light: nothing of the network is imported."""

from __future__ import annotations

import ipaddress
import re
import urllib.parse

from anfbuild.errors import RecipeError

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._ -]*")
_OBJECT = re.compile(r"(?P<bucket>(s3|gs|az)://[A-Za-z0-9][A-Za-z0-9._-]*)/(?P<key>[^?#@\\\x00-\x1f\x7f]+)")
_REPOSITORY = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*(/[A-Za-z0-9][A-Za-z0-9._-]*)?")
_PACKAGE = re.compile(
    r"(?P<name>(@[a-z0-9][a-z0-9._~-]*/)?[a-z0-9][a-z0-9._~-]*)@(?P<version>\d+\.\d+\.\d+[0-9A-Za-z.+-]*)"
)


def check_url(url: str) -> str:
    """The file name at the end of `url` ("download" where there is none).

    Raises RecipeError unless it is an https address without user name, or an http one of this very machine.
    """
    try:
        parts = urllib.parse.urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError as error:
        raise _refused(url, f"is no address: {error}") from error
    if parts.scheme not in ("https", "http") or not host or re.search(r"[\x00-\x20\x7f]", url):
        raise _refused(url, "is not an https address")
    if parts.scheme == "http" and not _is_loopback(host):
        raise _refused(url, "is not protected: http is for this machine alone")
    if "@" in parts.netloc:
        raise _refused(parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl(), "holds a user name")
    name = urllib.parse.unquote(parts.path).rpartition("/")[2]
    return name if _NAME.fullmatch(name) else "download"


def parse_package(package: str) -> tuple[str, str]:
    """(name, version) of `name@1.2.3` or `@scope/name@1.2.3`. RecipeError for anything else."""
    found = _PACKAGE.fullmatch(package)
    if found is None:
        raise RecipeError(
            f"{package!r} is not a pinned npm package",
            where="source.distribution",
            remedy="Write name@1.2.3 or @scope/name@1.2.3.",
        )
    return found["name"], found["version"]


def check_object(url: str) -> tuple[str, str]:
    """(bucket, key) of an object's address: `s3://bucket` and `models/m.onnx`. RecipeError for anything else."""
    found = _OBJECT.fullmatch(url)
    if found is None or any(part in ("", ".", "..") for part in found["key"].split("/")):
        shown = url if "@" not in url and "?" not in url else "the address"  # it may hold a secret
        raise RecipeError(
            f"{shown!r} is not the address of an object", where="source.url", remedy="Write s3://BUCKET/KEY."
        )
    return found["bucket"], found["key"]


def check_repository(repo: str, revision: str) -> None:
    """RecipeError unless `repo` is the name of a repository of a hub, and `revision` a whole commit."""
    if not _REPOSITORY.fullmatch(repo) or ".." in repo:
        raise RecipeError(f"{repo!r} is not the name of a repository", where="source.repo", remedy="Write owner/name.")
    if not re.fullmatch(r"[0-9a-f]{40}", revision):
        raise RecipeError(
            f"{revision!r} is not a commit",
            where="source.revision",
            remedy="Write the 40 hexadecimal digits of one: a branch or a tag may move.",
        )


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _refused(url: str, why: str) -> RecipeError:
    return RecipeError(f"{url!r} {why}", where="source.url", remedy="Write an address that starts with https://.")
