"""Several components in one results.json: what adds up, what is the worst, what gates then judge, and the page."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anfbuild.package import check, load_schema
from anfbuild.report.components import Component, join
from anfbuild.report.html import html
from anfbuild.report.results import results
from anfbuild.report.summary import summary
from anfbuild.report.words import one_or_all, verdict

PACKAGE = {"bytes": 3_000_000, "sha256": "b" * 64}
REST = {"ms": "0.5", "became": "a", "compiler": ""}
ROWS = [{"node": "a", "op_type": "Conv", "unit": "HTP", "macs": "300", "reason": "", **REST}]
OTHER = [
    {"node": "b", "op_type": "Conv", "unit": "CPU", "macs": "100", "reason": "no <kernel>", **REST},
    {"node": "c", "op_type": "Add", "unit": "folded", "macs": "0", "reason": "", **REST},
]


@pytest.fixture
def other(parts: dict[str, Any]) -> dict[str, Any]:
    """A worse component than that of `parts`, with gates of its own."""
    own = copy.deepcopy(parts)
    own["quantization"] = "a16w8"
    own["accuracy"] |= {"metric": "PCK", "quantized": 0.8, "drop_abs": 0.077}
    own["placement"] |= {"partitions": 3, "unlisted": ["b"]}
    own["placement"]["share"]["time"] = {"htp": 0.5, "gpu": 0.0, "cpu": 0.5}
    own["calibration"] |= {"samples": 8, "synthetic": False, "dataset": "folder"}
    own["gates"] = {"latency_ms": {"max": 5}}
    return own


def joined(one: dict[str, Any], other: dict[str, Any], gates: Any = None) -> dict[str, Any]:
    return join("both", components(one, other), package=PACKAGE, gates=gates or {})


def components(one: dict[str, Any], other: dict[str, Any]) -> dict[str, Component]:
    one = {**one, "gates": {}}
    return {
        "left": Component(results(**one), ROWS, ["a note on <left>"], {"htp": 300, "gpu": 0, "cpu": 0}),
        "right": Component(results(**other), OTHER, macs={"htp": 0, "gpu": 0, "cpu": 100}),
    }


def test_totals_and_the_worst(parts: dict[str, Any], other: dict[str, Any]) -> None:
    document = joined(parts, other)
    assert check(document, load_schema("anfbuild.report", "results.schema.json")) == []
    assert document["latency_ms"]["total"] == pytest.approx(24.6)
    assert document["latency_ms"]["interval90"] == [18.0, 33.0]
    assert document["latency_ms"]["calibrated"] is False
    assert document["traffic"]["dram_read_mb"] == pytest.approx(52.8)
    assert (document["placement"]["nodes"], document["placement"]["partitions"]) == (180, 3)
    assert document["placement"]["share"]["macs"] == {"htp": 0.75, "gpu": 0.0, "cpu": 0.25}
    assert document["placement"]["share"]["time"] == pytest.approx({"htp": 0.7, "gpu": 0.0, "cpu": 0.3})
    assert document["placement"]["time_source"] == "predicted"
    assert document["placement"]["unlisted"] == ["left: Nms_1", "left: Erf_2", "right: b"]
    assert document["components"]["right"]["placement"]["unlisted"] == ["b"]
    assert (document["accuracy"]["component"], document["accuracy"]["drop_abs"]) == ("right", 0.077)
    assert document["agreement"]["component"] == "left"
    assert document["traffic_model"]["unfused_mb"] == 180.0
    assert document["traffic_model"]["saving"] == pytest.approx(2 / 3)
    assert len(document["traffic_model"]["blocks"]) == len(document["memory_mb"]["suspects"]) == 2
    assert document["memory_mb"]["peak"] == 120.0
    assert document["package"] == PACKAGE
    assert document["quantization"] == "int8_per_channel+a16w8"
    told = document["calibration"]
    assert (told["samples"], told["dataset"], told["synthetic"]) == (
        8,
        "synthetic_text+folder",
        True,
    )
    assert document["components"]["left"]["accuracy"]["drop_abs"] == 0.027
    assert set(document["components"]["right"]) == {
        *("quantization", "placement", "accuracy", "agreement", "traffic", "traffic_model", "latency_ms", "memory_mb"),
        *("package", "calibration"),
    }


def test_gates_of_the_whole_judge_totals_or_the_worst_and_those_of_a_component_itself(
    parts: dict[str, Any], other: dict[str, Any]
) -> None:
    gates = {
        "latency_ms": {"max": 20},
        "accuracy": {"min": 0.7},
        "accuracy_drop": {"max": 0.03},
        "partitions": {"max": 3},
        "htp_macs": {"min": 0.7},
    }
    told = [
        (gate["name"], gate.get("component"), gate["value"], gate["passed"])
        for gate in joined(parts, other, gates)["gates"]
    ]
    assert told == [
        ("accuracy", "right", 0.8, True),
        ("accuracy_drop", "right", 0.077, False),
        ("htp_macs", None, 0.75, True),
        ("latency_ms", None, 24.6, False),
        ("partitions", "right", 3, True),
        ("latency_ms", "right", 12.3, False),
    ]


def test_what_is_not_known_of_a_component_is_no_pass(parts: dict[str, Any], other: dict[str, Any]) -> None:
    for group, figures in (("accuracy", ("drop_abs", "drop_rel", "interval95")), ("latency_ms", ("total",))):
        other[group] |= dict.fromkeys(figures)
        other[group]["reason"] = "nobody knows"
    document = joined(parts, other, {"accuracy_drop": {"max": 0.03}, "latency_ms": {"max": 99}})
    drop, latency, _ = document["gates"]
    assert (drop["component"], drop["passed"], drop["reason"]) == ("right", None, "nobody knows")
    assert (latency["passed"], latency["reason"]) == (None, "right: nobody knows")
    assert document["accuracy"]["component"] == "left"
    assert document["reasons"]["/latency_ms/total"] == "right: nobody knows"
    assert document["reasons"]["/components/right/latency_ms/total"] == "nobody knows"
    (missed, *_) = joined(parts, other, {"accuracy_drop": {"max": 0.01}})["gates"]
    assert (missed["component"], missed["passed"]) == ("left", False)


def test_what_is_not_known_of_the_placement_of_a_component_is_not_known_of_the_whole(
    parts: dict[str, Any], other: dict[str, Any]
) -> None:
    del other["placement"]["share"]["time"], other["placement"]["unlisted"], other["placement"]["time_source"]
    document = join(
        "both",
        {
            "left": Component(results(**parts), macs={"htp": 1, "gpu": 0, "cpu": 0}),
            "right": Component(results(**other, reasons={"/placement": "nobody knows"})),
        },
        package=PACKAGE,
        gates={},
    )
    whole = document["placement"]
    assert (whole["unlisted"], whole["time_source"]) == (None, None)
    assert whole["share"] == {of: {"htp": None, "gpu": None, "cpu": None} for of in ("macs", "time")}
    for pointer in ("unlisted", "time_source", "share/time/cpu"):
        assert document["reasons"][f"/placement/{pointer}"] == "right: nobody knows"
    assert document["reasons"]["/placement/share/macs/htp"] == "right: nothing is known of its nodes"


def test_a_figure_that_is_no_number_misses_the_gates_of_the_whole(parts: dict[str, Any], other: dict[str, Any]) -> None:
    other["accuracy"]["drop_abs"] = other["latency_ms"]["total"] = float("nan")
    gates = joined(parts, other, {"accuracy_drop": {"max": 1}, "latency_ms": {"max": 99}})["gates"]
    assert [(gate["name"], gate["passed"], gate["value"]) for gate in gates[:2]] == [
        ("accuracy_drop", False, None),
        ("latency_ms", False, None),
    ]


def test_a_host_without_a_compiler(bare_parts: dict[str, Any]) -> None:
    bare = Component(results(**{**bare_parts, "gates": {}}))
    document = join("both", {"left": bare, "right": bare}, package=PACKAGE, gates={"htp_macs": {"min": 1}})
    assert document["placement"]["source"] is None
    assert document["gates"][0]["passed"] is None
    assert "left: onnxruntime-qnn has no wheel" in document["gates"][0]["reason"]
    assert "no wheel" in document["reasons"]["/components/right/agreement/rms_lsb"]
    html(document, components={"left": bare, "right": bare})


def test_figures_of_different_sources_are_not_added(parts: dict[str, Any], other: dict[str, Any]) -> None:
    other["latency_ms"]["source"] = "measured_device"
    document = joined(parts, other)
    assert document["latency_ms"]["total"] is None
    assert "measured_device, predicted" in document["reasons"]["/latency_ms/total"]


def test_the_page_and_the_terminal_show_each_component(parts: dict[str, Any], other: dict[str, Any]) -> None:
    both = components(parts, other)
    document = join("both", both, package=PACKAGE, gates={"accuracy_drop": {"max": 0.03}})
    page = html(document, components=both)
    for text in (
        "Component left",
        "Component right",
        "a note on &lt;left&gt;",
        "no &lt;kernel&gt;",
        "right: latency_ms",
    ):
        assert text in page
    assert "One inference of each component in turn on Snapdragon" in page
    assert any(sentence.startswith("Of 2 components right is the worst: PCK is 0.8") for sentence in verdict(document))
    rows = {label: value for label, value, _ in summary(document)}
    assert rows["of it right"].startswith("a16w8, PCK 0.8")
    assert rows["gate right: accuracy_drop"].startswith("MISSED: 0.077, at most 0.03")


@given(st.lists(st.sampled_from(["int8", "a16w8", "a16w16"]), min_size=1))
def test_a_name_that_all_have_is_told_once(names: list[str]) -> None:
    told = one_or_all(names)
    assert told == names[0] if len(set(names)) == 1 else told.split("+") == names
