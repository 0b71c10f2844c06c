"""The store gives back what it was given or says that it cannot, whatever lies in its folder."""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import mounts
import pytest
import toy

from anfbuild.engine.gc import clear
from anfbuild.engine.plan import Limits
from anfbuild.engine.result import Result
from anfbuild.engine.run import Build
from anfbuild.engine.status import status
from anfbuild.engine.step import Job, Step
from anfbuild.engine.store import Damaged, Store
from anfbuild.engine.verify import verify
from anfbuild.errors import StepError

KEY = "a" * 64
LARGE = (1 << 20) + 7
SIZES = {"small": 5, "empty": 0, "one": LARGE, "two": LARGE + 1, "sub/three": 3 * LARGE, "exact": 1 << 20}


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store")


def committed(store: Store, folder: Path) -> Result:
    source = random.Random(0)
    for name, size in SIZES.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(source.randbytes(size))
    shutil.copytree(folder, folder.with_name("original"))
    return store.commit(KEY, folder, {})


def ran(run: Build) -> list[str]:
    return [event.step for event in run.events if event.kind == "done"]


# ---- bytes


def test_what_comes_out_is_what_went_in(store: Store, tmp_path: Path) -> None:
    result = committed(store, tmp_path / "in")
    store.copy_out(result, "", tmp_path / "out")
    for name in SIZES:
        assert (tmp_path / "out" / name).read_bytes() == (tmp_path / "original" / name).read_bytes()
    store.copy_out(result, "sub", tmp_path / "sub")
    assert [path.name for path in (tmp_path / "sub").iterdir()] == ["three"]
    store.copy_file(result, "two", tmp_path / "deep" / "two")
    assert [path.name for path in (tmp_path / "deep").iterdir()] == ["two"]


@pytest.mark.parametrize("name", sorted(set(SIZES) - {"empty"}))
@pytest.mark.parametrize("damage", ["flip", "longer", "shorter", "gone", "folder", "pipe", "loop"])
def test_bytes_that_are_not_what_they_should_be_do_not_come_out(
    store: Store, tmp_path: Path, name: str, damage: str
) -> None:
    result = committed(store, tmp_path / "in")
    blob = store.blob(result.files[name][0])
    data = blob.read_bytes()
    blob.unlink()
    match damage:
        case "flip":
            blob.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
        case "longer":
            blob.write_bytes(data + b"x")
        case "shorter":
            blob.write_bytes(data[:-1])
        case "folder":
            blob.mkdir()
        case "pipe":
            os.mkfifo(blob)
        case "loop":
            blob.symlink_to(blob.name)
    for take in (
        lambda: store.copy_out(result, "", tmp_path / "out"),
        lambda: store.copy_file(result, name, tmp_path / "file"),
        lambda: store.read(result, name),
    ):
        with pytest.raises(Damaged):
            take()
    assert not (tmp_path / "out" / name).exists()
    assert not (tmp_path / "file").exists()
    assert not store.has(*result.files[name])
    assert store.commit(KEY, tmp_path / "original", {}) == result  # a folder in the way of a blob is put aside
    assert store.read(result, name) == data


def test_a_blob_is_as_young_as_its_last_commit(store: Store, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "old").write_text("from an archive")
    os.utime(tmp_path / "in" / "old", (0, 0))
    result = store.commit(KEY, tmp_path / "in", {})
    assert time.time() - store.blob(result.files["old"][0]).stat().st_mtime < 3600


# ---- what may lie in the folder


def entry_becomes(make: Callable[[Path], object]) -> Callable[[Path], None]:
    def damage(root: Path) -> None:
        for path in (root / "ac").iterdir():
            path.unlink()
            make(path)

    return damage


