"""The results document: complete, honest about what is missing, and as the published schema says."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anfbuild.errors import RecipeError, StepError
from anfbuild.package import canonical, load_schema
from anfbuild.report.results import results, validate

SCHEMA = load_schema("anfbuild.report", "results.schema.json")


def keys(value: Any, pointer: str = "") -> set[str]:
    """The JSON pointer of every key below `value`, items of lists as `*`."""
    found: set[str] = set()
    for key, item in value.items() if isinstance(value, dict) else []:
        found |= {f"{pointer}/{key}"} | keys(item, f"{pointer}/{key}")
    for item in value if isinstance(value, list) else []:
        found |= keys(item, f"{pointer}/*")
    return found


def schema_keys(rule: dict[str, Any], pointer: str = "") -> set[str]:
    found: set[str] = set()
    for key, part in rule.get("properties", {}).items():
        found |= {f"{pointer}/{key}"} | schema_keys(part, f"{pointer}/{key}")
    if isinstance(rule.get("items"), dict):
        found |= schema_keys(rule["items"], f"{pointer}/*")
    return found


OF_SEVERAL = {"/components", "/accuracy/component", "/agreement/component", "/gates/*/component"}
"""Keys that only results of several components have."""
OF_DISAGREEMENT = {"/diagnosis"}
"""The key that only results of a build have whose emulator and CPU do not agree."""


def test_schema_and_document_have_the_same_keys(parts: dict[str, Any]) -> None:
    made = {key for key in keys(results(**parts)) if not key.startswith("/reasons/")}
    assert made == schema_keys(SCHEMA) - {"/gates/*/reason", "/gates/*/suspects"} - OF_SEVERAL - OF_DISAGREEMENT


def test_a_bare_host_yields_the_same_groups(bare_parts: dict[str, Any]) -> None:
    bare = {key for key in keys(results(**bare_parts)) if not key.startswith("/reasons/")}
    assert bare == schema_keys(SCHEMA) - {"/gates/*/suspects"} - OF_SEVERAL - OF_DISAGREEMENT


def test_every_object_of_the_schema_is_closed_and_complete() -> None:
    def walk(rule: dict[str, Any]) -> None:
        if "properties" in rule:
            assert rule["additionalProperties"] is False
            optional = {"reason", "suspects", "component", "components", "diagnosis"}
            assert set(rule["properties"]) - set(rule["required"]) <= optional
        for part in [*rule.get("properties", {}).values(), *([rule["items"]] if "items" in rule else [])]:
            walk(part)

    walk(SCHEMA)


def test_every_null_has_its_reason(bare_parts: dict[str, Any]) -> None:
    document = results(**bare_parts)
    assert document["placement"]["share"]["macs"] == {"htp": None, "gpu": None, "cpu": None}
    assert document["placement"]["source"] is None
    assert document["reasons"]["/placement/share/macs/htp"] == "onnxruntime-qnn has no wheel for macOS"
    assert document["reasons"]["/accuracy/samples/emulated"] == "onnxruntime-qnn has no wheel for macOS"
    assert document["reasons"]["/versions/0/found"] == "onnxruntime-qnn has no wheel for macOS"
    assert document["reasons"]["/latency_ms/total"] == "there is no placement to cost"
    assert document["accuracy"]["source"] == "measured_host"
    assert "/accuracy/float" not in document["reasons"]


def test_a_null_without_reason_is_refused(parts: dict[str, Any]) -> None:
    del parts["latency_ms"]["preprocess"]
    with pytest.raises(StepError, match="/latency_ms/preprocess: is null without a reason"):
        results(**parts)
    document = results(**parts, reasons={"/latency_ms/preprocess": "it is not modelled"})
    assert document["reasons"] == {"/latency_ms/preprocess": "it is not modelled"}


def test_a_reason_may_stand_above_its_nulls_and_the_nearest_is_taken(parts: dict[str, Any]) -> None:
    parts["placement"]["share"] = None
    parts["traffic"]["spill_mb"] = None
    parts["traffic"]["fill_mb"] = None
    document = results(**parts, reasons={"/placement": "p", "/traffic": "all", "/traffic/fill_mb": "one"})
    assert document["reasons"] == {
        "/placement/share/macs/cpu": "p",
        "/placement/share/macs/gpu": "p",
        "/placement/share/macs/htp": "p",
        "/placement/share/time/cpu": "p",
        "/placement/share/time/gpu": "p",
        "/placement/share/time/htp": "p",
        "/traffic/fill_mb": "one",
        "/traffic/spill_mb": "all",
    }


def test_figures_that_are_no_number_become_null_but_gates_see_them(parts: dict[str, Any]) -> None:
    parts["accuracy"]["drop_abs"] = float("nan")
    parts["agreement"]["sqnr_db"] = float("inf")
    document = results(**parts)
    gate = document["gates"][0]
    assert (gate["name"], gate["passed"], gate["value"]) == ("accuracy_drop", False, None)
    assert document["reasons"]["/accuracy/drop_abs"] == "the figure is not a number (NaN)"
    assert document["reasons"]["/agreement/sqnr_db"] == "the figure is infinite"
    canonical(document)


@pytest.mark.parametrize(
    ("group", "key", "value", "problem"),
    [
        ("latency_ms", "htp", "fast", "/latency_ms/htp: 'fast' is not number or null"),
        ("latency_ms", "interval90", [1.0], "/latency_ms/interval90: has 1 items"),
        ("placement", "source", "guessed", "/placement/source: 'guessed' is not one of"),
        ("placement", "nodes", 1.5, "/placement/nodes: 1.5 is not integer or null"),
        ("package", "sha256", "abc", "/package/sha256"),
    ],
)
def test_figures_of_the_wrong_kind_are_refused(
    parts: dict[str, Any], group: str, key: str, value: Any, problem: str
) -> None:
    parts[group][key] = value
    with pytest.raises(StepError) as caught:
        results(**parts)
    assert problem in str(caught.value)


@pytest.mark.parametrize(
    ("samples", "synthetic", "enough", "words"),
    [
        (1, False, False, ["1 sample is few", "300 to 1000", "may be clipped", "evaluation set only"]),
        (299, True, False, ["299 samples are few", "not the real scene"]),
        (300, False, True, ["300 samples; 300 to 1000"]),
        (500, True, True, ["synthetic"]),
    ],
)
def test_calibration_says_what_few_samples_mean(
    parts: dict[str, Any], samples: int, synthetic: bool, enough: bool, words: list[str]
) -> None:
    parts["calibration"] |= {"samples": samples, "synthetic": synthetic}
    calibration = results(**parts)["calibration"]
    assert calibration["enough"] is enough
    assert all(word in calibration["note"] for word in words)
    assert ("synthetic" in calibration["note"]) is synthetic
    assert ("clipped" in calibration["note"]) is not enough


def test_what_is_not_built_is_absent(parts: dict[str, Any]) -> None:
    document = results(**{**parts, "placement": {**parts["placement"], "extra": 1}})
    assert not {"energy_mj", "power_w", "thermal"} & set(document)
    assert "extra" not in document["placement"]
    with pytest.raises(StepError, match="/energy_mj: is not known"):
        validate({**document, "energy_mj": 1.0})


def test_the_document_depends_on_values_alone(parts: dict[str, Any]) -> None:
    turned: dict[str, Any] = {
        key: dict(reversed(part.items())) if isinstance(part, dict) else part for key, part in parts.items()
    }
    before = copy.deepcopy(parts)
    assert canonical(results(**parts)) == canonical(results(**turned))
    assert parts == before
    assert json.loads(canonical(results(**parts))) == results(**parts)


def test_unknown_gates_are_refused(parts: dict[str, Any]) -> None:
    with pytest.raises(RecipeError, match="'latency'"):
        results(**{**parts, "gates": {"latency": {"max": 1}}})


@given(st.dictionaries(st.sampled_from(["total", "htp", "cpu", "transfer"]), st.none() | st.floats(0), max_size=4))
def test_any_mix_of_known_and_missing_figures_is_a_valid_document(figures: dict[str, float | None]) -> None:
    nothing: dict[str, Any] = {"reason": "not built"}
    document = results(
        recipe="r",
        target={"soc": "s", "name": "S", "soc_model": 1, "arch": "v75", "vtcm_mb": 8},
        backend="htp",
        performance_mode="burst",
        quantization="int8",
        placement=nothing,
        accuracy=nothing,
        agreement=nothing,
        traffic=nothing,
        traffic_model=nothing,
        memory_mb=nothing,
        latency_ms={**figures, "calibrated": True, "reason": "missing"},
        package=nothing,
        calibration={"samples": 1, "estimator": "mse", "dataset": "folder", "synthetic": False},
        versions=[],
        gates={"latency_ms": {"max": 1.0}},
    )
    validate(json.loads(canonical(document)))
    total = figures.get("total")
    assert document["gates"][0]["passed"] is (None if total is None else total <= 1.0)
