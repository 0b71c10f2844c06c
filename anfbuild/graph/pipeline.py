"""The passes in their order: from any accepted model to one clean float model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import onnx

from anfbuild.graph import provenance
from anfbuild.graph.edit import PassResult
from anfbuild.graph.model import check
from anfbuild.graph.passes import (
    accept,
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
    model: onnx.ModelProto, input_shapes: Mapping[str, Sequence[int]], outputs: Sequence[str] | None = None
) -> Cleaned:
    """A cleaned copy of `model`, what each pass did to it, and which source nodes each node comes from.

    The copy computes the same floats with static shapes only (all in value_info), opset 17 to 21, constants as
    initializers, BatchNormalization folded, the graph outputs `outputs` (None: all), no dead nodes, and a name of its
    own for every node. metadata_props stay. `input_shapes` are in the model's own order of dimensions.
    Nodes with subgraphs stay as they are.

    Raises RecipeError for shapes and names that do not fit the model, StepError for what a model must not have.
    """
    clean = onnx.ModelProto()
    clean.CopyFrom(model)
    sources = provenance.number(clean)
    results = [
        accept.run(clean),
        prune_outputs.run(clean, outputs),
        remove_dead.run(clean),
        fix_inputs.run(clean, input_shapes),
        fold_constants.run(clean),
        refuse_unsound.run(clean),
        upgrade_opset.run(clean),
        fold_constants.run(clean),  # the conversion makes new Constant nodes
        fuse_gelu.run(clean),
        fold_constants.run(clean),  # so does its conversion
        fuse_layernorm.run(clean),
        unroll_recurrent.run(clean),
        lower_einsum.run(clean),
        lower_reduce_prod.run(clean),
        remove_identity.run(clean),
        fuse_hardswish.run(clean),  # before its last factor is folded into what comes behind
        fold_affine.run(clean),
        lower_batchnorm.run(clean),
        lower_depthwise.run(clean),
        fold_affine.run(clean),  # what these two wrote
        lower_channel_pad.run(clean),
        exact_resize.run(clean),
    ]
    unused = remove_dead.run(clean)
    results += [unused, name_nodes.run(clean), infer_shapes.run(clean)]
    traced = provenance.take_out(clean, sources)
    check(clean, where="the cleaned model", full=True)
    return Cleaned(clean, results, traced)
