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

    @property
    def components(self) -> dict[str, dict[str, Any]]:
        """As `components_of` tells them."""
        return components_of(self.config)


def components_of(config: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Component -> the whole of a composed config as that component sees it; empty for a recipe of one model."""
    return {
        component: {**config, **own, "name": f"{config['name']}.{component}", "components": {}}
        for component, own in config["components"].items()
    }
