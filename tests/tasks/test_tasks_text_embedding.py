from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from anfbuild import tasks
from anfbuild.errors import RecipeError, StepError

PIECES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "a", "b"]
SPEC: Any = {"shape": [1, 5], "dtype": "int64"}


def task() -> tasks.Task:
    return tasks.get("text_embedding", {}, PIECES)


def vectors(*rows: list[float]) -> list[dict[str, Any]]:
    return [{"vector": row} for row in rows]


def test_a_text_is_padded() -> None:
    specs = {"input_ids": SPEC, "attention_mask": {**SPEC, "dtype": "int32"}, "token_type_ids": SPEC}
    feeds = task().feeds("a b", specs)
    assert {name: (array.tolist(), array.dtype.name) for name, array in feeds.items()} == {
        "input_ids": ([[2, 4, 5, 3, 0]], "int64"),
        "attention_mask": ([[1, 1, 1, 1, 0]], "int32"),
        "token_type_ids": ([[0, 0, 0, 0, 0]], "int64"),
    }
    assert task().size("a b") == (1, 4)


def test_a_long_text_is_cut_before_its_end() -> None:
    feeds = task().feeds("a a b b b", {"input_ids": SPEC, "attention_mask": SPEC})
    assert feeds["input_ids"].tolist() == [[2, 4, 4, 5, 3]]
    assert feeds["attention_mask"].all()


def test_the_mean_leaves_padding_out() -> None:
    rows = np.array([[[3, 0], [3, 8], [99, 99]]], np.float32)
    assert task().decode({"y": rows}, (1, 2)) == {"vector": [0.6, 0.8]}
    assert task().decode({"y": rows}, (1, 70)) == task().decode({"y": rows.mean(axis=1)}, (1, 2))
    assert task().decode({"y": np.zeros((1, 2), np.float32)}, (1, 2)) == {"vector": [0.0, 0.0]}


def test_a_query_is_right_where_its_passage_is_nearest() -> None:
    truths = [{"passage": "x"}, {"relevant": ["x"]}, {"passage": "y"}, {"relevant": ["y"]}, {"relevant": ["gone"]}]
    score = task().score(vectors([1, 0], [0.8, 0.6], [0.6, 0.8], [1, 0], [1, 0]), truths)
    assert score.counts.tolist() == [[0, 0], [0, 1], [0, 0], [0, 1], [0, 0]]
    score = task().score(vectors([1, 0], [0.8, 0.6], [0, 1], [0, 1], [1, 0]), truths)
    assert score.value == 1
    assert score.parts == {"cosine": pytest.approx(0.9)}
    assert task().value(np.array([0, 0])) == 1


def test_the_float_models_answers_judge_where_there_is_no_truth() -> None:
    floats = vectors([1, 0], [0.8, 0.6], [0, 1])
    assert task().score(floats, floats).value == 1
    score = task().score(vectors([1, 0], [0.6, 0.8], [0, 1]), floats)
    assert score.counts.tolist() == [[1, 1], [0, 1], [1, 1]]  # the second text is nearer to the third now
    assert score.parts == {"cosine": pytest.approx((1 + 0.96 + 1) / 3)}
    with pytest.raises(StepError, match="no nearest other"):
        task().score(floats[:1], floats[:1])


def test_without_a_query_nothing_is_scored() -> None:
    with pytest.raises(StepError, match="nothing can be scored"):
        task().score(vectors([1, 0]), [{"passage": "x"}])


@pytest.mark.parametrize("truth", [{}, {"passage": 1}, {"passage": "x", "relevant": ["x"]}, {"relevant": [1]}])
def test_names_the_sample_that_is_neither(truth: dict[str, Any]) -> None:
    with pytest.raises(StepError, match="sample S is neither a passage nor a query"):
        task().check_truth(truth, "S")


@pytest.mark.parametrize(
    ("outputs", "message"),
    [
        ({"y": np.zeros((1, 2)), "z": np.zeros((1, 2))}, "has 2"),
        ({"y": np.zeros(3)}, "is neither"),
        ({"y": np.full((1, 2), np.inf)}, "not finite"),
    ],
)
def test_refuses_outputs_that_are_no_embedding(outputs: Any, message: str) -> None:
    with pytest.raises(StepError, match=message):
        task().decode(outputs, (1, 2))


@pytest.mark.parametrize(
    ("name", "changes", "message"),
    [
        ("x", {}, "a text makes no input 'x'"),
        ("input_ids", {"dtype": "float32"}, "no float32"),
        ("input_ids", {"shape": [1, 3, 4, 4]}, r"a text fills \[1, tokens\]"),
        ("input_ids", {"shape": [2, 5]}, "a text fills"),
        ("input_ids", {"shape": [1, 2]}, "a text fills"),
    ],
)
def test_inputs_that_no_text_fills_are_refused_beforehand(name: str, changes: Any, message: str) -> None:
    with pytest.raises(RecipeError, match=message) as refused:
        tasks.check_inputs("text_embedding", {name: {**SPEC, **changes}})
    assert str(refused.value.where).startswith(f"model.inputs.{name}")
    tasks.check_inputs("text_embedding", {"input_ids": SPEC})


def test_an_image_is_no_text() -> None:
    with pytest.raises(StepError, match="wants texts"):
        task().feeds(np.zeros((2, 2, 3), np.uint8), {"input_ids": SPEC})
