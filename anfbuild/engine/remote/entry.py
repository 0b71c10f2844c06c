"""An action entry as remotes keep it: an ActionResult of the Remote Execution API as JSON, bound to its key.

An ActionResult does not say which action it is the result of. `stdoutRaw`, which servers keep as it is, holds the
binding: {"key", "sha256"}, the latter over key and outputs. It tells an entry that was served under another key, or
damaged, from a good one; it is no signature, so that who may write to a remote is trusted by all who read from it.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping
from typing import Any

from anfbuild.engine.key import canonical
from anfbuild.engine.result import Result, from_action_result, to_action_result

_MAX_NAME = 255
"""Bytes of a part of a path, on every usual file system."""

_MAX_PATH = 1024

_MAX_SIZE = 1 << 50


def encode(result: Result) -> bytes:
    """The entry of `result` for a remote."""
    binding = {"key": result.key, "sha256": _checksum(result.key, result.files)}
    text = base64.b64encode(canonical(binding)).decode()
    return canonical({**to_action_result(result.files), "stdoutRaw": text})


def decode(key: str, data: bytes) -> Result:
    """The result that an entry tells of, which came from outside under `key`.

    Raises ValueError: no entry, another key's, a changed one, or one whose files could not be written.
    """
    try:
        document = json.loads(data)
        binding = json.loads(base64.b64decode(document["stdoutRaw"], validate=True))
        told = binding["key"], binding["sha256"]
        files = from_action_result(document)
    except (LookupError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        raise ValueError("no entry of anfbuild") from error
    if told[0] != key:
        raise ValueError("the entry of another key")
    if told[1] != _checksum(key, files):
        raise ValueError("an entry that was changed")
    _check_writable(files)
    return Result(key, files, remote=True)


def _checksum(key: str, files: Mapping[str, tuple[str, int]]) -> str:
    outputs: list[Any] = sorted([name, *blob] for name, blob in files.items())
    return hashlib.sha256(canonical([key, outputs])).hexdigest()


def _check_writable(files: Mapping[str, tuple[str, int]]) -> None:
    """What a step of this machine could not have left must not be taken over: it could not be copied out."""
    folders = {"/".join(name.split("/")[:depth]) for name in files for depth in range(1, name.count("/") + 1)}
    for name, (_, size) in files.items():
        encoded = name.encode()  # a lone surrogate is a ValueError
        if len(encoded) > _MAX_PATH or any(len(part) > _MAX_NAME for part in encoded.split(b"/")):
            raise ValueError("a name that is too long")
        if not name.isprintable() or name in folders:
            raise ValueError(f"an output cannot have the name {name!r}")
        if size > _MAX_SIZE:
            raise ValueError(f"output {name!r} has no credible size")
