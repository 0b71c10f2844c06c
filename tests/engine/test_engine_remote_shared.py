"""Whatever a remote does, a build makes what it makes without one, and its store stays sound."""

from __future__ import annotations

import contextlib
import hashlib
import os
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import faulty
import pytest
import toy

from anfbuild.engine.cache import Cache
from anfbuild.engine.entry import parse_entry
from anfbuild.engine.remote import http, remote
from anfbuild.engine.remote.bounded import Bounded
from anfbuild.engine.remote.connect import connect
from anfbuild.engine.remote.folder import FolderRemote
from anfbuild.engine.remote.http import HttpRemote
from anfbuild.engine.remote.remote import RemoteError
from anfbuild.engine.remote.settings import Settings
from anfbuild.engine.remote.shared import Shared
from anfbuild.engine.run import Build
from anfbuild.engine.step import Job, Step
from anfbuild.engine.store import Store

OUTPUT = "4 words: MAKE\nDEVICE"


@pytest.fixture(autouse=True)
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Patience of a fraction of a second, and no proxy between a test and loopback."""
    monkeypatch.setattr(http, "READ_S", 0.2)
    monkeypatch.setattr(remote, "GRACE_S", 0.2)
    for name in list(os.environ):
        if name.lower().endswith("_proxy"):
            monkeypatch.delenv(name)


@pytest.fixture
def server() -> Iterator[faulty.Faulty]:
    with faulty.serve() as served:
        yield served


class Machine:
    """A store of its own, and a remote that it shares with others."""

    def __init__(self, root: Path, url: str, *, write: bool = False, wait_s: float = 30) -> None:
        self.root = root
        root.mkdir(exist_ok=True)
        self.warnings: list[str] = []
        self.store = Store(root / "store")
        settings = Settings(url)
        inner = HttpRemote(url, url, None) if settings.scheme == "http" else FolderRemote(Path(url))
        self.shared = Shared(Bounded(url, lambda: inner, limit_s=0.6), self.warnings.append, write=write, wait_s=wait_s)

    def build(self, private: tuple[str, ...] = (), graph: dict[str, Step] | None = None, **changes: str) -> Build:
        cache = Cache(self.store, self.shared)
        return toy.make(self.root, graph, cache=cache, private=private, notify=lambda _: None, **changes)

    def run(self, private: tuple[str, ...] = (), **changes: str) -> list[str]:
        """Build and export. Returns the steps that ran."""
        build = self.build(private, **changes)
        assert build.run("shout"), build.error
        build.export("shout", "shout.txt", self.root / "out.txt")
        build.close()
        return [event.step for event in build.events if event.kind == "done"]

    @property
    def output(self) -> str:
        return (self.root / "out.txt").read_text()

    def check_sound(self) -> None:
        """All entries can be read, all blobs are what their names say, and no working matter is left."""
        entries = list((self.store.root / "ac").glob("*"))
        assert [parse_entry(path.stem, path.read_bytes()) for path in entries]
        for path in (self.store.root / "cas").rglob("*"):
            assert path.is_dir() or hashlib.sha256(path.read_bytes()).hexdigest() == path.name
        assert not list((self.store.root / "tmp").glob("*"))
        assert not list(self.root.parent.rglob("escaped"))


@pytest.fixture
def filled(tmp_path: Path, server: faulty.Faulty) -> faulty.Faulty:
    """A server that holds all that a build made."""
    machine = Machine(tmp_path / "first", server.url, write=True)
    assert machine.run() == ["words", "count", "shout"]
    assert machine.warnings == []
    server.log.clear()
    return server


# ---- what a remote is for


@pytest.mark.parametrize("kind", ["http", "folder"])
def test_what_one_built_another_takes_over(kind: str, tmp_path: Path, server: faulty.Faulty) -> None:
    (tmp_path / "share").mkdir()
    url = server.url if kind == "http" else str(tmp_path / "share")
    assert Machine(tmp_path / "a", url, write=True).run() == ["words", "count", "shout"]
    other = Machine(tmp_path / "b", url)
    assert other.run() == []
    assert other.output == OUTPUT
    assert other.warnings == []
    other.check_sound()


def test_a_hit_moves_the_entry_and_of_the_bytes_only_what_is_exported(tmp_path: Path, filled: faulty.Faulty) -> None:
    machine = Machine(tmp_path / "b", filled.url)
    build = machine.build()
    assert build.run("shout")
    assert len(filled.asked("GET", "/ac/")) == 3
    assert filled.asked("GET", "/cas/") == []
    assert {event.origin for event in build.events} == {"remote"}
    build.export("shout", "shout.txt", tmp_path / "out.txt")
    assert filled.asked("GET", "/cas/") == [f"/cas/{hashlib.sha256(OUTPUT.encode()).hexdigest()}"]
    again = machine.build()
    again.run("shout")
    assert {event.origin for event in again.events} == {"local"}
    assert machine.store.meta(again.key("shout") or "")["needs"] == {
        "count": again.key("count"),
        "words": again.key("words"),
    }


def test_a_step_that_has_to_run_gets_the_bytes_of_what_it_needs(tmp_path: Path, filled: faulty.Faulty) -> None:
    machine = Machine(tmp_path / "b", filled.url)
    assert machine.run(unit="pieces") == ["count", "shout"]
    assert machine.output == "4 pieces: MAKE\nDEVICE"
    machine.check_sound()


def test_nothing_is_sent_unless_writing_is_on(tmp_path: Path, server: faulty.Faulty) -> None:
    Machine(tmp_path / "a", server.url).run()
    assert {asked.method for asked in server.log} == {"GET"}


def test_bytes_go_before_the_entry_and_what_is_there_is_not_sent_again(tmp_path: Path, server: faulty.Faulty) -> None:
    Machine(tmp_path / "a", server.url, write=True).run()
    for path in server.asked("PUT", "/ac/"):
        before = server.asked("PUT")[: server.asked("PUT").index(path)]
        entry = faulty.decode(path.removeprefix("/ac/"), server.kept[path])
        assert {f"/cas/{sha}" for sha, _ in entry.files.values()} <= set(before)
    server.log.clear()
    Machine(tmp_path / "b", server.url, write=True).run(text="make for on  device")  # another key, the same words
    assert not [path for path in server.asked("PUT") if "/cas/" in path]
    assert len(server.asked("PUT", "/ac/")) == 1


def test_entries_go_as_json(tmp_path: Path, server: faulty.Faulty) -> None:
    Machine(tmp_path / "a", server.url, write=True).run()
    for asked in server.log:
        if asked.path.startswith("/ac/"):
            assert asked.headers["Accept" if asked.method == "GET" else "Content-Type"] == "application/json"


def test_two_builds_at_once_share_a_remote(tmp_path: Path, server: faulty.Faulty) -> None:
    machines = [Machine(tmp_path / name, server.url, write=True) for name in "ab"]
    threads = [threading.Thread(target=machine.run) for machine in machines]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert [machine.output for machine in machines] == [OUTPUT, OUTPUT]
    assert [machine.warnings for machine in machines] == [[], []]
    for machine in machines:
        machine.check_sound()
    third = Machine(tmp_path / "c", server.url)
    assert third.run() == []


# ---- faults

ENTRY_FAULTS = {
    name: getattr(faulty, name)
    for name in ("close", "stall", "drip_head", "drip_body", "truncate", "shorten", "flip", "extend", "endless",
                 "garbage", "nested", "odd", "other_key", "ESCAPING", "ABSURD", "HUGE", "UNWRITABLE", "CLASHING")
} | {str(code): faulty.status(code) for code in (204, 401, 403, 404, 500, 503)}  # fmt: skip
BLOB_FAULTS = {
    name: ENTRY_FAULTS[name]
    for name in ("close", "stall", "drip_head", "drip_body", "truncate", "shorten", "flip", "extend", "404", "500")
}


def check_built_without(tmp_path: Path, served: faulty.Faulty) -> list[str]:
    """A build on another machine makes the same. Returns the warnings."""
    machine = Machine(tmp_path / "b", served.url)
    machine.run()
    assert machine.output == OUTPUT
    machine.check_sound()
    machine.run()
    assert len(machine.warnings) <= 1
    return machine.warnings


@pytest.mark.parametrize("name", ENTRY_FAULTS)
def test_a_build_survives_each_fault_of_entries(name: str, tmp_path: Path, filled: faulty.Faulty) -> None:
    filled.fail("GET", "/ac/", ENTRY_FAULTS[name])
    check_built_without(tmp_path, filled)


@pytest.mark.parametrize("name", BLOB_FAULTS)
def test_a_build_survives_each_fault_of_bytes(name: str, tmp_path: Path, filled: faulty.Faulty) -> None:
    filled.fail("GET", "/cas/", BLOB_FAULTS[name])
    check_built_without(tmp_path, filled)


def test_more_bytes_than_stated_are_not_taken(tmp_path: Path, filled: faulty.Faulty) -> None:
    filled.fail("GET", "/cas/", faulty.endless)
    assert check_built_without(tmp_path, filled) == []  # the first of them are the right ones


@pytest.mark.parametrize("code", [401, 413, 500, 507])
def test_a_build_survives_each_fault_of_writing(code: int, tmp_path: Path, server: faulty.Faulty) -> None:
    server.fail("PUT", "/", faulty.status(code))
    machine = Machine(tmp_path / "a", server.url, write=True)
    assert machine.run() == ["words", "count", "shout"]
    assert len(machine.warnings) == 1
    assert str(code) in machine.warnings[0]
    assert "cache push" in machine.warnings[0]
    assert server.kept == {}


def test_an_entry_of_another_place_is_not_followed(tmp_path: Path, filled: faulty.Faulty) -> None:
    with faulty.serve() as elsewhere:
        elsewhere.kept = filled.kept
        filled.fail("GET", "/", faulty.redirect(elsewhere.url))
        (warning,) = check_built_without(tmp_path, filled)
        assert "301" in warning
        assert elsewhere.log == []


def test_a_refused_connection_is_told_once_and_costs_two_attempts(tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}"
    machine = Machine(tmp_path / "a", url, write=True)
    assert machine.run() == ["words", "count", "shout"]
    machine.run(unit="pieces")
    assert machine.warnings == [f"remote {url}: connection refused; going on without it"]


def test_after_two_failures_in_a_row_the_remote_is_not_asked_any_more(tmp_path: Path, filled: faulty.Faulty) -> None:
    filled.fail("GET", "/", faulty.status(500))
    machine = Machine(tmp_path / "b", filled.url)
    machine.run()
    machine.run(unit="pieces")
    assert len(filled.log) == 2
    assert machine.warnings == [f"remote {filled.url}: 500 Internal Server Error; going on without it"]


def test_a_failure_between_good_answers_is_forgiven(tmp_path: Path, filled: faulty.Faulty) -> None:
    machine = Machine(tmp_path / "b", filled.url)
    build = machine.build()
    key = build.key("words") or ""
    filled.fail("GET", f"/ac/{key}", faulty.status(500))
    assert machine.run() == ["words"]
    assert machine.warnings == []


def test_a_wrong_entry_is_put_aside_and_not_asked_for_again(tmp_path: Path, filled: faulty.Faulty) -> None:
    filled.fail("GET", "/ac/", faulty.other_key)
    machine = Machine(tmp_path / "b", filled.url)
    machine.run()
    machine.build().run("shout")
    asked = filled.asked("GET", "/ac/")
    assert len(asked) == len(set(asked)) == 3
    aside = {path.name: path.read_bytes() for path in (machine.store.root / "quarantine").iterdir()}
    assert len(aside) == 3
    assert set(aside.values()) <= set(filled.kept.values())
    (warning,) = machine.warnings
    assert "the entry of another key" in warning


@pytest.mark.parametrize("fault", ["404", "flip"])
def test_what_the_remote_lost_is_built_here_and_sent_again(fault: str, tmp_path: Path, filled: faulty.Faulty) -> None:
    blob = f"/cas/{hashlib.sha256(OUTPUT.encode()).hexdigest()}"
    good = filled.kept[blob]
    if fault == "404":
        del filled.kept[blob]
    else:
        filled.kept[blob] = bytes(len(good))
    machine = Machine(tmp_path / "b", filled.url, write=True)
    assert machine.run() == ["shout"]
    assert machine.output == OUTPUT
    assert filled.kept[blob] == good
    assert filled.asked("PUT") == [blob]
    key = machine.build().key("shout") or ""
    entry = machine.store.lookup(key)
    assert entry is not None
    assert not entry.remote


def test_a_blob_that_is_too_large_for_this_disk_is_not_fetched(tmp_path: Path, filled: faulty.Faulty) -> None:
    filled.fail("GET", "/ac/", faulty.HUGE)
    warnings = check_built_without(tmp_path, filled)
    assert filled.asked("GET", "/cas/") == []
    assert any("room" in warning for warning in warnings)


# ---- writing


def _random(job: Job[toy.Words]) -> None:
    (job.output / "bytes").write_bytes(os.urandom(8))


RANDOM = {"random": Step("random", (), toy.Words, _random)}


def test_the_first_outputs_of_a_key_stay_and_the_difference_is_told(tmp_path: Path, server: faulty.Faulty) -> None:
    first, second = (Machine(tmp_path / name, server.url, write=True) for name in "ab")
    builds = [machine.build(graph=RANDOM) for machine in (first, second)]
    assert [build.key("random") is None or build.found("random") for build in builds] == [None, None]  # both start now
    kept = {}
    for build in builds:
        assert build.run("random")
        build.close()
        kept = kept or dict(server.kept)
    assert {path: server.kept[path] for path in kept} == kept
    assert first.warnings == []
    assert len(server.asked("PUT", "/ac/")) == 1
    (warning,) = second.warnings
    assert "other outputs of step 'random'" in warning


def test_the_end_of_a_build_waits_only_so_long_for_what_is_being_sent(tmp_path: Path, server: faulty.Faulty) -> None:
    server.fail("PUT", "/", faulty.stall)
    machine = Machine(tmp_path / "a", server.url, write=True, wait_s=0)
    assert machine.run() == ["words", "count", "shout"]
    (warning,) = machine.warnings
    assert "results not sent: 3; `anfbuild cache push` sends them" in warning


def test_an_interrupted_build_does_not_wait(tmp_path: Path, server: faulty.Faulty) -> None:
    server.fail("PUT", "/", faulty.stall)
    machine = Machine(tmp_path / "a", server.url, write=True)
    build = machine.build()
    with contextlib.suppress(KeyboardInterrupt):
        build.run("count")
    build.close(wait=False)
    assert not server.ended.is_set()
    (warning,) = machine.warnings
    assert "not sent" in warning


# ---- private


def test_what_is_private_is_neither_asked_for_nor_sent(tmp_path: Path, filled: faulty.Faulty) -> None:
    secret = Machine(tmp_path / "b", filled.url, write=True)
    assert secret.run(private=("count",)) == ["count", "shout"]  # though the remote has them, from who may know them
    build = secret.build(private=("count",))
    hidden = {build.key("count"), build.key("shout")}
    for name in ("count", "shout"):
        hidden |= {sha for sha, _ in build.result(name).files.values()}
    for path in (secret.store.root / "cas").rglob("*"):  # lost bytes of theirs are not asked for either
        if path.name in hidden:
            path.unlink()
    assert secret.run(private=("count",)) == ["count", "shout"] or secret.output == OUTPUT
    assert filled.log
    assert not {asked.path.rpartition("/")[2] for asked in filled.log} & hidden


# ---- kinds


def test_a_folder_that_is_not_there_is_a_dead_remote(tmp_path: Path) -> None:
    machine = Machine(tmp_path / "a", str(tmp_path / "share"), write=True)
    assert machine.run() == ["words", "count", "shout"]
    assert machine.warnings == [f"remote {tmp_path / 'share'}: there is no such folder; going on without it"]
    assert not (tmp_path / "share").exists()


@pytest.mark.parametrize("damage", ["cut", "fifo", "folder"])
def test_damage_in_a_folder_is_survived(damage: str, tmp_path: Path) -> None:
    (tmp_path / "share").mkdir()
    Machine(tmp_path / "a", str(tmp_path / "share"), write=True).run()
    assert not list((tmp_path / "share").rglob("*.partial"))
    for path in [path for path in (tmp_path / "share").rglob("*") if path.is_file()]:
        data = path.read_bytes()
        path.unlink()
        if damage == "cut":
            path.write_bytes(data[:-1])
        elif damage == "fifo":
            os.mkfifo(path)
        else:
            path.mkdir()
    machine = Machine(tmp_path / "b", str(tmp_path / "share"), write=True)
    machine.run()
    assert machine.output == OUTPUT
    machine.check_sound()


def test_a_proxy_of_the_environment_is_used_unless_the_host_is_excepted(
    server: faulty.Faulty, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", server.url.replace("http://", "http://me:secret@"))
    assert connect(Settings("http://far.invalid/x"), {}).get_action("k") is None
    assert [asked.path for asked in server.log] == ["http://far.invalid/x/ac/k"]
    assert server.log[0].headers["proxy-authorization"] == "Basic bWU6c2VjcmV0"
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    assert connect(Settings(server.url), {}).get_action("k") is None
    assert server.log[1].path == "/ac/k"


def test_a_proxy_that_is_none_is_an_error_without_its_password(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "gopher://me:secret@host")
    with pytest.raises(RemoteError, match="proxy") as error:
        connect(Settings("http://far.invalid"), {}).get_action("k")
    assert "secret" not in str(error.value)


def test_the_token_is_sent_with_each_request(server: faulty.Faulty) -> None:
    asked = connect(Settings(server.url), {"ANFBUILD_REMOTE_TOKEN": "t0k3n"})
    asked.get_action("k")
    asked.has_blob("b", 1)
    assert {entry.headers["Authorization"] for entry in server.log} == {"Bearer t0k3n"}


def test_a_remote_that_never_answers_is_given_up() -> None:
    class Hanging(FolderRemote):
        def get_action(self, key: str) -> bytes | None:  # noqa: ARG002
            threading.Event().wait(5)
            return None

    with pytest.raises(RemoteError, match="no answer within"):
        Bounded("x", lambda: Hanging(Path()), limit_s=0.05).get_action("k")
