"""What composing gives."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any


@dataclasses.dataclass(frozen=True)
class Recipe:
    """A composed, resolved and checked recipe. `config` is plain: mappings, lists, strings, numbers, booleans, None."""

    name: str
    config: dict[str, Any]
    place: Callable[[str], str]
    """Key -> where its value was given: `recipes/x.yaml:12`, `command line`, `conf/target/sm8650.yaml:4`."""
