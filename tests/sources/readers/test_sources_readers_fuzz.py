"""Whatever is done to a model file, it is converted or refused with an error that is meant for the user."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from extras import needed
from mutations import ALONE, convert, mutant, sound

from anfbuild.errors import AnfbuildError


@pytest.mark.parametrize("kind", ALONE)
def test_the_models_themselves_are_sound(tmp_path: Path, kind: str) -> None:
    path = tmp_path / f"m.{kind}"
    path.write_bytes(sound(kind))
    convert(path, kind)


def refused(tmp_path: Path, count: int, kinds: Sequence[str]) -> int:
    """How many of the first mutants are refused; the rest is converted."""
    found = 0
    for seed in range(count):
        kind, data = mutant(seed, kinds)
        path = tmp_path / f"m.{kind}"
        path.write_bytes(data)
        try:
            convert(path, kind)
        except AnfbuildError:
            found += 1
        except Exception as error:
            pytest.fail(f"mutant {seed} ({kind}): {type(error).__name__}: {error}")
    return found


def test_a_hundred_mutants_are_converted_or_refused(tmp_path: Path) -> None:
    assert 30 < refused(tmp_path, 100, ("onnx", "tflite")) < 100


def test_two_hundred_archives_are_unpacked_or_refused(tmp_path: Path) -> None:
    assert 30 < refused(tmp_path, 200, ("zip", "tar")) < 200


@pytest.mark.full
@pytest.mark.parametrize(("kinds", "library"), [(("pt2", "pt"), "torch"), (("keras", "h5"), "tensorflow")])
def test_mutants_of_pytorch_and_tensorflow_are_converted_or_refused(
    tmp_path: Path, kinds: Sequence[str], library: str
) -> None:
    needed(library)
    assert refused(tmp_path, 12, kinds)
