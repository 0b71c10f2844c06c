"""The check against a JSON Schema finds each kind of fault, names its place, and ignores no keyword."""

from __future__ import annotations

from typing import Any

import pytest

from anfbuild.package import canonical, check, load_schema

SCHEMA: dict[str, Any] = {
    "type": "object",
    "required": ["a"],
    "additionalProperties": {"type": "integer"},
    "properties": {
        "a": {"type": ["number", "null"], "minimum": 0, "maximum": 1},
        "b": {"type": "array", "items": {"$ref": "#/$defs/word"}, "minItems": 1, "maxItems": 2},
        "c": {"enum": ["x", "y"]},
        "d": {"const": 1},
        "e": {"type": "object", "additionalProperties": False},
    },
    "$defs": {"word": {"type": "string", "pattern": "^[a-z]+$"}},
}


@pytest.mark.parametrize(
    "document", [{"a": 0.5}, {"a": None, "b": ["w"]}, {"a": 1, "c": "x", "d": 1, "e": {}, "other": 3}]
)
def test_obeying_documents_have_no_problems(document: dict[str, Any]) -> None:
    assert check(document, SCHEMA) == []


@pytest.mark.parametrize(
    ("document", "problem"),
    [
        ([], "/: [] is not object"),
        ({}, "/: lacks 'a'"),
        ({"a": True}, "/a: True is not number or null"),
        ({"a": -1}, "/a: -1 is below 0"),
        ({"a": 2}, "/a: 2 is above 1"),
        ({"a": float("nan")}, "/a: nan is below 0"),
        ({"a": 1, "b": []}, "/b: has 0 items"),
        ({"a": 1, "b": ["x", "y", "z"]}, "/b: has 3 items"),
        ({"a": 1, "b": ["W1"]}, "/b/0: 'W1' does not match ^[a-z]+$"),
        ({"a": 1, "c": "z"}, "/c: 'z' is not one of x, y"),
        ({"a": 1, "d": True}, "/d: True is not 1"),
        ({"a": 1, "e": {"k": 1}}, "/e/k: is not known"),
        ({"a": 1, "x/y~z": "s"}, "/x~1y~0z: 's' is not integer"),
        ({"a": 1, 5: 1}, "/5: the key is not a string"),
    ],
)
def test_each_fault_is_found_at_its_place(document: Any, problem: str) -> None:
    assert problem in check(document, SCHEMA)


def test_a_keyword_that_is_not_checked_is_an_error() -> None:
    with pytest.raises(ValueError, match="'oneOf' is not supported"):
        check(1, {"oneOf": [{}]})


def test_canonical_text_is_one_text() -> None:
    assert (
        canonical({"b": 1.0, "a": "é"}) == canonical({"a": "é", "b": 1.0}) == '{\n  "a": "é",\n  "b": 1.0\n}\n'.encode()
    )
    with pytest.raises(ValueError, match="JSON"):
        canonical(float("nan"))


@pytest.mark.parametrize("room", ["package/manifest", "report/results"])
def test_published_schemas_use_supported_keywords_only(room: str) -> None:
    package, name = room.split("/")
    schema = load_schema(f"anfbuild.{package}", f"{name}.schema.json")

    def walk(rule: dict[str, Any]) -> None:
        check(None, {key: value for key, value in rule.items() if key != "$ref"})
        assert rule.get("pattern", "^$").startswith("^")
        assert rule.get("pattern", "^$").endswith("$")
        parts = [*rule.get("properties", {}).values(), *rule.get("$defs", {}).values()]
        parts += [rule[key] for key in ("items", "additionalProperties") if isinstance(rule.get(key), dict)]
        for part in parts:
            walk(part)

    walk(schema)
