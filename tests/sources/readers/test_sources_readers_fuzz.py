"""Whatever is done to a model file, it is converted or refused with an error that is meant for the user."""

from __future__ import annotations

from pathlib import Path

import pytest
from mutations import SEEDS, mutant

from anfbuild import graph
from anfbuild.errors import AnfbuildError
from anfbuild.sources.readers import read

SHAPES = {"onnx": {"x": [1, 3, 8, 8]}, "tflite": {"x": [1, 4, 6, 3]}}


def convert(path: Path, kind: str) -> None:
    graph.clean(read(path), SHAPES[kind])


@pytest.mark.parametrize("kind", SEEDS)
def test_the_models_themselves_are_sound(tmp_path: Path, kind: str) -> None:
    path = tmp_path / f"m.{kind}"
    path.write_bytes(SEEDS[kind])
    convert(path, kind)


def test_a_hundred_mutants_are_converted_or_refused(tmp_path: Path) -> None:
    refused = 0
    for seed in range(100):
        kind, data = mutant(seed)
        path = tmp_path / f"m.{kind}"
        path.write_bytes(data)
        try:
            convert(path, kind)
        except AnfbuildError:
            refused += 1
        except Exception as error:
            pytest.fail(f"mutant {seed} ({kind}): {type(error).__name__}: {error}")
    assert 30 < refused < 100
