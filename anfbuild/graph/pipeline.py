"""The passes in their order: from any accepted model to one clean float model."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import onnx

from anfbuild.graph import provenance
from anfbuild.graph.edit import PassResult
from anfbuild.graph.model import check
from anfbuild.graph.passes import (
    accept,
    drop_remarks,
    exact_gather,
    exact_resize,
    fix_inputs,
    fold_affine,
    fold_constants,
    fuse_gelu,
    fuse_hardswish,
    fuse_layernorm,
    infer_shapes,
    lower_batchnorm,
    lower_channel_pad,
    lower_depthwise,
    lower_einsum,
    lower_reduce_prod,
    name_nodes,
    prune_outputs,
    refuse_unsound,
    remove_dead,
    remove_identity,
    unroll_recurrent,
    upgrade_opset,
)


class Cleaned(NamedTuple):
    """A cleaned model, and where it comes from."""

    model: onnx.ModelProto
    passes: list[PassResult]
    """What each pass did, in order."""
    provenance: dict[str, list[str]]
    """Name of each node -> the nodes of the source model whose work it does: their names, or "#3 Relu" (the node at
    position 3) where one has no name of its own. A source node that became a constant counts for the nodes that read
    the constant; one that did nothing, for the node that made its input. Nodes of subgraphs count as the node that
    holds the subgraph."""


def clean(
    model: onnx.ModelProto,
    input_shapes: Mapping[str, Sequence[int]],
    outputs: Sequence[str] | None = None,
    *,
    strict: bool = False,
) -> Cleaned:
    """A cleaned copy of `model`, what each pass did to it, and which source nodes each node comes from.

    The copy computes the same floats with static shapes only (all in value_info), opset 17 to 21, constants as
    initializers, BatchNormalization folded, the graph outputs `outputs` (None: all), no dead nodes, and a name of its
    own for every node, and no remarks. metadata_props stay. `input_shapes` are in the model's own order of dimensions.
    Nodes with subgraphs stay as they are.

    Raises RecipeError for shapes and names that do not fit the model, StepError for what a model must not have; with
    `strict`, a BatchNormalization that nothing can take up is such a thing.
    """
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    return clean_in_place(copy, input_shapes, outputs, strict=strict)


@contextlib.contextmanager
def _uncollected() -> Iterator[None]:
    """Without the search for cycles: passes make wrappers of protobuf's by the million, and no cycle."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


@_uncollected()
def clean_in_place(
    model: onnx.ModelProto,
    input_shapes: Mapping[str, Sequence[int]],
    outputs: Sequence[str] | None = None,
    *,
    strict: bool = False,
) -> Cleaned:
    """The same on `model` itself, for one that need not be in memory twice. After an error it is half done."""
    drop_remarks.run(model)
    sources = provenance.number(model)
    results = [
        accept.run(model),
        prune_outputs.run(model, outputs),
        remove_dead.run(model),
        fix_inputs.run(model, input_shapes),
        fold_constants.run(model),
        refuse_unsound.run(model),
        upgrade_opset.run(model),
        fold_constants.run(model),  # the conversion makes new Constant nodes
        fuse_gelu.run(model),
        fold_constants.run(model),  # so does its conversion
        fuse_layernorm.run(model),
        unroll_recurrent.run(model),
        lower_einsum.run(model),
        lower_reduce_prod.run(model),
        remove_identity.run(model),
        fuse_hardswish.run(model),  # before its last factor is folded into what comes behind
        fold_affine.run(model),
        lower_batchnorm.run(model, strict=strict),
        lower_depthwise.run(model),
        fold_affine.run(model),  # what these two wrote
        lower_channel_pad.run(model),
        exact_resize.run(model),
        exact_gather.run(model),  # what that wrote, too
    ]
    unused = remove_dead.run(model)
    results += [unused, name_nodes.run(model), infer_shapes.run(model)]
    traced = provenance.take_out(model, sources)
    check(model, where="the cleaned model", full=True)
    return Cleaned(model, results, traced)
