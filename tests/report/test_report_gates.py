"""Gates: held, missed or not judged, and refused early where they mean nothing."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anfbuild.errors import RecipeError, StepError
from anfbuild.package import load_schema
from anfbuild.report import GATES, judge
from anfbuild.report.gates import check


def latency(value: Any) -> dict[str, Any]:
    return {"latency_ms": {"total": value, "source": "predicted"}, "reasons": {"/latency_ms/total": "no compiler"}}


@given(value=st.floats(-1e6, 1e6), low=st.floats(-1e6, 1e6), width=st.floats(0, 1e6))
def test_min_and_max_are_inclusive(value: float, low: float, width: float) -> None:
    high = low + width
    verdicts = judge(latency(value), {"latency_ms": {"max": high, "min": low}})
    assert [(v["direction"], v["limit"], v["passed"]) for v in verdicts] == [
        ("min", low, value >= low),
        ("max", high, value <= high),
    ]


def test_a_verdict_says_all_that_a_reader_needs() -> None:
    assert judge(latency(31.5), {"latency_ms": {"min": None, "max": 25}}) == [
        {
            "name": "latency_ms",
            "direction": "max",
            "limit": 25,
            "unit": "ms",
            "value": 31.5,
            "passed": False,
            "source": "predicted",
        }
    ]


def test_nan_misses_and_null_is_not_judged() -> None:
    limits = {"latency_ms": {"min": 0.0, "max": 25.0}}
    assert [v["passed"] for v in judge(latency(float("nan")), limits)] == [False, False]
    verdicts = judge(latency(None), limits)
    assert [(v["passed"], v["reason"]) for v in verdicts] == [(None, "no compiler")] * 2
    assert judge({}, limits)[0]["reason"] == "/latency_ms/total is not in the results"


def test_a_figure_that_is_no_number_is_an_error() -> None:
    with pytest.raises(StepError, match="'fast', which is not a number"):
        judge(latency("fast"), {"latency_ms": {"max": 1}})


@pytest.mark.parametrize(
    ("gates", "message"),
    [
        ({"latency": {"max": 1}}, "gates.latency: there is no gate 'latency'"),
        ({"latency_m": {"max": 1}}, "did you mean 'latency_ms'?"),
        ({"latency_ms": {"max": "25"}}, "max: '25' is not a number"),
        ({"latency_ms": {"max": True}}, "is not a number"),
        ({"latency_ms": {"max": float("nan")}}, "is not a number"),
        ({"latency_ms": {"most": 3}}, "'most' is not a direction"),
        ({"latency_ms": {}}, "has no limit"),
        ({"latency_ms": {"min": None, "max": None}}, "has no limit"),
        ({"latency_ms": 25}, "25 is not a limit"),
        ({"latency_ms": {"min": 3, "max": 2}}, "no value is at least 3 and at most 2"),
    ],
)
def test_gates_that_mean_nothing_are_refused(gates: Any, message: str) -> None:
    with pytest.raises(RecipeError) as caught:
        check(gates)
    assert message in str(caught.value)
    with pytest.raises(RecipeError):
        judge({}, gates)


def test_unknown_gates_name_the_known_ones() -> None:
    with pytest.raises(RecipeError) as caught:
        check({"speed": {"max": 1}})
    assert caught.value.choices == list(GATES)


def test_every_gate_limits_a_number_of_the_schema() -> None:
    for gate in GATES.values():
        rule = load_schema("anfbuild.report", "results.schema.json")
        assert "source" in rule["properties"][gate.pointer.split("/")[1]]["properties"]
        for key in gate.pointer.split("/")[1:]:
            rule = rule["properties"][key]
        assert set(rule["type"]) & {"number", "integer"}


def test_gates_are_checked_without_heavy_libraries() -> None:
    script = (
        "import sys; from anfbuild.report.gates import check; check({'latency_ms': {'max': 1}});"
        "print(sorted({'numpy', 'onnx', 'onnxruntime', 'omegaconf'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
