"""The search for the first tensor past its bound: what it finds, and in how many runs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
import onnx
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper

from anfbuild.diagnosis.bisect import first_beyond
from anfbuild.diagnosis.locate import Search
from anfbuild.diagnosis.sides import Side
from anfbuild.diagnosis.stages import stages
from anfbuild.diagnosis.tensors import plain_views

Parents = dict[str, tuple[str, ...]]


@st.composite
def graphs(draw: st.DrawFn, least: int = 1, most: int = 60) -> Parents:
    """Tensors, each after its parents, all of which lead to the last."""
    count = draw(st.integers(least, most))
    parents: Parents = {}
    for index in range(count):
        some = draw(st.sets(st.integers(0, index - 1), max_size=3)) if index else set()
        parents[f"t{index}"] = tuple(f"t{place}" for place in sorted(some))
    read = {name for names in parents.values() for name in names}
    ends = tuple(name for name in parents if name not in read)
    return {**parents, "out": ends}


def affected(parents: Mapping[str, Sequence[str]], fault: str) -> set[str]:
    found = {fault}
    for name, own in parents.items():
        if found.intersection(own):
            found.add(name)
    return found


@given(graphs(), st.data())
def test_the_first_tensor_is_found_in_log2_n_runs(parents: Parents, data: st.DataObject) -> None:
    fault = data.draw(st.sampled_from(list(parents)))
    beyond = affected(parents, fault)
    runs = []

    def look(names: Sequence[str]) -> dict[str, bool]:
        runs.append(names)
        return {name: name in beyond for name in names}

    found = first_beyond(parents, "out", look)
    assert (found.tensor, found.suspects) == (fault, (fault,))
    assert found.runs == len(runs) <= math.ceil(math.log2(len(parents)))


@given(graphs(), st.data())
def test_where_departures_shrink_again_one_is_found_whose_inputs_are_within(
    parents: Parents, data: st.DataObject
) -> None:
    beyond = {"out", *data.draw(st.sets(st.sampled_from(list(parents))))}
    seen: set[str] = set()

    def look(names: Sequence[str]) -> dict[str, bool]:
        seen.update(names)
        return {name: name in beyond for name in names}

    found = first_beyond(parents, "out", look)
    assert found.tensor in beyond
    assert not beyond.intersection(parents[found.tensor])
    assert seen.issuperset(parents[found.tensor])


@given(graphs(least=4), st.data())
def test_what_cannot_be_looked_at_is_worked_round_or_told(parents: Parents, data: st.DataObject) -> None:
    fault = data.draw(st.sampled_from(list(parents)))
    dark = data.draw(st.sets(st.sampled_from(list(parents)), max_size=2))
    beyond = affected(parents, fault)

    def look(names: Sequence[str]) -> dict[str, bool] | None:
        return None if dark.intersection(names) else {name: name in beyond for name in names}

    found = first_beyond(parents, "out", look)
    assert fault in found.suspects
    assert found.tensor == found.suspects[-1]
    if not dark:
        assert found.suspects == (fault,)


def network(parents: Parents, hurt: str | None = None) -> onnx.ModelProto:
    """Each tensor is the mean of its parents, or of the input, times a number; of `hurt` it is another number."""
    nodes, constants = [], []
    for index, (name, own) in enumerate(parents.items()):
        value = 1.0 + 0.01 * index + (0.5 if name == hurt else 0.0)
        constants.append(numpy_helper.from_array(np.float32(value), f"{name}_factor"))
        nodes.append(helper.make_node("Mean", list(own) or ["x"], [f"{name}_mean"], f"{name}_mean"))
        nodes.append(helper.make_node("Mul", [f"{name}_mean", f"{name}_factor"], [name], f"{name}_mul"))
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2, 3]) for name in ("x", "out")]
    graph = helper.make_graph(nodes, "g", ends[:1], ends[1:], constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


@settings(max_examples=25)
@given(graphs(most=20), st.data())
def test_one_wrong_node_of_a_real_network_is_found_and_is_wrong_alone(parents: Parents, data: st.DataObject) -> None:
    hurt = data.draw(st.sampled_from(list(parents)))
    right, wrong = network(parents), network(parents, hurt)
    feeds = {"x": np.arange(1, 7, dtype=np.float32).reshape(2, 3)}
    sides = [Side(model, plain_views(model), feeds) for model in (right, wrong)]
    names = {name for node in right.graph.node for name in node.output}
    found = Search(stages(16.0)[0], *sides, wrong, names, {}).run("out")
    assert (found.node.name, found.confirmed) == (f"{hurt}_mul", True)
    assert found.runs <= math.ceil(math.log2(len(names)))
