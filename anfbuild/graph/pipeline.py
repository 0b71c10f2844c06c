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
    fold_constants,
    fuse_hardswish,
    infer_shapes,
    lower_batchnorm,
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
    clean = onnx.ModelProto()
    clean.CopyFrom(model)
    results = [
        accept.run(clean),
        prune_outputs.run(clean, outputs),
        remove_dead.run(clean),
        fix_inputs.run(clean, input_shapes),
        fold_constants.run(clean),
        refuse_unsound.run(clean),
        upgrade_opset.run(clean),
        fold_constants.run(clean),  # the conversion makes new Constant nodes
        remove_identity.run(clean),
        fuse_hardswish.run(clean),  # before its last factor is folded into what comes behind
        fold_affine.run(clean),
        lower_batchnorm.run(clean),
    ]
    unused = remove_dead.run(clean)
    results += [unused, name_nodes.run(clean), infer_shapes.run(clean)]
    check(clean, where="the cleaned model", full=True)
    return clean, results
