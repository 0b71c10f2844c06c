"""Small and read-only file systems for tests, where this user may mount them."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def mounted(folder: Path, options: str) -> Iterator[Path]:
    """`folder` as a file system in memory with mount's `options`; the test is skipped where that is not allowed."""
    folder.mkdir(parents=True, exist_ok=True)
    _mount("-t", "tmpfs", "-o", options, "tmpfs", str(folder))
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)


@contextmanager
def read_only(folder: Path) -> Iterator[Path]:
    """`folder` read-only for all, superusers too; the test is skipped where that is not allowed."""
    _mount("--bind", str(folder), str(folder))
    try:
        _mount("-o", "remount,bind,ro", str(folder))
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def _mount(*arguments: str) -> None:
    if shutil.which("mount") is None:
        pytest.skip("there is no mount here")
    ran = subprocess.run(["mount", *arguments], capture_output=True, text=True, check=False)
    if ran.returncode:
        pytest.skip(f"this user cannot mount: {ran.stderr.strip()}")
