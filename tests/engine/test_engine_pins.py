"""A pin keeps a whole build and goes only when it is told to."""

from __future__ import annotations

from pathlib import Path

import pytest
import toy

from anfbuild.engine.pins import pin, pinned_keys, unpin
from anfbuild.engine.store import Store
from anfbuild.errors import RecipeError


@pytest.fixture
def steps(tmp_path: Path) -> dict[str, str]:
    run = toy.make(tmp_path)
    assert run.run("shout")
    return {step: run.result(step).key for step in toy.GRAPH}


def test_pinned_and_unpinned(tmp_path: Path, steps: dict[str, str]) -> None:
    store = Store(tmp_path / "store")
    assert pinned_keys(store) == frozenset()
    assert pin(store, "toy", "shout", steps["shout"], steps) == pin(store, "toy", "shout", steps["shout"], steps)
    assert pinned_keys(store) == frozenset(steps.values())
    unpin(store, "toy", steps["shout"])
    assert pinned_keys(store) == frozenset()


def test_what_is_not_there_cannot_be_pinned(tmp_path: Path, steps: dict[str, str]) -> None:
    store = Store(tmp_path / "store")
    store.entry(steps["count"]).unlink()
    with pytest.raises(RecipeError, match=r"(?s)step 'count' .* no result.*Build first: anfbuild \+recipe=toy"):
        pin(store, "toy", "shout", steps["shout"], steps)
    assert pinned_keys(store) == frozenset()


def test_unpinning_another_build_names_those_that_are_pinned(tmp_path: Path, steps: dict[str, str]) -> None:
    store = Store(tmp_path / "store")
    path = pin(store, "toy", "shout", steps["shout"], steps)
    for key in ("f" * 64, None):
        with pytest.raises(RecipeError, match="is not pinned") as caught:
            unpin(store, "toy", key)
        assert caught.value.choices == [str(path)]
    with pytest.raises(RecipeError, match="is not pinned") as caught:
        unpin(store, "other", "f" * 64)
    assert caught.value.choices == []
