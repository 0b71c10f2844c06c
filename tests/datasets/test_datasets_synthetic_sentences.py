from __future__ import annotations

from pathlib import Path

import pytest

from anfbuild import datasets
from anfbuild.errors import StepError


def texts(folder: Path, split: str = "evaluation", samples: int = 8, seed: int = 0) -> dict[str, str]:
    datasets.write("synthetic_sentences", folder=folder, split=split, samples=samples, seed=seed)
    return {sample.name: str(sample.content) for sample in datasets.read(folder)}


def test_every_second_sample_asks_for_the_one_before(tmp_path: Path) -> None:
    truths = datasets.write("synthetic_sentences", folder=tmp_path, split="evaluation", samples=4, seed=0)
    assert truths == {
        "0000": {"passage": "0000"},
        "0001": {"relevant": ["0000"]},
        "0002": {"passage": "0002"},
        "0003": {"relevant": ["0002"]},
    }
    found = [str(sample.content) for sample in datasets.read(tmp_path)]
    assert [text.endswith("?") for text in found] == [False, True, False, True]
    assert not any("{" in text for text in found)


def test_splits_share_no_sentence_and_none_comes_twice(tmp_path: Path) -> None:
    splits = [list(texts(tmp_path / split, split, samples=1152).values()) for split in datasets.SPLITS]
    assert len(set(splits[0]) | set(splits[1])) == 2 * 1152


def test_seed_counts_and_number_of_samples_does_not(tmp_path: Path) -> None:
    few, many = texts(tmp_path / "few", samples=4), texts(tmp_path / "many", samples=9)
    assert all(many[name] == text for name, text in few.items())
    assert texts(tmp_path / "other", samples=4, seed=1) != few


def test_more_than_there_are_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StepError, match="1152 sentences for evaluation, 1153 wanted"):
        texts(tmp_path, samples=1153)


def test_a_damaged_text_is_named(tmp_path: Path) -> None:
    texts(tmp_path)
    (tmp_path / "0000.txt").write_bytes(b"\xff")
    with pytest.raises(StepError, match=r"0000\.txt cannot be read as a text"):
        list(datasets.read(tmp_path))
