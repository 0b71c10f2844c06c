"""What the types of the schema cannot say: ranges, choices, and values that must fit one another."""

from __future__ import annotations

import dataclasses
import math
import typing
from collections.abc import Collection, Iterator
from typing import Annotated, Any

from anfbuild.recipe.hints import nearest
from anfbuild.recipe.schema import MISSING, Config, Rule


@dataclasses.dataclass(frozen=True)
class Fault:
    """A value at `key` that its type allows and that makes no sense all the same."""

    key: str
    what: str
    choices: tuple[str, ...] = ()
    remedy: str | None = None


ALL = tuple(field.name for field in dataclasses.fields(Config))


def faults(config: dict[str, Any], keys: Collection[str] = ALL, at: str = "") -> Iterator[Fault]:
    """Every fault of what a plain config has at `keys`. Values that were not given come first: nothing else is asked of
    such a config. `at` is where the recipe has it: `components.landmark`, or nothing."""
    above = f"{at}." if at else ""
    yield from _missing({key: config[key] for key in keys}, at)
    yield from _of_class(Config, config, at, keys)
    if "variants" in keys and len(config["variants"]) != 1:
        yield Fault(
            f"{above}variants",
            f"variants holds {len(config['variants'])} names; a recipe has exactly one for now",
            remedy="Keep one.",
        )
    if "model" in keys:
        if not config["model"]["inputs"]:
            yield Fault(f"{above}model.inputs", "the model has no inputs", remedy="Give each input its shape.")
        for name, spec in config["model"]["inputs"].items():
            yield from _of_input(f"{above}model.inputs.{name}", spec)
    for name, gate in config["gates"].items() if "gates" in keys else ():
        yield from _of_gate(f"{above}gates.{name}", gate)


def _missing(value: object, key: str) -> Iterator[Fault]:
    if value == MISSING:
        yield Fault(
            key, f"{key!r} has no value", remedy=f"Write it in the recipe, or give {key}=VALUE on the command line."
        )
    elif isinstance(value, dict):
        for name, item in value.items():
            yield from _missing(item, f"{key}.{name}" if key else str(name))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _missing(item, f"{key}[{index}]")


def _of_class(
    kind: type[Any], values: dict[str, Any], key: str, only: Collection[str] | None = None
) -> Iterator[Fault]:
    hints = typing.get_type_hints(kind, include_extras=True)
    for field in dataclasses.fields(kind):
        if only is not None and field.name not in only:
            continue
        at = f"{key}.{field.name}" if key else field.name
        yield from _of_value(hints[field.name], values[field.name], at, Rule())


def _of_value(hint: Any, value: Any, key: str, rule: Rule) -> Iterator[Fault]:
    if typing.get_origin(hint) is Annotated:
        hint, rule = typing.get_args(hint)
    arguments = typing.get_args(hint)
    if dataclasses.is_dataclass(hint) and isinstance(hint, type):
        yield from _of_class(hint, value, key)
    elif isinstance(value, dict):
        for name, item in value.items():
            yield from _of_value(arguments[1] if arguments else Any, item, f"{key}.{name}", rule)
    elif isinstance(value, list):
        if rule.filled and not value:
            yield Fault(key, f"{key!r} is an empty list")
        for index, item in enumerate(value):
            yield from _of_value(arguments[0] if arguments else Any, item, f"{key}[{index}]", rule)
    else:
        yield from _of_scalar(value, key, rule)


def _of_scalar(value: Any, key: str, rule: Rule) -> Iterator[Fault]:
    if value is not None and rule.choices and value not in rule.choices:
        yield Fault(key, f"{key!r} cannot be {value!r}", rule.choices, nearest(value, rule.choices))
    if isinstance(value, bool) or not isinstance(value, int | float):
        return
    if isinstance(value, float) and not math.isfinite(value):
        yield Fault(key, f"{key!r} is {value}, not a finite number")
    elif rule.minimum is not None and value < rule.minimum:
        yield Fault(key, f"{key!r} is {value}, and must be at least {rule.minimum:.15g}")
    elif rule.above is not None and value <= rule.above:
        yield Fault(key, f"{key!r} is {value}, and must be above {rule.above:.15g}")
    elif rule.maximum is not None and value > rule.maximum:
        yield Fault(key, f"{key!r} is {value}, and must be at most {rule.maximum:.15g}")


def _of_input(key: str, spec: dict[str, Any]) -> Iterator[Fault]:
    channels = 1 if spec["channels"] == "GRAY" else 3
    for name in ("mean", "std"):
        if len(spec[name]) != channels:
            yield Fault(
                f"{key}.{name}",
                f"{name} holds {len(spec[name])} values, but channels are {spec['channels']}",
                remedy=f"Give {channels}, in the order of the channels.",
            )


def _of_gate(key: str, gate: dict[str, Any]) -> Iterator[Fault]:
    low, high = gate["min"], gate["max"]
    if low is None and high is None:
        yield Fault(key, f"{key!r} has no limit", ("min", "max"), f"Give one, or drop it with ~{key}.")
    elif low is not None and high is not None and low > high:
        yield Fault(key, f"{key!r} can never hold: min {low:g} is above max {high:g}")
