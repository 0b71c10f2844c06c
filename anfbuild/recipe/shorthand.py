"""`components: {landmark: {source: hand_landmark}}` is short for `source: {choice: hand_landmark}`.

Written out as soon as a file is read: a recipe that builds on it can then refine what was chosen, or choose another.
"""

from __future__ import annotations

from omegaconf import Container, DictConfig, Node

from anfbuild.recipe.schema import COMPONENT, GROUPS

CHOICE = "choice"
"""The key of a component's group that names a file of the group."""

CHOOSABLE = tuple(group for group in GROUPS if group in COMPONENT)
"""The groups that each component chooses from for itself."""


def spell_out(config: Container) -> None:
    """Write out the choices of the components of `config`, a recipe as it was read. What is odd stays as it is."""
    for component in _nodes(_node(config, "components")):
        for group in CHOOSABLE:
            value = _node(component, group)
            if isinstance(component, DictConfig) and isinstance(value, Node) and isinstance(value._value(), str):
                component[group] = {CHOICE: value._value()}


def _node(config: object, key: str) -> object:
    return config._get_node(key) if isinstance(config, DictConfig) and key in config else None


def _nodes(config: object) -> list[object]:
    return [config._get_node(key) for key in config] if isinstance(config, DictConfig) and config else []
