"""An entry of the store as bytes: a result under its key, bound to it by a checksum.

{"key", "result": ActionResult, "private", "remote", "sha256": of the canonical JSON of the rest}
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from anfbuild.engine.key import canonical
from anfbuild.engine.result import Result, from_action_result, to_action_result


def format_entry(result: Result) -> bytes:
    """The entry of a result."""
    document = {
        "key": result.key,
        "result": to_action_result(result.files),
        "private": result.private,
        "remote": result.remote,
    }
    return canonical({**document, "sha256": _checksum(document)})


def parse_entry(key: str, data: bytes) -> Result:
    """The result that the bytes of the entry of `key` tell of. Raises ValueError: another key's, or damaged."""
    try:
        document = json.loads(data)
        told = document.pop("sha256")
        if document["key"] != key or told != _checksum(document):
            raise ValueError("another key's entry, or a damaged one")
        return Result(key, from_action_result(document["result"]), document["private"], document["remote"])
    except (LookupError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError("this is no entry") from error


def _checksum(document: Mapping[str, Any]) -> str:
    return hashlib.sha256(canonical(document)).hexdigest()
