"""How steps write and read the small documents that they leave for one another."""

from __future__ import annotations

import csv
import hashlib
import json
from pathlib import Path
from typing import Any


def write_json(path: Path, value: Any) -> None:
    """Write `value` as JSON that is the same bytes for the same value. NaN and Inf are refused with ValueError."""
    path.write_text(json.dumps(value, sort_keys=True, indent=1, allow_nan=False) + "\n", encoding="utf-8")


def read_json(path: Path) -> Any:
    """The value that `write_json` wrote."""
    return json.loads(path.read_text(encoding="utf-8"))


def read_rows(path: Path) -> list[dict[str, str]]:
    """The rows of a table in CSV; none where there is no file."""
    if not path.exists():
        return []
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def size_and_digest(path: Path) -> dict[str, Any]:
    """`bytes` and `sha256` of a file."""
    with path.open("rb") as file:
        return {"bytes": path.stat().st_size, "sha256": hashlib.file_digest(file, "sha256").hexdigest()}
