import dataclasses
import json
import math
from pathlib import Path

import numpy as np
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper

from anfbuild.errors import RecipeError, StepError
from anfbuild.qnn.features import Features
from anfbuild.simulator import MODES, mode_of, predict, read_rates
from anfbuild.simulator.compiled import latency_ms
from anfbuild.simulator.ops import Kind
from anfbuild.simulator.prior import PRIOR, RESIDUAL90
from anfbuild.simulator.roofline import SLOWDOWN, nearest_precision, node_cost
from anfbuild.simulator.work import Work

TARGET = {
    "soc": "sm8650",
    "vtcm_mb": 8,
    "rates": {"conv_tmac_s": 27.5, "weight_gb_s": 55.5, "fixed_ms": 0.0525, "fitted": ["w8a8", "float"]},
}
SHIPPED = sorted((Path(__file__).parents[2] / "conf" / "target").glob("*.yaml"))


def _model(channels=64, size=16, extra=()):
    weights = numpy_helper.from_array(np.zeros((channels, channels, 3, 3), np.float32), "w")
    nodes = [helper.make_node("Conv", ["x", "w"], ["c"], name="conv", pads=[1] * 4), *extra]
    shape = [1, channels, size, size]
    last = nodes[-1].output[0]
    values = [[helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)] for name in ("x", last)]
    graph = helper.make_graph(nodes, "g", *values, [weights])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def _target(**changes):
    return {**TARGET, "rates": {**TARGET["rates"], **changes}}


def test_total_is_fixed_time_plus_the_nodes():
    prediction = predict(_model(), TARGET, "burst")
    (cost,) = prediction.nodes
    assert prediction.total_ms == pytest.approx(0.0525 + cost.ms)
    assert prediction.interval90[0] < prediction.total_ms < prediction.interval90[1]
    assert prediction.calibrated
    assert prediction.notes == ()


def test_large_convolution_is_bound_by_compute():
    # 3x3, 256 to 256 channels, 112x112 in float: 7.4 GMAC at 27.5 / 3.98 TMAC/s is 1.07 ms
    prediction = predict(_model(256, 112), TARGET, "burst")
    assert prediction.nodes[0].bound == "compute"
    assert prediction.nodes[0].ms == pytest.approx(1.072, rel=0.01)


def test_json_gives_every_null_a_reason():
    document = json.loads(json.dumps(predict(_model(), TARGET, "burst").to_json()))
    latency = document["latency_ms"]
    assert latency["source"] == "predicted"
    assert latency["total"] == latency["htp"] > 0
    nulls = {f"/latency_ms/{key}" for key, value in latency.items() if value is None}
    nulls |= {f"/memory_mb/{key}" for key, value in document["memory_mb"].items() if value is None}
    nulls |= {f"/{key}" for key, value in document.items() if value is None}
    assert nulls == set(document["reasons"])
    assert set(document["nodes"][0]) == {"name", "op_type", "macs", "bytes", "ms", "bound"}


def test_nodes_are_cut_to_the_dearest():
    extra = [
        helper.make_node("Softmax", ["c"], ["s"], name="soft"),
        helper.make_node("Add", ["s", "c"], ["a"], name="add"),
    ]
    prediction = predict(_model(extra=extra), TARGET, "burst")
    times = [cost.ms for cost in prediction.nodes]
    assert times == sorted(times, reverse=True)
    assert len(times) == 3
    assert len(prediction.to_json(top=2)["nodes"]) == 2


def test_same_bytes_every_time():
    first, second = (json.dumps(predict(_model(), TARGET, "balanced").to_json()) for _ in range(2))
    assert first == second


def test_modes_are_slower_in_the_order_of_their_power():
    names = ["burst", "sustained_high_performance", "balanced", "power_saver"]
    assert list(MODES) == names
    totals = [predict(_model(), TARGET, name).total_ms for name in names]
    assert totals == sorted(totals)
    assert len(set(totals)) == 4
    assert 1.05 <= totals[1] / totals[0] <= 1.08
    for mode in MODES.values():
        assert mode.low <= mode.likely <= mode.high


def test_carried_over_mode_is_not_calibrated():
    assert predict(_model(), TARGET, "sustained_high_performance").calibrated
    assert not predict(_model(), TARGET, "power_saver").calibrated


