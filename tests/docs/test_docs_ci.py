"""The CI files of docs/ci.md: they parse, and their anfbuild commands do what the page says."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml
from projects import Project, write_tiny

PAGE = Path(__file__).parents[2] / "docs" / "ci.md"


def blocks() -> list[Any]:
    """The YAML documents of the page that are whole files, in their order: GitHub's, GitLab's."""
    text = PAGE.read_text(encoding="utf-8")
    return [yaml.safe_load(block) for block in re.findall(r"```yaml\n(# \..*?)```", text, re.DOTALL)]


def github_commands() -> list[str]:
    steps = blocks()[0]["jobs"]["build"]["steps"]
    return [step["run"] for step in steps if step.get("run", "").startswith("anfbuild")]


def gitlab_commands() -> list[str]:
    job = blocks()[1]["models"]
    return [line for line in [*job["script"], *job["after_script"]] if line.startswith("anfbuild")]


@pytest.fixture
def mine(tmp_path: Path) -> Project:
    """The tiny project with its store where CI keeps it, locked."""
    write_tiny(tmp_path)
    project = Project(tmp_path, tmp_path / "artifacts" / "store")
    ran = project.run("+recipe=mine", "--lock")
    assert ran.code == 0, ran.err
    return project


def test_the_store_is_kept_and_the_report_uploaded_also_after_a_failure() -> None:
    steps = blocks()[0]["jobs"]["build"]["steps"]
    used = {step["uses"].partition("@")[0]: step for step in steps if "uses" in step}
    assert used["actions/cache/restore"]["with"]["path"] == "artifacts/store"
    for name in ("actions/cache/save", "actions/upload-artifact"):
        assert used[name]["if"] == "always()"
    job = blocks()[1]["models"]
    assert job["cache"]["paths"] == ["artifacts/store"]
    assert job["cache"]["when"] == job["artifacts"]["when"] == "always"


@pytest.mark.parametrize("commands", [github_commands, gitlab_commands])
def test_the_commands_hold_and_a_missed_gate_fails_the_job(mine: Project, commands: Any) -> None:
    build, clear = (shlex.split(line)[1:] for line in commands())
    ran = mine.run(*build)
    assert ran.code == 0, ran.err
    assert (mine.folder / "junit.xml").read_text(encoding="utf-8").startswith("<?xml")
    assert mine.run(*clear).code == 0

    recipe = mine.folder / "recipes" / "mine.yaml"
    recipe.write_text(recipe.read_text().replace("htp_macs: {min: 0.0}", "partitions: {max: 0}"))
    assert mine.run(*build).code == 2  # the recipe has left its lock
    assert mine.run("+recipe=mine", "--junit", "junit.xml").code == 3
    assert "<failure" in (mine.folder / "junit.xml").read_text(encoding="utf-8")


def test_all_recipes_at_once(mine: Project) -> None:
    (line,) = re.findall(r"`anfbuild (-m [^`]*)`", PAGE.read_text(encoding="utf-8"))
    recipes = mine.folder / "recipes"
    (recipes / "app").mkdir()
    shutil.copy(recipes / "mine.yaml", recipes / "app")
    assert mine.run("+recipe=app/mine", "--lock").code == 0
    ran = mine.run(*shlex.split(line))
    assert ran.code == 0, ran.err + ran.out
