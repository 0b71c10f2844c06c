"""Two machines and a remote between them, through the command line."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import faulty
import pytest
from projects import Project, write_tiny

TOKEN = "t0k3n-that-nobody-may-see"


@pytest.fixture
def server() -> Iterator[faulty.Faulty]:
    with faulty.serve() as served:
        yield served


def machine(root: Path) -> Project:
    """A tiny project with a store of its own."""
    write_tiny(root / "project")
    return Project(root / "project", root / "store")


def settings(server: faulty.Faulty, *, write: bool = False) -> dict[str, str]:
    return {
        "ANFBUILD_REMOTE": server.url,
        "ANFBUILD_REMOTE_WRITE": "1" if write else "0",
        "ANFBUILD_REMOTE_TOKEN": TOKEN,
        "NO_PROXY": "127.0.0.1",
        "no_proxy": "127.0.0.1",
    }


def outputs(project: Project) -> dict[str, bytes]:
    latest = project.folder / "artifacts" / "builds" / "mine" / "latest"
    return {path.name: path.read_bytes() for path in latest.iterdir() if path.name != "run.json"}


def test_what_one_machine_built_another_has(tmp_path: Path, server: faulty.Faulty) -> None:
    public = ("+recipe=mine", "dataset.private=false")
    first, second, third = (machine(tmp_path / name) for name in ("first", "second", "third"))
    built = first.run(*public, "--json", **settings(server, write=True))
    assert built.code == 0, built.err
    assert {step["source"] for step in built.document["steps"]} == {"built"}
    taken = second.run(*public, **settings(server))
    assert taken.code == 0, taken.err
    assert "report     cached (remote)" in taken.out
    assert "..." not in taken.out
    assert outputs(second) == outputs(first)
    assert "mine.anf" in outputs(second)
    pulled = third.run("cache", "pull", *public, "--json", **settings(server))
    assert pulled.code == 0, pulled.err
    assert {step["state"] for step in pulled.document["steps"]} == {"pulled"}
    assert third.run(*public, "--json").steps_run == []
    assert outputs(third) == outputs(first)
    assert {asked.headers["Authorization"] for asked in server.log} == {f"Bearer {TOKEN}"}
    for ran in (built, taken, pulled):
        assert TOKEN not in ran.out + ran.err
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert not [path for path in files if TOKEN.encode() in path.read_bytes()]
    told = [path for path in files if server.url.encode() in path.read_bytes()]
    assert told == []  # where it came from is nobody's affair either


@pytest.mark.parametrize("part", ["dataset", "source"])
def test_what_is_private_is_never_asked_for(part: str, tmp_path: Path, server: faulty.Faulty) -> None:
    project = machine(tmp_path)
    private = [f"{name}.private={str(name == part).lower()}" for name in ("dataset", "source")]
    ran = project.run("+recipe=mine", "goal=baseline", *private, **settings(server, write=True))
    assert ran.code == 0, ran.err
    named: dict[bool, set[str]] = {True: set(), False: set()}
    for path in (project.store / "ac").iterdir():
        entry = json.loads(path.read_text())
        files = entry["result"]["outputFiles"]
        named[entry["private"]] |= {path.stem, *(file["digest"]["hash"] for file in files)}
    assert min(len(names) for names in named.values()) > 2
    asked = {asked.path.rpartition("/")[2] for asked in server.log}
    assert asked == named[False]  # all that is not private, and nothing else


def test_a_remote_that_fails_is_told_once_by_a_sweep_too(tmp_path: Path, server: faulty.Faulty) -> None:
    server.fail("GET", "/", faulty.status(500))
    project = machine(tmp_path)
    ran = project.run("-m", "+recipe=mine", "goal=fetch,convert", "--push", **settings(server))
    assert ran.code == 0, ran.err
    assert len([line for line in ran.err.splitlines() if "remote" in line]) == 1
    assert len(server.log) <= 4  # two questions, and two attempts to send
    assert not [path for path in project.folder.rglob("*") if path.is_file() and TOKEN.encode() in path.read_bytes()]