def test_unknown_mode_is_refused_with_the_choices():
    with pytest.raises(RecipeError, match="did you mean 'burst'") as caught:
        mode_of("brust")
    assert caught.value.choices == list(MODES)
    with pytest.raises(RecipeError, match="turbo"):
        predict(_model(), TARGET, "turbo")


def test_precision_that_was_not_measured_is_not_calibrated():
    prediction = predict(_model(), _target(fitted=["w8a8"]), "burst")
    assert not prediction.calibrated
    assert "float" in prediction.notes[0]
    bare = {**TARGET, "rates": {k: v for k, v in TARGET["rates"].items() if k != "fitted"}}
    assert not predict(_model(), bare, "burst").calibrated


def test_unknown_operator_is_listed():
    prediction = predict(_model(extra=[helper.make_node("Hardmax", ["c"], ["h"], name="odd")]), TARGET, "burst")
    assert prediction.unlisted == ("Hardmax",)
    assert not prediction.calibrated


def test_compiled_traffic_is_a_floor():
    plain = predict(_model(), TARGET, "burst")
    light = predict(_model(), TARGET, "burst", {"dram_read_mb": 0.1, "dram_write_mb": None, "spill_mb": 0})
    heavy = predict(_model(), TARGET, "burst", {"dram_read_mb": 555.0, "dram_write_mb": 555.0})
    assert dataclasses.replace(light, forecast=None) == plain
    assert heavy.total_ms == pytest.approx(0.0525 + 20.0)
    assert not heavy.calibrated
    assert "traffic" in heavy.notes[0]


def test_energy_is_told_where_the_compiler_counted_what_dram_moves():
    assert predict(_model(), TARGET, "burst").forecast is None
    little, much = (
        predict(_model(), TARGET, "burst", {"dram_read_mb": mb, "dram_write_mb": 0.1}).forecast.energy
        for mb in (1.0, 2.0)
    )
    assert little.products == pytest.approx(64 * 64 * 9 * 256 * 1.6e-9 * 1.065**2)
    assert much.dram - little.dram == pytest.approx(0.06)


@pytest.mark.parametrize("key", ["conv_tmac_s", "weight_gb_s", "fixed_ms"])
@pytest.mark.parametrize("value", [None, 0, -1.0, "fast", True, math.nan, math.inf, []])
def test_bad_rate_is_refused_by_name(key, value):
    with pytest.raises(RecipeError) as caught:
        predict(_model(), _target(**{key: value}), "burst")
    assert caught.value.where == f"target.rates.{key}"


@pytest.mark.parametrize(
    ("target", "where"),
    [
        ({}, "target.rates"),
        ({"rates": 3}, "target.rates"),
        ({"rates": TARGET["rates"]}, "target.vtcm_mb"),
        ({**TARGET, "vtcm_mb": 0}, "target.vtcm_mb"),
        (_target(fitted="w8a8"), "target.rates.fitted"),
        (_target(fitted=["int8"]), "target.rates.fitted"),
        (_target(fitted=[["w8a8"]]), "target.rates.fitted"),
        (_target(dwconv=1), "target.rates.dwconv"),
        (_target(estimate="yes"), "target.rates.estimate"),
        (_target(compiled={"macs_8": 1e-10}), "target.rates.compiled.depth"),
    ],
)
def test_bad_target_is_refused_by_name(target, where):
    with pytest.raises(RecipeError) as caught:
        read_rates(target)
    assert caught.value.where == where


COMPILED = Features(macs_float=10**9, vector_bytes=10**7, stream_bytes=10**6, depth=100, dram_read=10**6)


def test_a_compile_tells_the_latency_and_the_roofline_only_shares_it():
    target = _target(compiled=dict(PRIOR))
    found = predict(_model(), target, "burst", features=COMPILED)
    assert found.total_ms == pytest.approx(latency_ms(COMPILED, PRIOR))
    assert found.interval90 == pytest.approx([found.total_ms * bound for bound in RESIDUAL90["float"]])
    assert found.calibrated
    assert [cost.work.name for cost in found.nodes] == ["conv"]
    plain = predict(_model(), target, "burst")
    assert not plain.calibrated
    assert plain.total_ms != found.total_ms


def test_what_the_reader_of_the_run_list_did_not_know_is_named():
    strange = dataclasses.replace(COMPILED, unlisted={"q::Odd (no engine is named)": 2})
    found = predict(_model(), _target(compiled=dict(PRIOR)), "burst", features=strange)
    assert not found.calibrated
    assert "2 operations" in found.notes[0]
    assert "q::Odd" in found.notes[0]


