"""Verifying finds what is damaged, puts it aside, and the next build makes it again."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from pathlib import Path

import pytest
import toy

from anfbuild.engine.store import Store
from anfbuild.engine.verify import verify
from anfbuild.errors import StepError


@pytest.fixture
def store(tmp_path: Path) -> Store:
    assert toy.make(tmp_path).run("shout")
    return Store(tmp_path / "store")


def first(store: Store, pattern: str) -> Path:
    return sorted(path for path in store.root.glob(pattern) if path.is_file())[0]


def overwrite(path: Path, data: bytes) -> None:
    path.chmod(0o644)
    path.write_bytes(data)


def pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def folder(path: Path) -> None:
    path.unlink()
    path.mkdir()
    (path / "file").touch()


def test_a_sound_store(store: Store) -> None:
    found = verify(store)
    assert (found.damage, found.notes, found.entries) == ((), (), 3)
    assert found.blobs == len([path for path in store.root.glob("cas/*/*") if path.is_file()])


@pytest.mark.parametrize(
    ("pattern", "kinds"), [("cas/*/*", ["blob", "entry"]), ("ac/*.json", ["entry"]), ("meta/*.json", ["meta"])]
)
@pytest.mark.parametrize("damage", [lambda path: overwrite(path, b"\xff\x00{"), pipe, folder])
def test_damage_is_put_aside_and_made_again(
    store: Store, tmp_path: Path, pattern: str, kinds: list[str], damage: Callable[[Path], None]
) -> None:
    damage(first(store, pattern))
    found = verify(store)
    assert [found.kind for found in found.damage] == kinds
    assert all(found.quarantined for found in found.damage)
    assert verify(store).damage == ()
    run = toy.make(tmp_path)
    assert run.run("shout"), run.error
    assert "done" in [event.kind for event in run.events]
    assert (verify(store).damage, verify(store).entries) == ((), 3)


def test_an_entry_whose_bytes_are_gone_is_damaged_but_not_one_made_elsewhere(store: Store) -> None:
    run = toy.make(store.root.parent)
    assert run.run("shout")
    here, there = run.result("count"), run.result("shout")
    for result in (here, there):
        for sha, _ in result.files.values():
            store.blob(sha).unlink()
    store.enter(type(there)(there.key, there.files, remote=True), store.meta(there.key))
    (damage,) = verify(store).damage
    assert (damage.kind, damage.path) == ("entry", store.entry(here.key))


def test_a_blob_that_a_build_mends_meanwhile_is_not_accused(store: Store) -> None:
    path = first(store, "cas/*/*")
    good = path.read_bytes()
    overwrite(path, b"damaged")
    entered = []
    lock = store.lock

    def mend(key: str, *arguments: Callable[[], None]) -> object:
        if not entered:  # just before the second look
            entered.append(key)
            overwrite(path, good)
        return lock(key, *arguments)

    store.lock = mend  # type: ignore[assignment,method-assign]
    assert verify(store).damage == ()
    assert entered == ["commit"]


def test_what_is_left_over_is_noted(store: Store) -> None:
    data = b"named by nobody"
    named = store.blob(hashlib.sha256(data).hexdigest())
    named.parent.mkdir(exist_ok=True)
    named.write_bytes(data)
    (store.root / "ac" / ".0123.partial").touch()
    key = toy.make(store.root.parent).key("words")
    assert key is not None
    (store.root / "tmp" / f"{key[:16]}-killed").mkdir()
    found = verify(store)
    assert found.damage == ()
    assert [note[:1] for note in found.notes] == ["1", "1", "1"]


def test_a_damaged_pin_and_a_file_in_place_of_a_folder_stay_for_the_user(store: Store) -> None:
    path = store.root / "pins" / "toy" / f"{'a' * 64}.json"
    path.parent.mkdir(parents=True)
    path.write_text("[]")
    (store.root / "quarantine").write_text("no folder")
    found = verify(store).damage
    assert [(damage.kind, damage.quarantined) for damage in found] == [("folder", False), ("pin", False)]
    assert path.exists()


def test_a_folder_that_is_no_store_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StepError, match="is no store of anfbuild"):
        verify(Store(tmp_path))
    assert verify(Store(tmp_path / "gone")).entries == 0
