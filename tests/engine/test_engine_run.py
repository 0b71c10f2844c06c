"""A run builds what is missing, nothing else, and survives damage, failure and company."""

from __future__ import annotations

import contextlib
import json
import multiprocessing
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import toy

from anfbuild.engine.run import Build, Event
from anfbuild.engine.step import Job, Step
from anfbuild.engine.store import Store
from anfbuild.errors import RecipeError, StepError

build = toy.make


def ran(run: Build) -> list[str]:
    return [event.step for event in run.events if event.kind == "done"]


def output(run: Build, root: Path) -> str:
    run.export("shout", "shout.txt", root / "out.txt")
    return (root / "out.txt").read_text()


def test_first_run_builds_all_and_second_run_builds_nothing(tmp_path: Path) -> None:
    first, second = build(tmp_path), build(tmp_path)
    assert first.run("shout")
    assert second.run("shout")
    assert ran(first) == ["words", "count", "shout"]
    assert ran(second) == []
    assert output(second, tmp_path) == "4 words: MAKE\nDEVICE"


def test_a_change_reruns_only_what_reads_it(tmp_path: Path) -> None:
    build(tmp_path).run("shout")
    run = build(tmp_path, unit="pieces")
    run.run("shout")
    assert ran(run) == ["count", "shout"]


def test_early_cut_off_when_an_input_comes_out_the_same(tmp_path: Path) -> None:
    build(tmp_path, text="one make").run("shout")
    run = build(tmp_path, text="two make")  # another short word: the count and the long words stay
    run.run("shout")
    assert ran(run) == ["words", "count"]


def test_a_folder_need_ignores_the_rest_of_the_step(tmp_path: Path) -> None:
    long_only = toy.GRAPH["shout"]
    assert "words/long" in long_only.needs
    first, second = build(tmp_path, text="aa make"), build(tmp_path, text="bb make")
    first.run("shout")
    second.run("shout")
    assert first.key("shout") == second.key("shout")


def test_goal_stops_at_the_named_step(tmp_path: Path) -> None:
    run = build(tmp_path)
    assert run.run("count")
    assert ran(run) == ["words", "count"]


def test_unknown_goal_names_the_steps(tmp_path: Path) -> None:
    with pytest.raises(RecipeError, match=r"(?s)no step 'shuot'.*count, shout, words.*did you mean 'shout'"):
        build(tmp_path).ancestors("shuot")


def test_a_failure_is_told_and_not_cached(tmp_path: Path) -> None:
    for _ in range(2):
        run = build(tmp_path, fail="error")
        assert not run.run("shout")
        assert isinstance(run.error, StepError)
        assert "'shout' broke: ValueError: no voice" in str(run.error)
        assert run.events[-1] == Event("failed", "shout")
    assert [event.kind for event in run.events] == ["hit", "hit", "start", "failed"]


def test_an_error_names_an_input_without_the_folder_that_it_was_copied_to(tmp_path: Path) -> None:
    run = build(tmp_path, fail="input")
    assert not run.run("shout")
    assert isinstance(run.error, StepError)
    assert (run.error.where, run.error.choices) == (f"count{os.sep}count.txt", [f"output{os.sep}a"])


def test_a_lack_of_memory_is_no_fault_of_the_program(tmp_path: Path) -> None:
    run = build(tmp_path, fail="memory")
    assert not run.run("shout")
    assert isinstance(run.error, StepError)
    assert run.error.what == "step 'shout' ran out of memory"
    assert "smaller input shape" in str(run.error)
    assert "fault" not in str(run.error)


def test_a_full_disk_that_names_no_file_is_the_stores(tmp_path: Path) -> None:
    run = build(tmp_path, fail="disk")
    assert not run.run("shout")
    assert isinstance(run.error, StepError)
    assert run.error.where == str(tmp_path / "store")
    assert "Make room" in str(run.error)


