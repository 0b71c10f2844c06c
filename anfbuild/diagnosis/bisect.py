"""The first tensor at which two models part, found in log2 n runs.

What is searched: among the ancestors of an output that is past the bound, a tensor past the bound all of whose parents
are within it. Where a departure reaches all that is computed from it, that is the first one in any topological order.
A departure that shrinks below the bound and grows again is found where it grows: the sentence "its inputs are within
the bound, it is not" is true of what is found in any case, since every one of these tensors has been looked at.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence

Beyond = Callable[[Sequence[str]], Mapping[str, bool] | None]
"""One run: tensors to expose -> of each whether it is past its bound; None where they cannot be exposed together."""

_ATTEMPTS = 5
"""Cuts that are tried where one cannot be exposed: the compiler may refuse a model that ends there."""


@dataclasses.dataclass(frozen=True)
class Found:
    """`suspects` is `tensor` alone, but where nothing between them could be exposed: the departure begins in one of
    them then, in topological order, and `tensor` is the last."""

    tensor: str
    suspects: tuple[str, ...]
    runs: int


def first_beyond(parents: Mapping[str, Sequence[str]], output: str, beyond: Beyond) -> Found:
    """Search the ancestors of `output`, which is past its bound.

    `parents` has every tensor after its parents, which are its nearest ancestors that can be looked at. A run looks at
    all tensors of a cut at once, those before the middle that something behind it reads: if one of them is past the
    bound, what does not lead to it goes, else all that is before the cut. Either way half of the suspects go, so that
    there are at most ceil(log2 n) runs for n ancestors, and one more for each cut that cannot be exposed.
    """
    order = {name: position for position, name in enumerate(parents)}
    suspects = sorted(_leading_to(output, parents, set(parents)), key=order.__getitem__)
    runs = 0
    while len(suspects) > 1:
        for middle in _middles(len(suspects)):
            before, behind = suspects[:middle], suspects[middle:]
            read = {parent for name in behind for parent in parents[name]}
            cut = [name for name in before if name in read]
            runs += 1
            told = beyond(cut)
            if told is not None:
                break
        else:
            break
        first = next((name for name in cut if told[name]), None)
        if first is None:
            suspects = behind
        else:
            leading = _leading_to(first, parents, set(before))
            suspects = [name for name in before if name in leading]
    return Found(suspects[-1], tuple(suspects), runs)


def _middles(count: int) -> Sequence[int]:
    """Where to cut `count` suspects: in the middle, then ever further from it."""
    middle = count // 2
    places = [middle + step * sign for step in range(count) for sign in ((1, -1) if step else (1,))]
    return [place for place in places if 0 < place < count][:_ATTEMPTS]


def _leading_to(tensor: str, parents: Mapping[str, Sequence[str]], within: set[str]) -> set[str]:
    """`tensor` and its ancestors, as far as they are reached through `within`."""
    found, pending = {tensor}, [tensor]
    while pending:
        for parent in parents[pending.pop()]:
            if parent in within and parent not in found:
                found.add(parent)
                pending.append(parent)
    return found
