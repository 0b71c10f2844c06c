"""One YAML file of a recipe, read with the places of its keys, and refused where it is more than data."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml
from omegaconf._utils import get_yaml_loader

from anfbuild.errors import RecipeError

_MOST_NODES = 100_000
_MOST_LEVELS = 50
"""What a recipe may hold once its aliases are written out: far more than any does, and little enough to work with."""

_NAMES = {f"tag:yaml.org,2002:{kind}" for kind in ("str", "int", "float", "bool", "merge", "value")}
"""The kinds of scalars that can be a key."""

_KINDS = _NAMES | {f"tag:yaml.org,2002:{kind}" for kind in ("null", "map", "seq")}

_MISSPELT_INDENT = "Look at the indentation, the colons and the brackets at that line."


@dataclasses.dataclass(frozen=True)
class Document:
    """The mapping in a file, and its syntax tree. `shown` is how messages call the file."""

    shown: str
    root: yaml.MappingNode
    data: dict[str, Any]

    def line(self, key: str) -> int | None:
        """The line of `key` (`model.inputs.x.shape[2]`), or None if the file does not set it.

        Keys may themselves hold dots, as tensor names do: the longest that fits is taken.
        """
        return _line(self.root, key)

    def place(self, key: str) -> str:
        """`file:line` of `key`, or of the nearest key above it; the file alone if there is none."""
        while key:
            if (line := self.line(key)) is not None:
                return f"{self.shown}:{line}"
            key = key[: max(key.rfind("."), key.rfind("["), 0)]
        return self.shown


def read(path: Path, shown: str) -> Document:
    """Read the file at `path`.

    Raises RecipeError: unreadable, not UTF-8, not YAML, a duplicate key, a key without a name, not a mapping, a
    kind of value beyond numbers, text, lists and mappings, too deep, too large, an alias within itself, `_target_`,
    a resolver.
    """
    if not path.is_file():  # a FIFO would wait for ever
        raise RecipeError("not a file", where=shown)
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise RecipeError(f"cannot read the file: {error}", where=shown) from error
    try:
        loader = get_yaml_loader()(text)
        node = loader.get_single_node()
        if node is not None:
            _size(node, {}, 0, shown)
        data = {} if node is None else loader.construct_document(node)
    except yaml.MarkedYAMLError as error:
        raise _syntax_error(error, shown) from error
    except yaml.YAMLError as error:
        raise RecipeError(f"not YAML: {error}", where=shown) from error
    except (ValueError, KeyError) as error:  # Python's own, of `!!int x`, `!!bool x` or a number of thousands of digits
        raise RecipeError(f"a value cannot be read: {error}", where=shown) from error
    except RecursionError as error:
        raise _too_deep(shown) from error
    if node is None:
        node = yaml.MappingNode("tag:yaml.org,2002:map", [])
    if not isinstance(node, yaml.MappingNode):
        raise RecipeError("a list of `key: value` is wanted here", where=f"{shown}:{node.start_mark.line + 1}")
    for scalar, is_key in _scalars(node, set()):
        where = f"{shown}:{scalar.start_mark.line + 1}"
        refuse_code(scalar.value, where, is_key=is_key)
        if is_key and scalar.tag not in _NAMES:
            raise RecipeError(f"{scalar.value!r} is no name for a key", where=where, remedy="Put it in quotes.")
    return Document(shown, node, data)


def refuse_code(text: str, where: str, *, is_key: bool = False) -> None:
    """Recipes are data. Raises RecipeError on a call of a resolver (`${oc.env:HOME}`) and on the key `_target_`."""
    if is_key and text == "_target_":
        raise RecipeError(
            "`_target_` is refused: a recipe is data and runs no code", where=where, remedy="Remove the key."
        )
    if _calls_resolver(text):
        raise RecipeError(
            f"{text!r} calls a resolver: a recipe may refer to its own keys only, so that it builds the same anywhere",
            where=where,
            remedy="Write the value itself, or a reference such as ${dataset.size}.",
        )


def _calls_resolver(text: str) -> bool:
    depth = 0
    for position, character in enumerate(text):
        if text.startswith("${", position):
            depth += 1
        elif character == "}":
            depth = max(0, depth - 1)
        elif character == ":" and depth:
            return True
    return False


def _syntax_error(error: yaml.MarkedYAMLError, shown: str) -> RecipeError:
    mark = error.problem_mark or error.context_mark
    where = f"{shown}:{mark.line + 1}" if mark else shown
    problem = error.problem or "not YAML"
    if problem.startswith("found duplicate key"):
        key = problem.removeprefix("found duplicate key").strip()
        return RecipeError(f"the key {key!r} is given twice", where=where, remedy="Keep one of the two.")
    return RecipeError(f"not YAML: {problem}", where=where, remedy=_MISSPELT_INDENT)


def _size(node: yaml.Node, sizes: dict[int, int], level: int, shown: str) -> int:
    """The nodes from `node` on with every alias written out; `sizes` remembers them, 0 for a node not yet done."""
    if level > _MOST_LEVELS:
        raise _too_deep(f"{shown}:{node.start_mark.line + 1}")
    if id(node) in sizes:
        if sizes[id(node)] == 0:
            raise RecipeError("an alias leads back to what it is part of", where=shown)
        return sizes[id(node)]
    sizes[id(node)] = 0
    if node.tag not in _KINDS:
        raise RecipeError(
            f"there is no kind of value {node.tag.rpartition(':')[2]!r}",
            where=f"{shown}:{node.start_mark.line + 1}",
            remedy="Remove the tag that begins with '!'.",
        )
    size = 1
    if isinstance(node, yaml.MappingNode):
        size += sum(_size(part, sizes, level + 1, shown) for pair in node.value for part in pair)
    elif isinstance(node, yaml.SequenceNode):
        size += sum(_size(item, sizes, level + 1, shown) for item in node.value)
    if size > _MOST_NODES:
        raise RecipeError(
            f"more than {_MOST_NODES:,} values, aliases written out",
            where=f"{shown}:{node.start_mark.line + 1}",
            remedy="Remove the aliases of aliases.",
        )
    sizes[id(node)] = size
    return size


def _too_deep(where: str) -> RecipeError:
    return RecipeError(f"nested more than {_MOST_LEVELS} levels deep", where=where, remedy="Remove the brackets.")


def _scalars(node: yaml.Node, seen: set[int]) -> Iterator[tuple[yaml.ScalarNode, bool]]:
    """Every scalar below `node` with whether it is a key; aliased nodes once."""
    if id(node) in seen:
        return
    seen.add(id(node))
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            if isinstance(key, yaml.ScalarNode):
                yield key, True
            yield from _scalars(value, seen)
    elif isinstance(node, yaml.SequenceNode):
        for item in node.value:
            yield from _scalars(item, seen)
    elif isinstance(node, yaml.ScalarNode):
        yield node, False


def _line(node: yaml.Node, key: str) -> int | None:
    if isinstance(node, yaml.SequenceNode) and key.startswith("["):
        index, _, rest = key[1:].partition("]")
        if not index.isdecimal() or int(index) >= len(node.value):
            return None
        item = node.value[int(index)]
        return _line(item, rest.lstrip(".")) if rest else item.start_mark.line + 1
    if not isinstance(node, yaml.MappingNode):
        return None
    pairs = [(str(k.value), k, v) for k, v in node.value if isinstance(k, yaml.ScalarNode)]
    for name, key_node, value in sorted(pairs, key=lambda pair: -len(pair[0])):
        if key == name:
            return int(key_node.start_mark.line) + 1
        if key.startswith((f"{name}.", f"{name}[")):
            return _line(value, key[len(name) :].lstrip("."))
    return None
