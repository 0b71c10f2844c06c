"""The recipes beside the detector hold what docs/recipes.md says of them."""

from __future__ import annotations

from pathlib import Path

import pytest
from projects import Project
from test_end_to_end_good import assert_complete

from anfbuild import qnn

pytestmark = pytest.mark.skipif(qnn.unavailable() is not None, reason=str(qnn.unavailable()))


def test_the_portrait_recipe_is_judged_by_the_float_model(tmp_path: Path, store: Path) -> None:
    project = Project(tmp_path, store)
    ran = project.run("+recipe=portrait_segment", "--json")  # in seconds: the network is small
    assert ran.code == 0, ran.err
    results = ran.document["results"]
    assert_complete(results)
    accuracy = results["accuracy"]
    assert (accuracy["metric"], accuracy["reference"], accuracy["float"]) == ("mIoU against float", "float", None)
    assert accuracy["drop_abs"] == pytest.approx(1 - accuracy["quantized"])
    assert 0 < accuracy["drop_abs"] <= 0.02
    assert accuracy["samples"] == {"float": 16, "quantized": 16, "emulated": 2}
    assert results["placement"]["share"]["macs"]["htp"] == 1.0
    assert {gate["name"]: gate["passed"] for gate in results["gates"]} == dict.fromkeys(
        ("accuracy_drop", "agreement_lsb", "htp_macs", "latency_ms", "partitions"), True
    )


def test_the_hand_recipe_builds_two_networks_into_one_package(tmp_path: Path, store: Path) -> None:
    project = Project(tmp_path, store)
    ran = project.run("+recipe=hand_gesture", "--json")  # in seconds: the networks are small
    assert ran.code == 0, ran.err
    results = ran.document["results"]
    assert_complete(results)
    assert set(results["components"]) == {"landmark", "recrop"}
    for own in results["components"].values():
        assert (own["accuracy"]["metric"], own["accuracy"]["reference"]) == ("PCK against float", "float")
        assert own["placement"]["share"]["macs"]["htp"] == 1.0
        assert own["accuracy"]["samples"] == {"float": 16, "quantized": 16, "emulated": 2}
    assert all(gate["passed"] for gate in results["gates"])
