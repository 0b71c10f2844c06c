"""Twenty events of the crash campaign: whatever breaks a build off, the store is sound and the next build the same."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

CRASH = Path(__file__).parents[2] / "benchmarks" / "crash.py"


@pytest.mark.skipif(sys.platform != "linux", reason="events are made of Linux's signals, mounts and /proc")
def test_a_build_that_breaks_off_harms_nothing(tmp_path: Path) -> None:
    spec = importlib.util.spec_from_file_location("crash", CRASH)
    assert spec is not None
    assert spec.loader is not None
    crash = sys.modules["crash"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(crash)
    rows, _ = crash.campaign(20, seed=3, root=tmp_path)
    assert [fault for row in rows.values() for fault in row.faults] == []
    assert sum(row.early for row in rows.values()) > 0
