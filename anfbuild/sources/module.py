"""Kind `module`: a model that an installed distribution offers. What is fetched is a note of which one it is."""

from __future__ import annotations

import json
from pathlib import Path

from anfbuild import plugins

MODULE = ".module.json"
"""How the name of the note ends."""


def note_module(name: str, folder: Path) -> Path:
    """Write to `folder` which installed model `name` is; its code runs when the note is read as a model."""
    point = plugins.installed(plugins.MODELS)[name]
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"model{MODULE}"
    note = {
        "name": name,
        "object": point.value,
        "distribution": point.dist.name if point.dist else None,
        "version": point.dist.version if point.dist else None,
    }
    path.write_text(json.dumps(note, sort_keys=True, indent=1) + "\n", encoding="utf-8")
    return path
