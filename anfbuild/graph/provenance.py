"""Which nodes of the source model each node of the cleaned one comes from.

While passes run, the numbers of source nodes stand in the metadata of what carries their work: nodes, and the
initializers and inputs that took the place of nodes. `take_out` reads them at the end and leaves none behind.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

import onnx

from anfbuild.graph.edit import used_names

_KEY = "anfbuild.source"

Carrier = onnx.NodeProto | onnx.TensorProto | onnx.ValueInfoProto


def number(model: onnx.ModelProto) -> list[str]:
    """Mark every node of the main graph with its number. Returns what to call each, as `labels` does."""
    for position, node in enumerate(model.graph.node):
        _set(node, {str(position): None})
    return labels(model.graph)


def labels(graph: onnx.GraphProto) -> list[str]:
    """What to call each node of a source model: its name, or "#3 Relu" (the node at position 3) where it has none of
    its own."""
    taken = Counter(node.name for node in graph.node)
    return [
        node.name if node.name and taken[node.name] == 1 else f"#{position} {node.op_type}"
        for position, node in enumerate(graph.node)
    ]


def inherit(target: Carrier, origins: Iterable[Carrier]) -> None:
    """Add the sources of `origins` to those of `target`."""
    inherit_all([target], origins)


def inherit_all(targets: Iterable[Carrier], origins: Iterable[Carrier]) -> None:
    """Add the sources of `origins` to those of each of `targets`."""
    sources: dict[str, None] = {}
    for origin in origins:
        sources.update(_sources(origin))
    for target in targets:
        found = _sources(target)
        before = len(found)
        found.update(sources)
        if len(found) != before:
            _set(target, found)


def restore(before: onnx.GraphProto, after: onnx.GraphProto) -> None:
    """Mark the nodes, initializers and inputs of `after`, which a tool made of `before` and left unmarked.

    A node stands for the one that made its output before; a new one for that one before its reader which is gone, or
    else for its reader's, or for that of the nodes that it reads. A node that is gone and that none stands for counts
    for its readers.
    """
    makers = {name: node for node in before.node for name in node.output if name}
    made = {name for node in after.node for name in node.output if name}
    gone = {name: node for name, node in makers.items() if made.isdisjoint(node.output)}
    stands_for = [[makers[name] for name in node.output if name in makers][:1] for node in after.node]
    readers: dict[str, list[onnx.NodeProto]] = {}
    for node, old in reversed(list(zip(after.node, stands_for, strict=True))):
        for reader in () if old else (r for name in node.output for r in readers.get(name, ())):
            old += [gone[name] for name in used_names(reader) if name in gone] or [reader]
        for name in used_names(node):
            readers.setdefault(name, []).extend(old)
    known: dict[str, list[onnx.NodeProto]] = {}
    for node, old in zip(after.node, stands_for, strict=True):
        old += [] if old else [other for name in used_names(node) for other in known.get(name, ())]
        inherit(node, old)
        known.update(dict.fromkeys((name for name in node.output if name), old))
    _mark_readers(before, after, gone)
    kept: dict[str, Carrier] = {entry.name: entry for entry in [*before.input, *before.initializer]}
    for entry in [*after.input, *after.initializer]:
        if entry.name in kept:
            inherit(entry, [kept[entry.name]])


def _mark_readers(before: onnx.GraphProto, after: onnx.GraphProto, gone: Mapping[str, onnx.NodeProto]) -> None:
    """Let the nodes that are gone, and that no node of `after` counts, count for the nodes that read them."""
    counted = {source for node in after.node for source in _sources(node)}
    heirs = {name: node for node in after.node for name in node.output}
    carried: dict[str, list[onnx.NodeProto]] = {}
    for node in before.node:
        inherited = [lost for name in used_names(node) for lost in carried.get(name, ())]
        if node.output and node.output[0] in gone and not counted.issuperset(_sources(node)):
            inherited.append(node)
        heir = next((heirs[name] for name in node.output if name in heirs), None)
        if heir is not None:
            inherit(heir, inherited)
        else:
            carried.update(dict.fromkeys(node.output, inherited))


def take_out(model: onnx.ModelProto, names: list[str]) -> dict[str, list[str]]:
    """Node name -> the source nodes whose work it does, in their order, as `names` calls them. Removes the marks.

    What became a constant, or went from behind an input, counts for the nodes that read the constant or input.
    """
    graph = model.graph
    carried: Mapping[str, dict[str, None]] = {e.name: _sources(e) for e in [*graph.input, *graph.initializer]}
    found = {}
    for node in graph.node:
        sources = _sources(node)
        for name in used_names(node):
            sources.update(carried.get(name, {}))
        found[node.name] = [names[position] for position in sorted(map(int, sources))]
    for entry in [*graph.node, *graph.input, *graph.initializer]:
        _set(entry, {})
    return found


def _sources(carrier: Carrier) -> dict[str, None]:
    return next((dict.fromkeys(entry.value.split()) for entry in carrier.metadata_props if entry.key == _KEY), {})


def _set(carrier: Carrier, sources: Mapping[str, None]) -> None:
    for position, entry in enumerate(carrier.metadata_props):
        if entry.key == _KEY:
            del carrier.metadata_props[position]
            break
    if sources:
        carrier.metadata_props.add(key=_KEY, value=" ".join(sources))
