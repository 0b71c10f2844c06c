"""Clearing the store takes what nothing needs, leaves what somebody may need, and never makes a build fail."""

from __future__ import annotations

import multiprocessing
import os
import time
from pathlib import Path

import pytest
import toy

from anfbuild.engine.gc import clear
from anfbuild.engine.pins import pin
from anfbuild.engine.plan import Limits
from anfbuild.engine.run import Build
from anfbuild.engine.store import Store
from anfbuild.engine.verify import verify
from anfbuild.errors import StepError

DAY = 86400.0
EVERYTHING = Limits(max_size=0, grace=0)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """With one build of the toy graph, all of which was last used ten days ago."""
    assert toy.make(tmp_path).run("shout")
    store = Store(tmp_path / "store")
    age(store, 10 * DAY)
    return store


def age(store: Store, seconds: float) -> None:
    for path in store.root.rglob("*"):
        then = time.time() - seconds
        os.utime(path, (then, then))


def files(store: Store) -> list[str]:
    """All files but locks and memos."""
    found = (path.relative_to(store.root).as_posix() for path in store.root.rglob("*") if path.is_file())
    return sorted(name for name in found if not name.startswith(("locks/", "memo/")))


def ran(run: Build) -> list[str]:
    return [event.step for event in run.events if event.kind == "done"]


def test_a_dry_run_tells_what_goes_and_touches_nothing(store: Store) -> None:
    before = files(store)
    told = clear(store, Limits(older_than=9 * DAY), delete=False)
    assert [len(told.plan.entries), len(told.litter.metas), len(told.litter.builds)] == [3, 3, 1]
    assert told.plan.freed == sum(path.stat().st_size for path in (store.root / "cas").rglob("*") if path.is_file())
    assert files(store) == before


def test_what_goes_goes_whole_and_is_built_again(store: Store, tmp_path: Path) -> None:
    clear(store, Limits(older_than=9 * DAY), delete=True)
    assert files(store) == ["store.json"]
    run = toy.make(tmp_path)
    assert run.run("shout"), run.error
    assert ran(run) == ["words", "count", "shout"]


def test_what_was_used_since_stays(store: Store, tmp_path: Path) -> None:
    assert toy.make(tmp_path, unit="pieces").run("shout")  # touches `words`, makes the others anew
    clear(store, Limits(max_size=0), delete=True)
    run = toy.make(tmp_path, unit="pieces")
    assert run.run("shout")
    assert ran(run) == []
    assert verify(store).damage == ()
    assert len(list((store.root / "ac").iterdir())) == 3


def test_a_pinned_build_stays_with_all_that_it_was_made_from(store: Store, tmp_path: Path) -> None:
    run = toy.make(tmp_path)
    assert run.run("shout")
    key = run.key("shout")
    assert key is not None
    assert toy.make(tmp_path, text="another text").run("shout")
    pin(store, "toy", "shout", key, {"shout": key})  # what it needs follows from the entry's own record
    age(store, 10 * DAY)
    cleared = clear(store, EVERYTHING, delete=True)
    assert len(cleared.plan.entries) == 3
    again = toy.make(tmp_path)
    assert again.run("shout")
    assert ran(again) == []
    assert store.builds("toy")[0]["steps"]["shout"] == key


def test_a_pin_that_cannot_be_read_stops_it(store: Store) -> None:
    path = store.root / "pins" / "toy" / f"{'a' * 64}.json"
    path.parent.mkdir(parents=True)
    path.write_text("{")
    with pytest.raises(StepError, match=r"this pin cannot be read") as caught:
        clear(store, EVERYTHING, delete=True)
    assert caught.value.where == str(path)
    assert len(list((store.root / "ac").iterdir())) == 3


