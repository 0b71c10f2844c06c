from __future__ import annotations

import itertools
import math
from pathlib import Path

import hypothesis.strategies as st
import pytest
from hypothesis import given

from anfbuild.cli.sweep.jobs import LIMIT, expand, folder_name
from anfbuild.errors import RecipeError
from anfbuild.recipe.catalogue import Catalogue
from anfbuild.recipe.composition import parse


@pytest.mark.parametrize(
    ("overrides", "total", "culprit"),
    [
        (["dataset.seed=range(0,100000000)", "target=a,b"], "200000000", "dataset.seed=range(0,100000000)"),
        (["dataset.seed=range(0,1e300)"], "1.00E+300 jobs", "dataset.seed=range(0,1e300)"),
        (["dataset.seed=shuffle(range(0,100000000000000000000000))"], "1.00E+23 jobs", "seed"),
        (["a=range(0,8,0.000244140625)"], "32768 jobs", "a=range(0,8,0.000244140625)"),
        (["a=range(0,101)", "b=range(0,102)", "c=1"], "10302", "b=range(0,102)"),
    ],
)
def test_too_many_jobs_are_counted_not_made(overrides: list[str], total: str, culprit: str) -> None:
    with pytest.raises(RecipeError) as caught:
        expand(parse(overrides))
    assert total in caught.value.what
    assert culprit in caught.value.what
    assert str(LIMIT) in caught.value.what


@pytest.mark.parametrize("override", ["a=range(0,5,0)", "a=interval(0,1)", "a=range(0,inf)", "a=range(0.0,nan)"])
def test_what_has_no_number_of_values(override: str) -> None:
    with pytest.raises(RecipeError, match=r"no values that could be counted|has no end|jobs, and"):
        expand(parse([override]))


@given(st.integers(-9, 9), st.integers(-9, 9), st.integers(-4, 4).filter(bool), st.integers(1, 3))
def test_each_combination_is_a_job(start: int, stop: int, step: int, others: int) -> None:
    choices = [f"b={value}" for value in range(others)]
    swept = f"b={','.join(map(str, range(others)))}" if others > 1 else "b=0"
    jobs = expand(parse([f"a=range({start},{stop},{step})", "c=fixed", swept]))
    expected = list(itertools.product([f"a={value}" for value in range(start, stop, step)], ["c=fixed"], choices))
    assert [job.overrides for job in jobs] == expected
    assert [job.number for job in jobs] == list(range(len(expected)))
    assert all("c=fixed" not in job.varied for job in jobs)


@given(st.sampled_from([0.1, 0.25, 0.3]), st.integers(0, 3))
def test_ranges_of_fractions_have_the_length_that_hydra_gives_them(step: float, stop: int) -> None:
    override = parse([f"a=range(0,{stop},{step})"])
    made = list(override[0].sweep_string_iterator())
    assert len(expand(override)) == len(made)
    assert math.isclose(len(made), math.ceil(stop / step), abs_tol=1)


def test_of_two_values_for_one_key_the_later_counts() -> None:
    assert [job.overrides for job in expand(parse(["a=1,2", "~b", "a=3"]))] == [("a=3", "~b")]


def test_globs_are_counted_too(project: Path) -> None:
    for name in ("one", "two"):
        (project / "recipes" / f"{name}.yaml").write_text("defaults: [/recipe/plain, _self_]\n")
    catalogue = Catalogue(project)
    jobs = expand(parse(["+recipe=glob([one,pl*,two])", "a=1,2"], catalogue.loader))
    assert [job.varied for job in jobs][::2] == [(f"+recipe={name}", "a=1") for name in ("one", "plain", "two")]
    with pytest.raises(RecipeError, match=r"a=range\(0,9999\)"):
        expand(parse(["+recipe=glob(*)", "a=range(0,9999)"], catalogue.loader))


def test_names_of_folders_stay_within_bounds() -> None:
    assert folder_name(7, ["+recipe=vision/det", "a='ä b'"]) == "007-recipe_vision_det-a_b"
    assert len(folder_name(12345, ["x" * 300])) <= 120
