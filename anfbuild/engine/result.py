"""What a step left, and how an entry says so: the ActionResult of the Remote Execution API as JSON.

A bazel-remote or any plain HTTP server can keep the same text.
"""

from __future__ import annotations

import dataclasses
import hashlib
import re
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Any

from anfbuild.engine.key import canonical

_SHA256 = re.compile(r"[0-9a-f]{64}")


@dataclasses.dataclass(frozen=True)
class Result:
    """What a step left: file name (POSIX, relative) -> (SHA-256, bytes)."""

    key: str
    files: Mapping[str, tuple[str, int]]
    private: bool = False
    """It was made from what must not leave this machine."""
    remote: bool = False
    """It was made elsewhere: that its bytes are not here is no damage."""

    def digest(self, folder: str = "") -> str:
        """SHA-256 of the listing, or of the part of it below `folder`: what a dependent step's key holds."""
        return hashlib.sha256(canonical({k: v[0] for k, v in self.select(folder).items()})).hexdigest()

    def select(self, folder: str) -> dict[str, tuple[str, int]]:
        """The files below `folder`, named relative to it; all files for an empty name."""
        prefix = f"{folder}/" if folder else ""
        return {name[len(prefix) :]: blob for name, blob in self.files.items() if name.startswith(prefix)}


def to_action_result(files: Mapping[str, tuple[str, int]]) -> dict[str, Any]:
    """`files` as an ActionResult."""
    return {
        "outputFiles": [
            {"path": name, "digest": {"hash": sha, "sizeBytes": str(size)}} for name, (sha, size) in files.items()
        ],
        "exitCode": 0,
    }


def from_action_result(document: Any) -> dict[str, tuple[str, int]]:
    """The files that an ActionResult lists. Raises ValueError: not one, or with a place outside its folder."""
    try:
        listed = [
            (output["path"], output["digest"]["hash"], int(output["digest"].get("sizeBytes", 0)))
            for output in document.get("outputFiles", [])
        ]
    except (KeyError, TypeError, AttributeError, OverflowError) as error:
        raise ValueError("this is no ActionResult") from error
    files = {}
    for name, sha, size in listed:
        if not is_inside(name) or name in files:
            raise ValueError(f"an output cannot have the name {name!r}")
        if not isinstance(sha, str) or not _SHA256.fullmatch(sha) or size < 0:
            raise ValueError(f"output {name!r} has no proper digest")
        files[name] = (sha, size)
    return files


def is_inside(name: Any) -> bool:
    """Whether `name` is a relative path that stays below where it starts, on every system."""
    if not isinstance(name, str) or not name or "\\" in name or ":" in name or "\0" in name:
        return False
    path = PurePosixPath(name)
    return bool(path.parts) and not path.is_absolute() and ".." not in path.parts and str(path) == name
