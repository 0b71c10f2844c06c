"""Kind `module`: a model that an installed distribution offers. What is fetched is a note of which one it is."""

from __future__ import annotations

import json
from pathlib import Path

from anfbuild import plugins


def note_module(name: str, folder: Path) -> Path:
    """Write to `folder` which installed model `name` is, for whoever looks; its code runs when it is converted."""
    point = plugins.installed(plugins.MODELS)[name]
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "model.module.json"
    note = {
        "name": name,
        "object": point.value,
        "distribution": point.dist.name if point.dist else None,
        "version": point.dist.version if point.dist else None,
    }
    path.write_text(json.dumps(note, sort_keys=True, indent=1) + "\n", encoding="utf-8")
    return path