def noise_everywhere(root: Path) -> None:
    source = random.Random(1)
    for folder in ("ac", "cas", "cas/ab", "meta", "builds", "builds/toy", "memo", "locks", "tmp", "pins", "quarantine"):
        (root / folder).mkdir(parents=True, exist_ok=True)
        (root / folder / "noise").write_bytes(source.randbytes(100))
        (root / folder / f"{'c' * 64}.json").write_bytes(source.randbytes(100))
    for path in root.rglob("*"):
        if path.is_file() and path.name != "store.json" and "pins" not in path.parts:
            path.chmod(0o644)
            path.write_bytes(source.randbytes(path.stat().st_size))


def fill(path: Path) -> None:
    path.mkdir()
    (path / "file").touch()


@pytest.mark.parametrize(
    "damage",
    [
        noise_everywhere,
        entry_becomes(fill),
        entry_becomes(os.mkfifo),
        entry_becomes(lambda path: path.symlink_to(path.parent)),
        entry_becomes(lambda path: path.symlink_to(path)),
    ],
)
def test_a_build_gets_over_what_is_damaged(tmp_path: Path, damage: Callable[[Path], None]) -> None:
    assert toy.make(tmp_path).run("shout")
    damage(tmp_path / "store")
    run = toy.make(tmp_path)
    assert run.run("shout"), run.error
    assert ran(run) == ["words", "count", "shout"]
    assert ran(toy.make(tmp_path)) == []
    store = Store(tmp_path / "store")
    status(store)
    assert all("pins" in str(damage.path) or damage.quarantined for damage in verify(store).damage)


@pytest.mark.parametrize("name", ["ac", "cas", "meta", "locks", "tmp"])
def test_a_file_in_place_of_a_folder_is_named(tmp_path: Path, name: str) -> None:
    assert toy.make(tmp_path).run("words")
    place = tmp_path / "store" / name
    shutil.rmtree(place)
    place.write_text("no folder")
    run = toy.make(tmp_path, text="other")
    assert not run.run("shout")
    assert isinstance(run.error, StepError)
    assert run.error.where == str(place)
    assert "Remove it" in str(run.error)
    assert place.read_text() == "no folder"
    assert [damage.path for damage in verify(Store(tmp_path / "store")).damage if damage.kind == "folder"] == [place]


def test_blobs_that_cannot_be_read_are_the_stores_fault(store: Store, tmp_path: Path) -> None:
    result = committed(store, tmp_path / "in")
    shutil.rmtree(store.root / "cas")
    (store.root / "cas").write_text("no folder")
    with pytest.raises(StepError, match="a folder of the store should be here") as told:
        store.copy_file(result, "two", tmp_path / "out")
    assert told.value.where == str(store.root / "cas")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"format": 99}', ["format 99", "knows 1", "another folder"]),
        ("{", ["which format", "remove this file"]),
        ("[]", ["which format", "remove this file"]),
        ("\xff", ["which format", "remove this file"]),
    ],
)
def test_a_store_of_another_format_or_of_none(tmp_path: Path, text: str, words: list[str]) -> None:
    assert toy.make(tmp_path).run("words")
    path = tmp_path / "store" / "store.json"
    path.write_text(text, encoding="latin-1")
    run = toy.make(tmp_path)
    assert not run.run("words")
    store = Store(tmp_path / "store")
    for error in (run.error, _raised(lambda: status(store)), _raised(lambda: verify(store))):
        for word in (str(path), *words):
            assert word in str(error)
    assert _raised(lambda: clear(store, Limits(max_size=0, grace=0), delete=True))
    assert len(list((tmp_path / "store" / "ac").iterdir())) == 1


def _raised(work: Callable[[], object]) -> StepError | None:
    try:
        work()
    except StepError as error:
        return error
    return None


def test_a_pipe_in_place_of_the_format(tmp_path: Path) -> None:
    (tmp_path / "store").mkdir()
    os.mkfifo(tmp_path / "store" / "store.json")
    run = toy.make(tmp_path)
    assert not run.run("words")
    assert "which format" in str(run.error)