def test_steps_without_docstrings_go_by_their_names(tmp_path: Path) -> None:
    graph = {"bare": Step("bare", (), toy.Words, lambda job: job.output.touch())}
    run = build(tmp_path, graph)
    assert [task["doc"] for task in run.tasks("bare")] == ["bare"]
    assert run.run("bare")
    assert [task["doc"] for task in build(tmp_path).tasks("words")] == [
        "Write the words of a text, one folder for the short and one for the long."
    ]


def test_a_look_up_that_breaks_is_an_error_and_no_traceback(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def fail(_store: Store, _key: str) -> None:
        raise PermissionError(13, "Permission denied", "entry.json")

    monkeypatch.setattr(Store, "lookup", fail)
    run = build(tmp_path)
    assert not run.run("shout")
    assert isinstance(run.error, StepError)
    assert run.error.where == "entry.json"
    assert "Traceback" not in capfd.readouterr().err


def test_any_number_of_damaged_inputs_is_rebuilt(tmp_path: Path) -> None:
    build(tmp_path).run("shout")
    sink = Step("sink", tuple(GRAPH_OF_MANY), toy.Words, _join)
    graph = {**GRAPH_OF_MANY, "sink": sink}

    def many() -> Build:
        return build(tmp_path, graph)

    assert many().run("sink")
    for entry in (tmp_path / "store" / "ac").iterdir():
        if "joined.txt" in entry.read_text():
            entry.unlink()
    for blob in (tmp_path / "store" / "cas").rglob("*"):
        if blob.is_file():
            blob.chmod(0o644)
            blob.write_bytes(b"x" * blob.stat().st_size)
    run = many()
    assert run.run("sink"), run.error


def _write_number(number: int) -> Callable[[Job[toy.Words]], None]:
    def run(job: Job[toy.Words]) -> None:
        """Write a number."""
        (job.output / "number.txt").write_text(str(number))

    return run


def _join(job: Job[toy.Words]) -> None:
    """Join the numbers."""
    text = "".join((folder / "number.txt").read_text() for folder in job.inputs.values())
    (job.output / "joined.txt").write_text(text)


GRAPH_OF_MANY = {f"s{number}": Step(f"s{number}", (), toy.Words, _write_number(number)) for number in range(6)}


def test_an_interrupted_run_goes_on_from_the_last_finished_step(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        build(tmp_path, fail="interrupt").run("shout")
    run = build(tmp_path)
    assert run.run("shout")
    assert ran(run) == ["shout"]
    assert list((tmp_path / "store" / "tmp").iterdir()) == []


def test_what_a_killed_owner_left_is_cleared_and_nothing_that_is_in_use(tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    used, left = "a" * 64, "b" * 64
    with store.lock(used), store.workspace(used) as folder:
        with store.lock(left), store.workspace(left) as other:
            shutil.copytree(folder, tmp_path / "store" / "tmp" / f"{left[:16]}-killed")
        assert build(tmp_path).run("words")
        assert list((tmp_path / "store" / "tmp").iterdir()) == [folder]
        assert not other.exists()


def test_content_fields_enter_the_key_by_content_and_not_by_path(tmp_path: Path) -> None:
    for name in ("a.txt", "b.txt"):
        (tmp_path / name).write_text(" more words")
    keys = [build(tmp_path, file=name).key("words") for name in ("a.txt", "b.txt")]
    assert keys[0] == keys[1] != build(tmp_path).key("words")
    (tmp_path / "b.txt").write_text(" other words")
    assert build(tmp_path, file="b.txt").key("words") != keys[0]


@pytest.mark.parametrize("back", [False, True])
def test_a_file_that_changes_while_a_step_reads_it_is_refused(tmp_path: Path, back: bool) -> None:
    file = tmp_path / "in.txt"
    file.write_text("one")

    def read(job: Job[toy.Words]) -> None:
        assert job.config.file is not None
        file.write_text("two")
        (job.output / "read.txt").write_text(job.config.file.read_text())
        if back:
            file.write_text("one")

    run = build(tmp_path, {"read": Step("read", (), toy.Words, read)}, file="in.txt")
    assert not run.run("read")
    assert isinstance(run.error, StepError)
    assert "changed while it ran; nothing was kept" in str(run.error)
    assert not (tmp_path / "store" / "ac").exists()


@pytest.mark.parametrize(
    ("leave", "words"),
    [
        (lambda output: (output / "a").symlink_to("b"), "'a', which is neither a file nor a folder"),
        (lambda output: (output / "a").symlink_to("/"), "'a', which is neither a file nor a folder"),
        (lambda output: os.mkfifo(output / "a"), "'a', which is neither a file nor a folder"),
        (lambda output: (output / "a:b").touch(), "'a:b', a name that cannot be kept"),
    ],
)
def test_what_an_entry_cannot_list_is_refused(tmp_path: Path, leave: Callable[[Path], None], words: str) -> None:
    run = build(tmp_path, {"odd": Step("odd", (), toy.Words, lambda job: leave(job.output))})
    assert not run.run("odd")
    assert isinstance(run.error, StepError)
    assert words in str(run.error)
    assert not (tmp_path / "store" / "ac").exists()


def test_a_missing_content_file_is_the_recipes_fault(tmp_path: Path) -> None:
    (tmp_path / "gone.text").touch()
    run = build(tmp_path, file="gone.txt")
    assert not run.run("shout")
    assert isinstance(run.error, RecipeError)
    assert run.error.where == "toy.file"
    assert f"{tmp_path / 'gone.txt'} does not exist" in str(run.error)
    assert run.error.choices == ["gone.text"]


def test_a_content_path_that_is_no_file_is_the_recipes_fault(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    run = build(tmp_path, file="pipe")
    assert not run.run("shout")
    assert isinstance(run.error, RecipeError)
    assert str(run.error).startswith(f"toy.file: {tmp_path / 'pipe'} is neither a file nor a folder")


def test_moving_the_project_changes_no_key(tmp_path: Path) -> None:
    keys = []
    for name in ("here", "there with a space"):
        root = tmp_path / name
        root.mkdir()
        (root / "in.txt").write_text("words")
        run = build(root, file="in.txt")
        run.run("shout")
        keys.append([run.key(step) for step in toy.GRAPH])
    assert keys[0] == keys[1]


@pytest.mark.parametrize("damage", ["delete", "truncate", "flip"])
def test_damaged_blobs_are_quarantined_and_rebuilt(tmp_path: Path, damage: str) -> None:
    build(tmp_path).run("shout")
    for blob in sorted((tmp_path / "store" / "cas").rglob("*")):
        if blob.is_file():
            data = blob.read_bytes()
            blob.unlink()
            if damage == "truncate":
                blob.write_bytes(data[:-1])
            elif damage == "flip":
                blob.write_bytes(bytes([data[0] ^ 1]) + data[1:] if data else b"")
    run = build(tmp_path, unit="pieces")
    assert run.run("shout"), run.error
    assert output(run, tmp_path) == "4 pieces: MAKE\nDEVICE"
    assert output(build(tmp_path), tmp_path) == "4 words: MAKE\nDEVICE"


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"result": {}, "sha256": "x"}', '{"result": {"outputFiles": 3}}', "[" * 100_000]
)
def test_damaged_entries_count_as_missing(tmp_path: Path, text: str) -> None:
    build(tmp_path).run("shout")
    entries = list((tmp_path / "store" / "ac").iterdir())
    for entry in entries:
        entry.write_text(text)
    run = build(tmp_path)
    assert run.run("shout")
    assert ran(run) == ["words", "count", "shout"]
    assert len(list((tmp_path / "store" / "quarantine").iterdir())) == len(entries)


def test_an_entry_with_one_changed_letter_is_refused(tmp_path: Path) -> None:
    build(tmp_path).run("words")
    (entry,) = (tmp_path / "store" / "ac").iterdir()
    entry.write_text(entry.read_text().replace("long/words", "lung/words"))
    run = build(tmp_path)
    run.run("words")
    assert ran(run) == ["words"]


def test_an_entry_under_the_name_of_another_is_refused(tmp_path: Path) -> None:
    build(tmp_path, text="one make").run("words")
    build(tmp_path, text="two make").run("words")
    one, two = (tmp_path / "store" / "ac").iterdir()
    texts = one.read_text(), two.read_text()
    one.write_text(texts[1])
    two.write_text(texts[0])
    run = build(tmp_path, text="one make")
    assert run.run("words")
    assert ran(run) == ["words"]
    assert Store(tmp_path / "store").read(run.result("words"), "short/words.txt") == b"one"
    (quarantined,) = (tmp_path / "store" / "quarantine").iterdir()
    assert quarantined.name == f"{run.key('words')}.json"


def test_an_edit_of_an_exported_file_does_not_reach_the_store(tmp_path: Path) -> None:
    run = build(tmp_path)
    run.run("shout")
    output(run, tmp_path)
    (tmp_path / "out.txt").write_text("edited")
    assert output(build(tmp_path), tmp_path) == "4 words: MAKE\nDEVICE"


def test_observations_lie_beside_the_result(tmp_path: Path) -> None:
    run = build(tmp_path)
    run.run("count")
    result = run.result("count")
    assert list(result.files) == ["count.txt"]
    meta = Store(tmp_path / "store").meta(result.key)
    assert meta["observations"] == {"total": 4}
    assert meta["manifest"]["config"] == {"toy.unit": "words"}


def test_the_store_outlives_its_folder_being_moved(tmp_path: Path) -> None:
    build(tmp_path).run("shout")
    other = tmp_path / "other"
    other.mkdir()
    shutil.move(tmp_path / "store", other / "store")
    run = build(other)
    run.run("shout")
    assert ran(run) == []


def test_a_store_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "store").write_text("a file where the folder should be")
    run = build(tmp_path)
    assert not run.run("shout")
    assert isinstance(run.error, StepError)
    assert "store" in str(run.error)
    assert "ANFBUILD_CACHE" in str(run.error)


def _job(root: Path, queue: multiprocessing.Queue[list[str]]) -> None:
    run = build(root)
    run.run("shout")
    queue.put(ran(run))


def test_processes_that_build_the_same_build_each_step_once(tmp_path: Path) -> None:
    context = multiprocessing.get_context("fork")
    queue: multiprocessing.Queue[list[str]] = context.Queue()
    workers = [context.Process(target=_job, args=(tmp_path, queue)) for _ in range(4)]
    for worker in workers:
        worker.start()
    steps = [step for _ in workers for step in queue.get(timeout=60)]
    for worker in workers:
        worker.join()
    assert sorted(steps) == ["count", "shout", "words"]


def test_who_waits_for_another_build_says_so_once(tmp_path: Path) -> None:
    key = build(tmp_path).key("words")
    assert key is not None
    with contextlib.ExitStack() as other:
        other.enter_context(Store(tmp_path / "store").lock(key))

        def notify(event: Event) -> None:
            if event.kind == "wait":
                other.close()  # the other build ends

        store = Store(tmp_path / "store")
        run = build(tmp_path, store=store, notify=notify)
        assert run.run("words")
    assert [(event.kind, event.key) for event in run.events] == [("wait", key), ("start", key), ("done", key)]


def test_entries_are_remote_execution_action_results(tmp_path: Path) -> None:
    run = build(tmp_path)
    run.run("count")
    document = json.loads((tmp_path / "store" / "ac" / f"{run.key('count')}.json").read_text())
    (file,) = document["result"]["outputFiles"]
    assert file["path"] == "count.txt"
    assert file["digest"]["sizeBytes"] == str(len("4 words"))
