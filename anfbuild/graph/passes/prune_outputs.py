"""Keep only the outputs that the recipe asks for."""

from __future__ import annotations

from collections.abc import Sequence

import onnx

from anfbuild.errors import RecipeError, StepError, did_you_mean
from anfbuild.graph.edit import PassResult
from anfbuild.graph.shapes import infer


def run(model: onnx.ModelProto, outputs: Sequence[str] | None) -> PassResult:
    """Requires nothing. `outputs` None keeps all; a name may be any tensor that a node makes, to cut the model there.

    Ensures that the graph's outputs are `outputs`, in that order. Nodes that nothing needs any more are left to
    remove_dead. Raises RecipeError for an unknown name or an empty list, with the model's outputs as choices.
    """
    if outputs is None:
        return PassResult("prune_outputs", 0)
    own = {value.name: value for value in model.graph.output}
    names = kept_outputs(model, outputs)
    inner = {value.name: value for value in infer(model).graph.value_info} if set(names) - set(own) else {}
    kept = [_copy(own.get(name) or _typed(inner, name)) for name in names]
    cut = [name for name in own if name not in outputs]
    added = [value.name for value in kept if value.name not in own]
    del model.graph.output[:]
    model.graph.output.extend(kept)
    notes = [f"cut output {name}" for name in cut] + [f"new output {name}" for name in added]
    return PassResult("prune_outputs", len(notes), notes)


def kept_outputs(model: onnx.ModelProto, outputs: Sequence[str] | None) -> list[str]:
    """The names of the outputs that are kept, each once. Raises RecipeError as `run` does."""
    own = [value.name for value in model.graph.output]
    if outputs is None:
        return own
    made = {name for node in model.graph.node for name in node.output if name}
    for name in outputs:
        if name not in own and name not in made:
            raise RecipeError(
                f"the model has no output {name!r}",
                where="model.outputs",
                choices=own,
                remedy=f"{did_you_mean(name, [*own, *made])}Any tensor that a node makes may be named too.",
            )
    if not outputs:
        raise RecipeError("no output is kept", where="model.outputs", choices=own, remedy="Name one at least.")
    return list(dict.fromkeys(outputs))


def _typed(inner: dict[str, onnx.ValueInfoProto], name: str) -> onnx.ValueInfoProto:
    if name not in inner:
        raise StepError(f"the type of tensor {name!r} cannot be inferred", remedy="Choose a tensor after or before it.")
    return inner[name]


def _copy(value: onnx.ValueInfoProto) -> onnx.ValueInfoProto:
    copy = onnx.ValueInfoProto()
    copy.CopyFrom(value)
    return copy
