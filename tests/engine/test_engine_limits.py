"""Sizes and ages are read as people write them, or refused with an example."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anfbuild.engine.limits import parse_age, parse_size, show_size
from anfbuild.errors import RecipeError


@pytest.mark.parametrize(
    ("text", "size"), [("20GB", 20 * 10**9), ("500MB", 5 * 10**8), ("1.5TB", 15 * 10**11), ("0 b", 0), ("3kb", 3000)]
)
def test_sizes(text: str, size: int) -> None:
    assert parse_size(text, "--max-size") == size


@pytest.mark.parametrize(
    ("text", "age"), [("30d", 2592000), ("12h", 43200), ("90min", 5400), ("0s", 0), ("1w", 604800)]
)
def test_ages(text: str, age: float) -> None:
    assert parse_age(text, "--older-than") == age


@pytest.mark.parametrize("text", ["", "20", "GB", "-1GB", "1e9B", "20GiB", "nan GB", "1.GB", "20 G B", "٣GB", "30d"])
def test_what_is_no_size_is_refused_with_the_units_and_an_example(text: str) -> None:
    with pytest.raises(RecipeError, match=r"(?s)^--max-size: .*is no size.*B, kB, MB, GB, TB.*Write --max-size 20GB"):
        parse_size(text, "--max-size")


@given(st.text())
def test_any_text_is_a_time_or_a_recipe_error(text: str) -> None:
    with contextlib.suppress(RecipeError):
        assert parse_age(text, "--grace") >= 0


@given(st.integers(0, 10**15))
def test_a_shown_size_is_read_back_nearly(size: int) -> None:
    assert abs(parse_size(show_size(size), "") - size) <= size * 0.06
