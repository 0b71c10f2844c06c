"""What `why` says, and that it looks before it composes."""

from __future__ import annotations

import json
from typing import Any

import pytest

from anfbuild.cli import main
from anfbuild.cli.verbs.why import difference, words
from anfbuild.engine.why import Earlier, Explanation, Reason

EARLIER = Earlier("det", "0123456789abcdef", 0.0, 0.84, {})
CONTENT = {"suffix": "", "sha256": "0"}
SAMPLES = Reason("dataset", "changed", "dataset.samples", 32, 64)


def explanation(up_to_date: bool | None, *reasons: Reason, waits: tuple[str, ...] = (), **more: Any) -> Explanation:
    return Explanation("calibrate", None, up_to_date, reasons, waits, **{"against": EARLIER, **more})


@pytest.mark.parametrize(
    ("found", "line"),
    [
        (explanation(False, SAMPLES), "calibrate reruns: dataset.samples 32 -> 64"),
        (
            explanation(None, SAMPLES, waits=("dataset",)),
            "calibrate reruns if dataset's output changes: dataset.samples 32 -> 64",
        ),
        (
            explanation(None, SAMPLES, waits=("convert", "dataset")),
            "calibrate reruns if the output of convert, dataset changes: dataset.samples 32 -> 64",
        ),
        (
            explanation(False, Reason("calibrate", "never"), against=None),
            "calibrate runs: no earlier build of it is in the store",
        ),
        (
            explanation(False, *(Reason(step, "tool", "onnx", "1.22", "1.23") for step in ("convert", "quantize"))),
            "calibrate reruns: onnx 1.22 -> 1.23",
        ),
    ],
)
def test_the_first_line(found: Explanation, line: str) -> None:
    assert list(words(found)) == [line]


def test_what_is_up_to_date_names_its_result() -> None:
    (line,) = words(explanation(True))
    assert line.startswith("calibrate is up to date: made 19")
    assert line.endswith("in 0.8 s by recipe det, key 0123456789ab")


def test_many_differences_are_counted() -> None:
    (line,) = words(explanation(False, *(Reason("a", "changed", f"x.{n}", 0, n) for n in range(1, 6))))
    assert line == "calibrate reruns: x.1 0 -> 1; x.2 0 -> 2; x.3 0 -> 3; and 2 more"


@pytest.mark.parametrize(
    ("reason", "text"),
    [
        (
            Reason("a", "content", "source.path", CONTENT, {**CONTENT, "sha256": "1"}),
            "source.path: other bytes",
        ),
        (Reason("a", "content", "source.path", None, CONTENT), "source.path: given now"),
        (Reason("a", "content", "source.path", CONTENT, {**CONTENT, "suffix": ".zip"}), "source.path:  -> .zip"),
        (
            Reason("a", "code", "graph/passes/fold_constants.py", "0", "1"),
            "graph/passes/fold_constants.py: code changed",
        ),
        (Reason("a", "code", "graph/new.py", None, "1"), "graph/new.py: new code"),
        (Reason("a", "tool", "onnx", "1.22", None), "onnx 1.22 -> not used"),
        (Reason("a", "added", "gates.x.max", None, 1), "gates.x.max 1 is new"),
        (Reason("a", "lost"), "a's result is no longer in the store"),
        (Reason("a", "changed", "t", "x" * 99, ""), f't {"x" * 47}… -> ""'),
    ],
)
def test_a_difference_in_words(reason: Reason, text: str) -> None:
    assert difference(reason) == text


@pytest.mark.usefixtures("project")
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["why", "calibrat", "target=nope"], "did you mean 'calibrate'?"),
        (["why", "+recipe=plain"], "takes 1 word(s), not 0"),
        (["why", "report", "+recipe=plain", "-m"], "takes no -m"),
        (["why", "report", "+recipe=plain", "dataset.samples=1,2"], "several values"),
    ],
)
def test_what_cannot_be_explained(capsys: pytest.CaptureFixture[str], arguments: list[str], message: str) -> None:
    assert main([*arguments, "--json"]) == 2
    captured = capsys.readouterr()
    assert message in captured.err
    assert json.loads(captured.out)["exit_code"] == 2