@pytest.mark.parametrize("then", [0.0, 4e9, -1e9])
def test_clocks_that_are_apart(tmp_path: Path, then: float) -> None:
    (tmp_path / "in.txt").write_text(" more words")
    os.utime(tmp_path / "in.txt", (then, then))
    assert toy.make(tmp_path, file="in.txt").run("shout")
    store = Store(tmp_path / "store")
    for path in store.root.rglob("*"):
        os.utime(path, (then, then))
    status(store).to_json()
    assert verify(store).damage == ()
    run = toy.make(tmp_path, file="in.txt")
    assert run.run("shout")
    assert ran(run) == []
    for path in [*(store.root / "ac").iterdir(), *(store.root / "builds").rglob("*.json")]:
        assert abs(time.time() - path.stat().st_mtime) < 3600  # it was used now


def test_a_store_behind_a_link(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "store").symlink_to("real")
    assert toy.make(tmp_path).run("shout")
    assert ran(toy.make(tmp_path)) == []
    store = Store(tmp_path / "store")
    assert verify(store).damage == ()
    (tmp_path / "nowhere").symlink_to("gone")
    run = toy.make(tmp_path, store=Store(tmp_path / "nowhere"))
    assert not run.run("shout")
    assert isinstance(run.error, StepError)
    assert run.error.where == str(tmp_path / "nowhere")
    for path in store.root.rglob("*"):
        os.utime(path, (0, 0))
    clear(store, Limits(max_size=0), delete=True)
    assert (tmp_path / "store").is_symlink()
    assert not list((tmp_path / "real" / "ac").iterdir())


# ---- disks


def test_a_disk_that_gets_full_in_the_middle_of_a_commit(tmp_path: Path) -> None:
    roomy = []

    def fill_up(job: Job[toy.Words]) -> None:
        """Leave many files and, the first time, no room for the entry."""
        for number in range(20):
            (job.output / str(number)).write_bytes(bytes([number]) * 100)
        if not roomy:
            with contextlib.suppress(OSError), (tmp_path / "disk" / "ballast").open("wb", buffering=0) as file:
                while True:
                    file.write(bytes(4096))

    with mounts.mounted(tmp_path / "disk", "size=600k"):
        store = Store(tmp_path / "disk" / "store")
        assert toy.make(tmp_path, store=store).run("shout")
        graph = {"full": Step("full", (), toy.Words, fill_up)}
        run = toy.make(tmp_path, graph, store=store)
        assert not run.run("full")
        assert "No space left" in str(run.error)
        assert "Make room" in str(run.error)
        found = verify(store)
        assert found.damage == ()
        assert "no entry names" in "".join(found.notes)  # it was in the middle
        roomy.append(True)
        (tmp_path / "disk" / "ballast").unlink()
        again = toy.make(tmp_path, graph, store=store)
        assert again.run("full"), again.error
        assert verify(store).damage == ()


def test_a_read_only_store_serves_and_tells(tmp_path: Path) -> None:
    assert toy.make(tmp_path).run("shout")
    store = Store(tmp_path / "store")
    blob = next(path for path in store.root.glob("cas/*/*"))
    blob.chmod(0o644)
    blob.write_bytes(b"x" * blob.stat().st_size)
    with mounts.read_only(store.root):
        run = toy.make(tmp_path)
        assert run.run("shout"), run.error
        assert ran(run) == []
        assert status(store).entries == 3
        assert {(damage.kind, damage.quarantined) for damage in verify(store).damage} == {("blob", False)}
        assert clear(store, Limits(max_size=0, grace=0), delete=False).plan.entries
        with pytest.raises(OSError, match="Read-only"):
            clear(store, Limits(max_size=0, grace=0), delete=True)
        changed = toy.make(tmp_path, unit="pieces")
        assert not changed.run("shout")
        assert "Read-only" in str(changed.error)
    assert len(list((store.root / "ac").iterdir())) == 3
