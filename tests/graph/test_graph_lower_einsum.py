"""Einsum becomes products and sums of the same values."""

from __future__ import annotations

import pytest
from graph_models import Builder, assert_same_floats, copy, op_types
from hypothesis import given, settings
from hypothesis import strategies as st

from anfbuild.graph import clean
from anfbuild.graph.passes import lower_einsum

SIZES = dict(zip("abcdefg", (2, 3, 4, 2, 5, 1, 3), strict=True))


def einsum(equation, *operands, opset=17):
    b = Builder()
    names = ["x", "w"][: len(operands)]
    b.node("Einsum", names, "y", equation=equation)
    feeds = {name: [SIZES[letter] for letter in letters] for name, letters in zip(names, operands, strict=True)}
    return b.model(feeds, {"y": None}, opset=opset), feeds


def letters(most):
    return st.lists(st.sampled_from("abcdefg"), min_size=1, max_size=most, unique=True).map("".join)


@given(data=st.data(), first=letters(4), second=letters(4), explicit=st.booleans())
@settings(deadline=None)
def test_any_equation_of_two_operands(data, first, second, explicit):
    both = "".join(dict.fromkeys(first + second))
    result = "".join(data.draw(st.lists(st.sampled_from(both), unique=True)))
    model, feeds = einsum(f"{first},{second}" + (f"->{result}" if explicit else ""), first, second)
    before = copy(model)
    assert lower_einsum.run(model).changed == 1
    assert set(op_types(model)) <= {"Transpose", "Reshape", "MatMul", "Mul", "ReduceSum", "Identity"}
    assert_same_floats(before, model, **feeds)


@pytest.mark.parametrize("equation", ["abc->cab", "abc->b", "abc->", "cb"])
def test_any_equation_of_one_operand(equation):
    model, feeds = einsum(equation, equation.split("->")[0])
    before = copy(model)
    assert lower_einsum.run(model).changed == 1
    assert_same_floats(before, model, **feeds)


@pytest.mark.parametrize(
    ("equation", "left"),
    [
        ("abc,acd->abd", ["MatMul"]),
        ("abc,abd->acd", ["Transpose", "MatMul"]),
        ("abcd,abed->abce", ["Transpose", "MatMul"]),
        ("abc,dc->abd", ["Reshape", "Transpose", "MatMul", "Reshape"]),
    ],
)
def test_attention_and_projection_take_few_nodes(equation, left):
    model, feeds = einsum(equation, *equation.split("->")[0].split(","))
    cleaned = clean(model, {}).model
    assert op_types(cleaned) == left
    assert_same_floats(model, cleaned, **feeds)


@pytest.mark.parametrize(
    ("equation", "shapes", "says"),
    [
        ("...a,ab->...b", [[2, 3, 4], [4, 5]], "ellipsis"),
        ("aa->a", [[3, 3]], "twice"),
        ("ab,bc,cd->ad", [[2, 3], [3, 2], [2, 2]], "more than two"),
        ("ab,ab->a", [[2, 3], [2, 1]], "broadcasts"),
        ("ab,bc->ac", [[2, "n"], [3, 2]], "not static"),
    ],
)
def test_what_stays_is_noted(equation, shapes, says):
    b = Builder()
    names = ["p", "q", "r"][: len(shapes)]
    b.node("Einsum", names, "y", equation=equation)
    model = b.model(dict(zip(names, shapes, strict=True)), {"y": None})
    before = copy(model)
    assert says in lower_einsum.run(model).notes[0]
    assert model == before
