"""A remembered recipe is the one that composing again would give, and anything that could change it is noticed."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import anfbuild
from anfbuild.errors import RecipeError
from anfbuild.recipe import compose, memory


@pytest.fixture
def composed(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, ...]]:
    """The overrides of each recipe that was really composed."""
    calls: list[tuple[str, ...]] = []
    real = memory._compose

    def note(overrides: list[str], project: Path) -> memory.Recipe:
        calls.append(tuple(overrides))
        return real(overrides, project)

    monkeypatch.setattr(memory, "_compose", note)
    return calls


def test_what_was_composed_is_remembered(project: Path, composed: list[tuple[str, ...]]) -> None:
    first, second = (compose(["+recipe=plain", "dataset.samples=3"], project, project / "memo") for _ in range(2))
    assert len(composed) == 1
    assert second.name == first.name
    assert list(second.config.items()) == list(first.config.items())
    assert second.place("dataset.samples") == first.place("dataset.samples") == "command line"


def test_an_edit_anywhere_is_noticed(
    project: Path, composed: list[tuple[str, ...]], write_recipe: Callable[..., None]
) -> None:
    write_recipe("evaluation: {samples: 4}\n")

    def samples() -> tuple[int, int]:
        config = compose(["+recipe=mine"], project, project / "memo").config
        return config["evaluation"]["samples"], config["dataset"]["samples"]

    assert samples() == (4, 8)
    write_recipe("evaluation: {samples: 5}\n")
    assert samples() == (5, 8)
    group = project / "conf" / "dataset" / "made.yaml"
    group.write_text(group.read_text().replace("samples: 8", "samples: 9"))
    assert samples() == (5, 9)
    assert len(composed) == 3


def test_other_overrides_are_another_recipe(project: Path, composed: list[tuple[str, ...]]) -> None:
    for target, name in (("sm8650", "One"), ("made", "Two"), ("sm8650", "One")):
        assert (
            compose(["+recipe=plain", f"target={target}"], project, project / "memo").config["target"]["name"] == name
        )
    assert len(composed) == 2


def test_a_damaged_memory_is_not_believed(project: Path, composed: list[tuple[str, ...]]) -> None:
    first = compose(["+recipe=plain"], project, project / "memo")
    (file,) = (project / "memo").iterdir()
    file.write_bytes(file.read_bytes().replace(b'"samples": 8', b'"samples": 9'))
    assert compose(["+recipe=plain"], project, project / "memo").config == first.config
    assert len(composed) == 2


def test_a_recipe_that_is_wrong_stays_wrong(project: Path) -> None:
    for _ in range(2):
        with pytest.raises(RecipeError, match="samples"):
            compose(["+recipe=plain", "dataset.sample=3"], project, project / "memo")


def test_linked_folders_are_composed_each_time(project: Path, composed: list[tuple[str, ...]]) -> None:
    (project / "recipes" / "linked").symlink_to(project / "conf", target_is_directory=True)
    for _ in range(2):
        compose(["+recipe=plain"], project, project / "memo")
    assert len(composed) == 2


def test_a_remembered_recipe_needs_no_hydra(project: Path) -> None:
    compose(["+recipe=plain"], project, project / "memo")
    script = (
        "import sys; from pathlib import Path; from anfbuild.recipe import compose;"
        "print(compose(['+recipe=plain'], Path.cwd(), Path('memo')).name, 'hydra' in sys.modules)"
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(anfbuild.__file__).parents[1])}
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["plain", "False"]


@pytest.mark.parametrize("other", [[1], {}, None, "model", {"name": "plain", "model": 1}])
def test_what_is_no_recipe_is_not_remembered(project: Path, composed: list[tuple[str, ...]], other: object) -> None:
    first = compose(["+recipe=plain"], project, project / "memo")
    (file,) = (project / "memo").iterdir()
    if isinstance(other, dict) and other:
        other = {**first.config, **other}
    text = json.dumps(other).encode()
    file.write_bytes(hashlib.sha256(text).hexdigest().encode() + b"\n" + text)
    assert compose(["+recipe=plain"], project, project / "memo").config == first.config
    assert len(composed) == 2


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir])
def test_something_else_in_the_place_of_a_memory(
    project: Path, composed: list[tuple[str, ...]], make: Callable[[Path], None]
) -> None:
    first = compose(["+recipe=plain"], project, project / "memo")
    (file,) = (project / "memo").iterdir()
    file.unlink()
    make(file)
    assert compose(["+recipe=plain"], project, project / "memo").config == first.config
    assert len(composed) == 2
    assert [path.name for path in (project / "memo").iterdir()] == [file.name]


def test_an_edit_while_a_recipe_is_composed_is_not_remembered(
    project: Path, write_recipe: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    real = memory._compose

    def compose_late(overrides: list[str], folder: Path) -> memory.Recipe:
        write_recipe("evaluation: {samples: 5}\n")  # after the files' bytes were taken for the key
        return real(overrides, folder)

    write_recipe("evaluation: {samples: 4}\n")
    monkeypatch.setattr(memory, "_compose", compose_late)
    assert compose(["+recipe=mine"], project, project / "memo").config["evaluation"]["samples"] == 5
    monkeypatch.setattr(memory, "_compose", real)
    write_recipe("evaluation: {samples: 4}\n")
    assert compose(["+recipe=mine"], project, project / "memo").config["evaluation"]["samples"] == 4
