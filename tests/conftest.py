"""What all tests share: the choice of the few that need more than the package, and that none is judged by time."""

from __future__ import annotations

import pytest
from hypothesis import settings

# The first example may be the one that imports a library.
settings.register_profile("anfbuild", deadline=None)
settings.load_profile("anfbuild")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--full", action="store_true", help="also run the tests that need heavy extras, real servers or clusters"
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--full"):
        return
    skip = pytest.mark.skip(reason="needs a real server, a cluster, a heavy extra, downloads or minutes: --full")
    for item in items:
        if item.get_closest_marker("full"):
            item.add_marker(skip)
