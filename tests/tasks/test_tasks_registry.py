from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from anfbuild import tasks
from anfbuild.errors import RecipeError

OPTIONS = {"threshold": 0.3, "box_threshold": 0.5, "unclip_ratio": 1.6, "min_size": 3, "iou": 0.5}


def test_gives_a_task() -> None:
    task = tasks.get("text_detection", OPTIONS)
    assert task.metric == "hmean"
    assert task.higher_is_better


def test_checking_imports_no_numpy() -> None:
    code = "import sys; from anfbuild import tasks; tasks.check('text_detection', {}); sys.exit('numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize(
    ("kind", "options", "message"),
    [
        ("text_detectoin", {}, "did you mean 'text_detection'"),
        ("text_detection", {"thresold": 0.3}, "did you mean 'threshold'"),
        ("text_detection", {"threshold": "0.3"}, "must be a number"),
        ("text_detection", {"threshold": True}, "must be a number"),
        ("text_detection", {"threshold": None}, "must be a number"),
        ("text_detection", {"iou": float("nan")}, "must be a number"),
        ("text_detection", {"min_size": -1}, "between 0 and inf"),
        ("text_detection", {"box_threshold": 1.5}, "between 0 and 1"),
    ],
)
def test_refuses_what_cannot_be(kind: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(RecipeError, match=message):
        tasks.check(kind, options)
    with pytest.raises(RecipeError, match=message):
        tasks.get(kind, options)
