"""JSON documents: the one way to write them, and the check against a published JSON Schema.

The check knows the part of JSON Schema (2020-12) that our own schemas use and refuses a schema that uses more, so that
no rule of a published schema goes unchecked.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from importlib import resources
from typing import Any

_TYPES: dict[str, Callable[[object], bool]] = {
    "null": lambda value: value is None,
    "boolean": lambda value: isinstance(value, bool),
    "integer": lambda value: isinstance(value, int) and not isinstance(value, bool),
    "number": lambda value: isinstance(value, int | float) and not isinstance(value, bool),
    "string": lambda value: isinstance(value, str),
    "array": lambda value: isinstance(value, list | tuple),
    "object": lambda value: isinstance(value, Mapping),
}
_ANNOTATIONS = {"$schema", "$defs", "title", "description"}


def canonical(document: object) -> bytes:
    """`document` as JSON with sorted keys, two spaces, UTF-8 and one line end: equal documents, equal bytes.

    Raises ValueError for NaN and infinities, which JSON does not have.
    """
    return (json.dumps(document, sort_keys=True, indent=2, ensure_ascii=False, allow_nan=False) + "\n").encode()


def load_schema(package: str, name: str) -> dict[str, Any]:
    """The JSON Schema `name` that lies beside the modules of `package`."""
    text = (resources.files(package) / name).read_text(encoding="utf-8")
    schema: dict[str, Any] = json.loads(text)
    return schema


def check(document: object, schema: Mapping[str, Any]) -> list[str]:
    """What is wrong with `document`, each as "JSON pointer: reason"; empty where it obeys `schema`.

    Raises ValueError where the schema uses a keyword that this check does not know.
    """
    return [f"{pointer or '/'}: {reason}" for pointer, reason in _problems(document, schema, schema, "")]


def _problems(
    value: object, rule: Mapping[str, Any], root: Mapping[str, Any], pointer: str
) -> Iterator[tuple[str, str]]:
    for keyword in rule:
        if keyword not in _KEYWORDS and keyword not in _ANNOTATIONS:
            raise ValueError(f"schema keyword {keyword!r} is not supported")
    if "$ref" in rule:
        yield from _problems(value, _referred(rule["$ref"], root), root, pointer)
    types = rule.get("type", [])
    types = [types] if isinstance(types, str) else types
    if types and not any(_TYPES[name](value) for name in types):
        yield pointer, f"{_short(value)} is not {' or '.join(types)}"
        return
    if "const" in rule and (value != rule["const"] or isinstance(value, bool) != isinstance(rule["const"], bool)):
        yield pointer, f"{_short(value)} is not {rule['const']!r}"
    if "enum" in rule and value not in rule["enum"]:
        yield pointer, f"{_short(value)} is not one of {', '.join(map(str, rule['enum']))}"
    # Our patterns are anchored; fullmatch, because Python's $ would let a line end pass.
    if isinstance(value, str) and "pattern" in rule and not re.fullmatch(rule["pattern"], value):
        yield pointer, f"{_short(value)} does not match {rule['pattern']}"
    if isinstance(value, int | float) and not isinstance(value, bool):
        if "minimum" in rule and not value >= rule["minimum"]:
            yield pointer, f"{value} is below {rule['minimum']}"
        if "maximum" in rule and not value <= rule["maximum"]:
            yield pointer, f"{value} is above {rule['maximum']}"
    if isinstance(value, list | tuple):
        yield from _array_problems(value, rule, root, pointer)
    if isinstance(value, Mapping):
        yield from _object_problems(value, rule, root, pointer)


def _referred(reference: str, root: Mapping[str, Any]) -> Mapping[str, Any]:
    """The rule at a JSON pointer into the schema itself, `#/$defs/source`."""
    rule = root
    for key in reference.removeprefix("#/").split("/"):
        rule = rule[key]
    return rule


def _array_problems(
    value: list[object] | tuple[object, ...], rule: Mapping[str, Any], root: Mapping[str, Any], pointer: str
) -> Iterator[tuple[str, str]]:
    if not rule.get("minItems", 0) <= len(value) <= rule.get("maxItems", len(value)):
        yield pointer, f"has {len(value)} items"
    for index, item in enumerate(value):
        yield from _problems(item, rule.get("items", {}), root, f"{pointer}/{index}")


def _object_problems(
    value: Mapping[Any, object], rule: Mapping[str, Any], root: Mapping[str, Any], pointer: str
) -> Iterator[tuple[str, str]]:
    properties = rule.get("properties", {})
    for key in rule.get("required", ()):
        if key not in value:
            yield pointer, f"lacks {key!r}"
    other = rule.get("additionalProperties", {})
    for key, item in value.items():
        place = f"{pointer}/{escape(str(key))}"
        if not isinstance(key, str):
            yield place, "the key is not a string"
        elif key in properties:
            yield from _problems(item, properties[key], root, place)
        elif other is False:
            yield place, "is not known"
        else:
            yield from _problems(item, other, root, place)


def escape(key: str) -> str:
    """`key` as one token of a JSON pointer (RFC 6901)."""
    return key.replace("~", "~0").replace("/", "~1")


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


_KEYWORDS = {
    "$ref", "type", "const", "enum", "pattern", "minimum", "maximum",
    "minItems", "maxItems", "items", "properties", "required", "additionalProperties",
}  # fmt: skip