def test_litter_goes_by_what_it_is(store: Store) -> None:
    root, now, old = store.root, time.time(), time.time() - 2 * DAY
    places = {
        "quarantine/x": now,
        "ac/.0123.partial": old,
        "cas/ab/.4567.partial": now,  # somebody may be writing it
        f"cas/ab/ab{'0' * 62}": now,  # its entry may be on the way
        f"cas/ab/ab{'1' * 62}": old,
        "meta/" + "c" * 64 + ".json": now,
        "meta/" + "d" * 64 + ".json": old,
        "builds/toy/" + "e" * 64 + ".json": old,
    }
    for name, then in places.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("{}")
        os.utime(path, (then, then))
    (root / "tmp" / "no lock tells of it").mkdir()
    clear(store, Limits(), delete=True)
    left = [name for name in places if (root / name).exists()]
    assert left == ["cas/ab/.4567.partial", f"cas/ab/ab{'0' * 62}", "meta/" + "c" * 64 + ".json"]
    assert (root / "tmp" / "no lock tells of it").exists()
    assert len(list((root / "ac").iterdir())) == 3


def test_only_workspaces_of_the_dead_go(store: Store) -> None:
    alive, dead = "a" * 64, "b" * 64
    with store.lock(alive), store.workspace(alive) as folder:
        with store.lock(dead):
            pass
        (store.root / "tmp" / f"{dead[:16]}-killed").mkdir()
        clear(store, EVERYTHING, delete=True)
        assert list((store.root / "tmp").iterdir()) == [folder]


def test_a_build_that_loses_all_between_two_steps_makes_it_again(tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    cleared = []

    def notify(event: object) -> None:
        if getattr(event, "step", "") == "shout" and getattr(event, "kind", "") == "start" and not cleared:
            age(store, 10 * DAY)
            cleared.append(clear(store, EVERYTHING, delete=True))

    run = toy.make(tmp_path, notify=notify)
    assert run.run("shout"), run.error
    run.export("count", "count.txt", tmp_path / "count.txt")
    assert (tmp_path / "count.txt").read_text() == "4 words"
    assert verify(store).damage == ()


def _build_often(root: Path, number: int, queue: multiprocessing.Queue[str]) -> None:
    for turn in range(5):
        run = toy.make(root, text=f"make {turn % 3} devices", unit=str(number))
        queue.put("" if run.run("shout") else str(run.error))


def test_builds_beside_it_never_fail(tmp_path: Path) -> None:
    context = multiprocessing.get_context("fork")
    queue: multiprocessing.Queue[str] = context.Queue()
    builders = [context.Process(target=_build_often, args=(tmp_path, number, queue)) for number in range(2)]
    for builder in builders:
        builder.start()
    store = Store(tmp_path / "store")
    for _ in range(2):  # a build takes bytes that go away for damaged, and gives up when that happens a third time
        time.sleep(0.1)
        clear(store, EVERYTHING, delete=True)
        assert verify(store).damage == ()
    assert [queue.get(timeout=60) for _ in range(10)] == [""] * 10
    for builder in builders:
        builder.join()
    assert verify(store).damage == ()


def test_entries_of_another_century_and_of_the_future(store: Store, tmp_path: Path) -> None:
    one, two, three = sorted((store.root / "ac").iterdir())
    os.utime(one, (0, 0))
    os.utime(two, (time.time() + 1000 * DAY,) * 2)
    os.utime(three, (time.time() + 1000 * DAY,) * 2)
    cleared = clear(store, Limits(max_size=0, older_than=0), delete=True)
    assert [entry.key for entry in cleared.plan.entries] == [one.stem]
    assert toy.make(tmp_path).run("shout")
    assert two.stat().st_mtime < time.time() + DAY  # used now, and counted from now on


def test_a_folder_that_is_no_store_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "tmp").mkdir()
    (tmp_path / "tmp" / "mine").touch()
    with pytest.raises(StepError, match=r"(?s)is no store of anfbuild.*ANFBUILD_CACHE"):
        clear(Store(tmp_path), EVERYTHING, delete=True)
    assert (tmp_path / "tmp" / "mine").exists()
    assert clear(Store(tmp_path / "gone"), EVERYTHING, delete=True).plan.entries == ()
    assert not (tmp_path / "gone").exists()
