"""Write an Einsum as transpositions, one product and sums."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import onnx

from anfbuild.graph.edit import GraphIndex, PassResult, text_attribute
from anfbuild.graph.rewrite import Expansion, Replacements
from anfbuild.graph.shapes import infer, known_shapes

_MOST_BATCH_AXES = 2
"""A MatMul of more, which would make a tensor of rank above 4, has them joined into one."""


def run(model: onnx.ModelProto) -> PassResult:
    """Requires opset 13, static input shapes and constants to be initializers.

    Ensures that no Einsum of one or two operands is left, but for those with an ellipsis, a letter twice in an operand,
    sizes that are broadcast, or shapes that are not static: these, and longer ones, are noted. Float-equal: the same
    sums in another order. The HTP takes only some forms of Einsum; Transpose, Reshape, MatMul, Mul and ReduceSum it
    takes all.
    """
    found = [node for node in model.graph.node if node.op_type == "Einsum" and node.domain == ""]
    if not found:
        return PassResult("lower_einsum", 0)
    index = GraphIndex(model.graph)
    shapes = known_shapes(infer(model))
    replacements = Replacements(index)
    notes = []
    for node in found:
        equation = _parse(node, [shapes.get(name) for name in node.input])
        if isinstance(equation, str):
            notes.append(f"{node.name or node.output[0]} stays: {equation}")
            continue
        made = Expansion(index, node)
        _Writer(made, equation.sizes).write(equation, list(node.input), node.output[0])
        replacements.replace(node, made.nodes)
    changed = replacements.apply()
    return PassResult("lower_einsum", changed, ([f"wrote {changed} as products"] if changed else []) + notes)


@dataclasses.dataclass(frozen=True)
class _Equation:
    operands: list[str]
    """The letters of each."""
    result: str
    sizes: dict[str, int]


def _parse(node: onnx.NodeProto, shapes: list[tuple[int, ...] | None]) -> _Equation | str:
    """The node's equation, or why it is not supported."""
    left, arrow, result = text_attribute(node, "equation", "").replace(" ", "").partition("->")
    operands = left.split(",")
    letters = "".join(operands)
    if not arrow:
        result = "".join(sorted(letter for letter in set(letters) if letters.count(letter) == 1))
    if "." in left or any(len(set(operand)) != len(operand) for operand in [*operands, result]):
        return "it has an ellipsis, or a letter twice in one operand"
    if len(operands) > 2 or len(operands) != len(shapes):
        return "it has more than two operands"
    sizes: dict[str, int] = {}
    for operand, shape in zip(operands, shapes, strict=True):
        if shape is None or len(shape) != len(operand):
            return "the shapes of its operands are not static"
        for letter, size in zip(operand, shape, strict=True):
            if sizes.setdefault(letter, size) != size:
                return "it broadcasts a size"
    return _Equation(operands, result, sizes) if set(result) <= set(letters) else "its result has a letter of its own"


class _Writer:
    """Writes values whose axes are called by letters; a node that would change nothing is left out."""

    def __init__(self, made: Expansion, sizes: dict[str, int]) -> None:
        self._made = made
        self._sizes = sizes

    def write(self, equation: _Equation, names: list[str], output: str) -> None:
        result = equation.result
        summed = []
        for position, (name, letters) in enumerate(zip(names, equation.operands, strict=True)):
            others = set(result).union(*(o for i, o in enumerate(equation.operands) if i != position))
            summed.append(self._sum(name, letters, [letter for letter in letters if letter not in others]))
        if len(summed) == 1:
            made, letters = summed[0][0], result
            made = self._transpose(made, summed[0][1], result)
        else:
            made, letters = self._product(summed[0], summed[1], result)
            made = self._transpose(made, letters, result)
        self._made.node("Identity", [made], output)

    def _sum(self, name: str, letters: str, gone: list[str]) -> tuple[str, str]:
        if not gone:
            return name, letters
        axes = self._made.constant(np.array([letters.index(letter) for letter in gone]), "axes")
        left = "".join(letter for letter in letters if letter not in gone)
        return self._made.node("ReduceSum", [name, axes], keepdims=0), left

    def _transpose(self, name: str, letters: str, order: str) -> str:
        if letters == order:
            return name
        return self._made.node("Transpose", [name], perm=[letters.index(letter) for letter in order])

    def _reshape(self, name: str, before: list[int], after: list[int]) -> str:
        return name if before == after else self._made.node("Reshape", [name, self._shape(after)])

    def _shape(self, sizes: list[int]) -> str:
        return self._made.constant(np.array(sizes, np.int64), "shape")

    def _lengths(self, letters: str) -> list[int]:
        return [self._sizes[letter] for letter in letters]

    def _product(self, first: tuple[str, str], second: tuple[str, str], result: str) -> tuple[str, str]:
        both = [letter for letter in first[1] if letter in second[1]]
        batch = "".join(letter for letter in result if letter in both)
        inner = "".join(letter for letter in both if letter not in result)
        rows = "".join(letter for letter in result if letter in first[1] and letter not in both)
        columns = "".join(letter for letter in result if letter in second[1] and letter not in both)
        if not inner:
            return self._elementwise(first, second, result), result
        lengths = self._lengths(batch)
        if len(batch) > _MOST_BATCH_AXES:
            lengths = [math.prod(lengths)]
        left = self._matrix(first, batch, lengths, rows, inner)
        right = self._matrix(second, batch, lengths, inner, columns)
        product = self._made.node("MatMul", [left, right])
        sizes = [*lengths, math.prod(self._lengths(rows)), math.prod(self._lengths(columns))]
        letters = batch + rows + columns
        return self._reshape(product, sizes, self._lengths(letters)), letters

    def _matrix(self, value: tuple[str, str], batch: str, lengths: list[int], rows: str, columns: str) -> str:
        letters = batch + rows + columns
        name = self._transpose(*value, letters)
        sizes = [*lengths, math.prod(self._lengths(rows)), math.prod(self._lengths(columns))]
        return self._reshape(name, self._lengths(letters), sizes)

    def _elementwise(self, first: tuple[str, str], second: tuple[str, str], result: str) -> str:
        aligned = []
        for name, letters in (first, second):
            own = "".join(letter for letter in result if letter in letters)
            name = self._transpose(name, letters, own)
            sizes = [self._sizes[letter] if letter in letters else 1 for letter in result]
            aligned.append(self._reshape(name, self._lengths(own), sizes))
        return self._made.node("Mul", aligned)