def test_nodes_on_the_cpu_are_not_costed_and_it_says_so():
    whole, rest = (predict(_model(), TARGET, "burst", off_htp=off) for off in (0, 2))
    assert rest.total_ms == whole.total_ms
    assert (whole.calibrated, rest.calibrated) == (True, False)
    assert "2 node(s) do not run on the HTP and are not costed" in rest.notes


def test_figures_of_another_chip_widen_the_interval_and_say_so():
    own, other = (predict(_model(), _target(compiled=dict(PRIOR), estimate=said), "burst") for said in (False, True))
    assert own.total_ms == other.total_ms
    assert other.interval90[0] < own.interval90[0] < own.interval90[1] < other.interval90[1]
    assert "another chip's" in " ".join(other.notes)
    never = predict(_model(), _target(compiled=dict(PRIOR), fitted=[]), "burst", features=COMPILED)
    assert never.interval90[1] / never.total_ms > RESIDUAL90["float"][1]


def test_vtcm_is_counted_in_binary_megabytes():
    assert read_rates(TARGET).vtcm_bytes == 8 * 2**20


def test_unreal_rate_does_not_give_infinity():
    with pytest.raises(StepError, match="finite"):
        predict(_model(), _target(conv_tmac_s=5e-324), "burst")


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_shipped_target_predicts(path):
    target = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert target["soc"] == path.stem
    assert set(target) == {"soc", "name", "soc_model", "arch", "vtcm_mb", "rates"}
    prediction = predict(_model(), target, "burst")
    assert 0 < prediction.total_ms < 10
    assert not prediction.calibrated  # what was fitted are the costs of compiled work, and nothing was compiled
    compiled = predict(_model(), target, "burst", features=Features(macs=100, macs_float=100))
    assert compiled.calibrated == ("float" in target["rates"]["fitted"])


def test_every_phone_generation_is_faster_than_the_one_before():
    totals = []
    for soc in ("sm8450", "sm8550", "sm8650", "sm8750", "sm8850"):
        (path,) = (path for path in SHIPPED if path.stem == soc)
        totals.append(predict(_model(256, 56), yaml.safe_load(path.read_text(encoding="utf-8")), "burst").total_ms)
    assert totals == sorted(totals, reverse=True)


_COUNT = st.integers(0, 10**12)
_WORKS = st.builds(
    Work,
    name=st.just("n"),
    op_type=st.just("Op"),
    kind=st.sampled_from([kind for kind in Kind if kind is not Kind.VIEW]),
    precision=st.sampled_from([None, "w8a8", "w8a16", "float", "w4a16", "w16a16"]),
    macs=_COUNT,
    padded_macs=_COUNT,
    weight_bytes=_COUNT,
    activation_bytes=_COUNT,
    known=st.booleans(),
)


@given(_WORKS, st.sampled_from(["macs", "padded_macs", "weight_bytes", "activation_bytes"]), _COUNT)
def test_more_work_is_never_faster(work, field, more):
    rates = read_rates(TARGET)
    less = node_cost(work, rates).ms
    grown = node_cost(dataclasses.replace(work, **{field: getattr(work, field) + more}), rates).ms
    assert 0 < less <= grown < math.inf


@given(st.integers(1, 96), st.integers(1, 96), st.integers(1, 24), st.integers(0, 8))
def test_larger_convolution_is_never_faster(channels, more_channels, size, more_size):
    small = predict(_model(channels, size), TARGET, "burst").total_ms
    large = predict(_model(channels + more_channels, size + more_size), TARGET, "burst").total_ms
    assert 0 < small <= large < math.inf


@given(_WORKS, st.sampled_from(["conv_tmac_s", "weight_gb_s"]), st.floats(1, 100))
def test_faster_chip_is_never_slower(work, key, factor):
    fast = _target(**{key: TARGET["rates"][key] * factor})
    assert node_cost(work, read_rates(fast)).ms <= node_cost(work, read_rates(TARGET)).ms


@pytest.mark.parametrize(
    ("precision", "nearest"),
    [("w8a8", "w8a8"), ("w4a8", "w8a8"), ("w4a16", "w8a16"), ("w16a16", "float"), ("w8a32", "float"), ("fp", "float")],
)
def test_unmeasured_precision_runs_at_the_nearest_rate(precision, nearest):
    assert nearest_precision(precision) == nearest
    assert nearest in SLOWDOWN
