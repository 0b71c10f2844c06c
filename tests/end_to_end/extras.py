"""What the `full` tests need beside the package."""

from __future__ import annotations

import importlib
import os
from typing import Any

import pytest


def missing(what: str) -> None:
    """Skip, unless all has to run."""
    if os.environ.get("ANFBUILD_TEST_ALL") == "1":
        pytest.fail(f"{what} is not installed")
    pytest.skip(f"{what} is not installed")


def needed(module: str) -> Any:
    """The module, or `missing`."""
    try:
        return importlib.import_module(module)
    except ImportError:
        return missing(module)
