"""The passes in their order: from any accepted model to one clean float model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import onnx

from anfbuild.graph.edit import PassResult
from anfbuild.graph.model import check
from anfbuild.graph.passes import (
    accept,
    fix_inputs,
    fold_affine,
    fold_batchnorm,
    fold_constants,
    fuse_hardswish,
    infer_shapes,
    name_nodes,
    prune_outputs,
    refuse_unsound,
    remove_dead,
    remove_identity,
    upgrade_opset,
)


def clean(
    model: onnx.ModelProto, input_shapes: Mapping[str, Sequence[int]], outputs: Sequence[str] | None = None
) -> tuple[onnx.ModelProto, list[PassResult]]:
    """A cleaned copy of `model`, and what each pass did to it.

    The copy computes the same floats with static shapes only (all in value_info), opset 17 to 21, constants as
    initializers, BatchNormalization folded, the graph outputs `outputs` (None: all), no dead nodes, and a name of its
    own for every node. metadata_props stay. `input_shapes` are in the model's own order of dimensions.
    Nodes with subgraphs stay as they are.

    Raises RecipeError for shapes and names that do not fit the model, StepError for what a model must not have.
    """
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    return copy, clean_in_place(copy, input_shapes, outputs)


def clean_in_place(
    model: onnx.ModelProto, input_shapes: Mapping[str, Sequence[int]], outputs: Sequence[str] | None = None
) -> list[PassResult]:
    """The same on `model` itself, for one that need not be in memory twice. After an error it is half done."""
    results = [
        accept.run(model),
        prune_outputs.run(model, outputs),
        remove_dead.run(model),
        fix_inputs.run(model, input_shapes),
        fold_constants.run(model),
        refuse_unsound.run(model),
        upgrade_opset.run(model),
        fold_constants.run(model),  # the conversion makes new Constant nodes
        remove_identity.run(model),
        fold_affine.run(model),
        fold_batchnorm.run(model),
        fuse_hardswish.run(model),
    ]
    unused = remove_dead.run(model)
    results += [unused, name_nodes.run(model), infer_shapes.run(model)]
    check(model, where="the cleaned model", full=True)
    return results
