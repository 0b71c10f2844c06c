"""The status counts each blob once in the total, and in each row where it belongs."""

from __future__ import annotations

from pathlib import Path

import pytest
import toy

from anfbuild.engine.pins import pin
from anfbuild.engine.result import Result
from anfbuild.engine.status import status
from anfbuild.engine.store import Store
from anfbuild.errors import StepError


def test_a_store_of_two_recipes_that_share_steps(tmp_path: Path) -> None:
    one, two = toy.make(tmp_path, name="one", private=["count"]), toy.make(tmp_path, name="two", unit="pieces")
    assert one.run("shout")
    assert two.run("shout")
    store = Store(tmp_path / "store")
    pin(store, "two", "count", two.result("count").key, {step: two.result(step).key for step in ("words", "count")})
    (store.root / "quarantine").mkdir()
    (store.root / "quarantine" / "x").write_bytes(b"123")
    found = status(store)
    sizes = [path.stat().st_size for path in store.root.glob("cas/*/*")]
    assert (found.entries, found.blobs, found.blob_bytes) == (5, len(sizes), sum(sizes))
    assert (found.quarantine, found.quarantine_bytes, found.pins, found.pinned, found.private) == (1, 3, 1, 2, 2)
    recipes = {row.name: row for row in found.recipes}
    assert [recipes[name].entries for name in ("one", "two")] == [3, 3]
    words = sum(size for _, size in one.result("words").files.values())
    assert sum(row.bytes for row in found.recipes) == found.blob_bytes + words  # which both use
    assert {row.name: (row.entries, row.pinned, row.private) for row in found.steps} == {
        "words": (1, 1, 0),
        "count": (2, 1, 1),
        "shout": (2, 0, 1),
    }


def test_bytes_that_are_elsewhere_and_unknown_makers(tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    store.enter(Result("a" * 64, {"f": ("b" * 64, 7)}, remote=True), {})
    found = status(store)
    assert (found.elsewhere, found.blob_bytes) == (1, 0)
    assert [row.name for row in (*found.recipes, *found.steps)] == ["?", "?"]
    assert found.to_json()["used"].endswith("Z")


def test_no_store_is_an_empty_one_and_is_not_made(tmp_path: Path) -> None:
    assert status(Store(tmp_path / "store")).to_json()["used"] is None
    assert not (tmp_path / "store").exists()
    (tmp_path / "file").touch()
    with pytest.raises(StepError, match="Not a directory"):
        status(Store(tmp_path / "file"))
