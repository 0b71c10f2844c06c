"""Chips and schemes by name, for verbs without a recipe."""

from __future__ import annotations

from pathlib import Path

import pytest

from anfbuild.cli import targets
from anfbuild.errors import RecipeError
from anfbuild.graph.constraints import FLOAT16
from anfbuild.quantization import FP16
from anfbuild.recipe.files import shipped

SHIPPED = sorted(path.stem for path in (shipped() / "conf" / "target").glob("*.yaml"))


@pytest.mark.parametrize("name", SHIPPED)
def test_every_target_that_is_shipped_can_be_built_for(name: str, tmp_path: Path) -> None:
    chip = targets.chip(name, tmp_path)
    assert chip.name == name
    assert targets.check_target(chip.values).arch == chip.values["arch"]


def test_a_name_finds_the_file_of_its_chip(tmp_path: Path) -> None:
    for word in ("sm8650", "SM8650", "57"):
        assert targets.chip(word, tmp_path).rates
    assert not targets.chip("SM7635", tmp_path).rates
    assert targets.chip("SM7635", tmp_path).file is None


@pytest.mark.parametrize("text", ["[", "- a", "soc: sm8650", "soc: sm8450\nsoc_model: 57\narch: v75\nvtcm_mb: 8", "\0"])
def test_a_file_that_says_no_chip_is_refused_by_name(text: str, tmp_path: Path) -> None:
    path = tmp_path / "conf" / "target" / "made.yaml"
    path.parent.mkdir(parents=True)
    path.write_text(text)
    with pytest.raises(RecipeError) as error:
        targets.chip("made", tmp_path)
    assert str(path) in (error.value.where or "")
    assert error.value.remedy


def test_half_precision_has_one_name(tmp_path: Path) -> None:
    assert targets.scheme("fp16", tmp_path) == FP16 == FLOAT16.name
