"""Execution blocks: what they hold, what they move, and that the cuts are the best of all."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper

from anfbuild.simulator.blocks import SHARE, cuts, traffic_model
from anfbuild.simulator.residency import follow
from anfbuild.simulator.runs import Lives, Run
from anfbuild.simulator.schedule import tiles
from anfbuild.simulator.tiling import Flow, Stage, Value, Window, flow

MB = 2**20


@st.composite
def flows(draw: st.DrawFn, most: int = 9) -> Flow:
    """A chain of stages at one resolution, with skips, strided windows and nodes that need all of their operand."""
    rows = draw(st.integers(1, 200))
    values = {"x": Value("x", rows * 100, rows * 100, rows)}
    stages: list[Stage] = []
    names = ["x"]
    for index in range(draw(st.integers(1, most))):
        read = {names[-1], *draw(st.sets(st.sampled_from(names), max_size=1))}
        made = max(1, values[names[-1]].rows // draw(st.sampled_from([1, 1, 2])))
        width = draw(st.integers(1, 20_000))
        name = f"v{index}"
        windows = {
            value: Window(values[value].rows / made, kernel := draw(st.sampled_from([1, 3, 5])), kernel // 2)
            if draw(st.integers(0, 5))
            else Window(whole=True)
            for value in sorted(read)
        }
        values[name] = Value(name, made * width, made * width, made)
        stages.append(Stage(f"n{index}", "Conv", windows, (name,), draw(st.integers(0, 400_000))))
        names.append(name)
    outputs = {names[-1], *draw(st.sets(st.sampled_from(names[1:]), max_size=2))}
    return Flow(tuple(stages), values, ("x",), tuple(sorted(outputs)))


@settings(deadline=None)
@given(flows(), st.floats(0.01, 8))
def test_blocks_part_the_nodes_keep_to_the_vtcm_and_never_move_more_than_nodes_alone(shape: Flow, megabytes: float):
    model = traffic_model(shape, megabytes * MB)
    assert [name for block in model.blocks for name in block.nodes] == [stage.name for stage in shape.stages]
    for block in model.blocks:
        assert 0 <= block.fused_bytes <= block.unfused_bytes
        assert block.vtcm_bytes <= megabytes * MB
    assert model.fused <= model.unfused
    assert model.spilled == sum(spill.written for block in model.blocks for spill in block.spills)


@settings(deadline=None)
@given(flows(), st.floats(0.01, 8))
def test_a_part_is_written_once_and_read_back_only_after_it(shape: Flow, megabytes: float):
    room = megabytes * MB
    moved = follow(shape, tiles(shape, room), room)
    for name, written in moved.spilled.items():
        assert 0 < written <= shape.values[name].padded
    for name in set(moved.filled) - set(shape.inputs):
        assert name in moved.spilled
    for stage, weights in zip(shape.stages, moved.weights, strict=True):
        assert weights >= stage.weight_bytes


@settings(deadline=None)
@given(flows(), st.floats(0.01, 8))
def test_every_tile_is_computed_once_and_after_what_it_reads(shape: Flow, megabytes: float):
    room = megabytes * MB
    there = {(name, part) for name in shape.inputs for part in range(1000)}
    for tile in tiles(shape, room):
        assert set(tile.uses) <= there
        assert not set(tile.makes) & there
        there |= set(tile.makes)
    assert {name for name, _ in there} == set(shape.values)


@settings(deadline=None)
@given(flows(most=7), st.floats(0.005, 4))
def test_no_other_way_to_cut_is_cheaper(shape: Flow, megabytes: float):
    room, lives, count = megabytes * MB, Lives(shape), len(shape.stages)

    def cost(ends: tuple[int, ...]) -> tuple[float, int]:
        total = 0.0
        for start, stop in itertools.pairwise((0, *ends)):
            run = Run(shape, lives, stop)
            for _ in range(stop - start):
                run.grow()
            if run.length > 1 and not run.fits(room):
                return math.inf, len(ends)
            total += run.overflow(room)
        return total, len(ends)

    ways = [(*inner, count) for size in range(count) for inner in itertools.combinations(range(1, count), size)]
    found = cost(tuple(cuts(shape, room)))
    assert found == pytest.approx(min(map(cost, ways)))


def _convolutions(channels: int, size: int, count: int, skip: bool = False):
    weights = [numpy_helper.from_array(np.zeros((channels, channels, 3, 3), np.float32), f"w{i}") for i in range(count)]
    names = ["x", *(f"v{i}" for i in range(count))]
    nodes = [
        helper.make_node("Conv", [names[i], f"w{i}"], [names[i + 1]], name=f"conv{i}", pads=[1] * 4)
        for i in range(count)
    ]
    if skip:
        nodes.append(helper.make_node("Concat", [names[1], names[-1]], ["y"], name="join", axis=1))
    shape = [1, channels, size, size]
    output = helper.make_tensor_value_info("y" if skip else names[-1], TensorProto.FLOAT, None)
    values = [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)], [output]
    graph = helper.make_graph(nodes, "g", *values, weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


def test_the_example_convolution_moves_its_values_and_no_more():
    # 3x3, 256 to 256 channels, 112x112: 6.4 MB in and 6.4 MB out in half precision, 1.2 MB of weights
    model = _convolutions(256, 112, 1)
    found = traffic_model(flow(model), 16 * MB)
    assert found.unfused == 2 * 112 * 112 * 256 * 2 + 9 * 256 * 256 * 2
    assert found.unfused == pytest.approx(14.0e6, rel=0.01)
    assert found.fused == found.unfused
    assert found.saving == 0


def test_a_chain_that_fits_is_one_block_which_saves_what_lies_between():
    found = traffic_model(flow(_convolutions(32, 64, 6)), 8 * MB)
    image, weights = 32 * 64 * 64 * 2, 9 * 32 * 32 * 2
    assert len(found.blocks) == 1
    assert found.fused == 2 * image + 6 * weights
    assert found.unfused == 12 * image + 6 * weights
    assert found.saving == 1 - found.fused / found.unfused


def test_depth_first_keeps_a_chain_on_chip_whose_values_do_not_fit_whole():
    chain = flow(_convolutions(32, 512, 4))
    wide = chain.values["v1"].padded
    small = Flow(chain.stages, {**chain.values, "v3": Value("v3", 1, 1, 512)}, chain.inputs, chain.outputs)
    inputs = {**small.values, "x": Value("x", 1, 1, 512)}
    found = traffic_model(Flow(small.stages, inputs, small.inputs, small.outputs), 8 * MB)
    assert wide > 8 * MB
    assert found.spilled == 0


def test_a_long_skip_that_does_not_fit_is_spilled_and_named():
    found = traffic_model(flow(_convolutions(32, 256, 4, skip=True)), 4 * MB)
    spilled = {spill.value for block in found.blocks for spill in block.spills}
    assert spilled
    assert found.spilled > 0
    assert found.fused > 2 * 32 * 256 * 256 * 2


@pytest.mark.parametrize("megabytes", [1, 2, 4, 8])
def test_more_memory_never_moves_more(megabytes: int):
    shape = flow(_convolutions(32, 128, 6, skip=True))
    assert traffic_model(shape, 2 * megabytes * MB).fused <= traffic_model(shape, megabytes * MB).fused


def test_work_grows_with_the_nodes_not_with_their_square():
    few, many = (flow(_convolutions(8, 16, count)) for count in (100, 400))
    room = 8 * MB * SHARE
    assert len(tiles(many, room)) == 4 * len(tiles(few, room))


def test_only_bytes_that_were_judged_and_do_not_spill_are_calibrated():
    chain, skip = flow(_convolutions(32, 64, 3)), flow(_convolutions(32, 256, 4, skip=True))
    assert traffic_model(chain, 8 * MB).calibrated
    assert not traffic_model(chain, 8 * MB, ["w8a8", "w8a16"]).calibrated
    assert not traffic_model(skip, 4 * MB).calibrated
