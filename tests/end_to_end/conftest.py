"""Projects over a store that the whole session shares, and over stores of their own."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from projects import SMALL, Project, write_tiny


@pytest.fixture(scope="session")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """$ANFBUILD_TEST_STORE, so that what was fetched once is there, or a new folder."""
    given = os.environ.get("ANFBUILD_TEST_STORE")
    return Path(given).absolute() if given else tmp_path_factory.mktemp("store")


@pytest.fixture
def tiny(tmp_path: Path, store: Path) -> Project:
    """A tiny project over the session's store."""
    write_tiny(tmp_path / "project")
    return Project(tmp_path / "project", store)


@pytest.fixture
def alone(tmp_path: Path) -> Project:
    """A tiny project with an empty store of its own."""
    write_tiny(tmp_path / "project")
    return Project(tmp_path / "project", tmp_path / "store")


@pytest.fixture(scope="session")
def detector(tmp_path_factory: pytest.TempPathFactory, store: Path) -> Project:
    """A project in which the real detector was built, small."""
    project = Project(tmp_path_factory.mktemp("detector"), store)
    ran = project.run(*SMALL)
    assert ran.code == 0, ran.err
    return project
