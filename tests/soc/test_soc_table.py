from __future__ import annotations

import pytest

from anfbuild.errors import RecipeError
from anfbuild.soc import ARCHITECTURES, SOCS, default_soc, find


@pytest.mark.parametrize("word", ["sm8650", "SM8650", " Sm8650 ", 57, "57"])
def test_a_soc_is_found_by_name_in_any_case_and_by_number(word: str | int) -> None:
    soc = find(word)
    assert (soc.soc_model, soc.name, soc.arch, soc.vtcm_mb) == (57, "SM8650", "v75", 8)


def test_chips_that_share_a_number_are_the_same_row() -> None:
    assert find("qcm6490") is find("QCS6490")


def test_numbers_and_names_are_unique() -> None:
    assert len({soc.soc_model for soc in SOCS}) == len({soc.name for soc in SOCS}) == len(SOCS)


@pytest.mark.parametrize("word", ["sm8640", "", "-1", -1, 0, 999, "²", "sm8250", 21])
def test_an_unknown_or_older_soc_is_refused_with_the_choices(word: str | int) -> None:
    with pytest.raises(RecipeError, match="unknown SoC") as error:
        find(word)
    assert "sm8650 (57)" in error.value.choices


def test_a_misspelt_soc_gets_a_suggestion() -> None:
    with pytest.raises(RecipeError, match="did you mean 'SM8650'"):
        find("sm865O")


def test_each_architecture_has_a_soc_of_its_own() -> None:
    assert [default_soc(arch).arch for arch in ARCHITECTURES] == list(ARCHITECTURES)
    assert default_soc("v75").name == "SM8650"


@pytest.mark.parametrize("arch", ["v66", "v65", "75", ""])
def test_an_architecture_older_than_v68_is_refused(arch: str) -> None:
    with pytest.raises(RecipeError) as error:
        default_soc(arch)
    assert error.value.choices[0] == "v68"
