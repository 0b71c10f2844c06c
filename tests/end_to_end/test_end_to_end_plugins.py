"""Kinds that another distribution adds: they are found, used, and their code and version are in the keys."""

from __future__ import annotations

from pathlib import Path

import pytest
from projects import Project

ESTIMATOR = """\
from anfbuild.quantization.estimators.minmax import minmax


def narrow(tensor, bits, percentile):
    lo, hi = minmax(tensor, bits, percentile)
    return lo * 0.5, hi * 0.5
"""
DATA = """\
import numpy
from PIL import Image

from anfbuild.datasets import Entry, write_index


def write(*, folder, split, samples, seed, **_):
    truths = {}
    for number in range(samples):
        draw = numpy.random.default_rng([seed, split == "evaluation", number])
        Image.fromarray(draw.integers(0, 255, (40, 40, 3), numpy.uint8)).save(folder / f"{number}.png")
        truths[str(number)] = {"quads": [[[2, 2], [30, 2], [30, 12], [2, 12]]]}
    write_index(folder, [Entry(name, f"{name}.png") for name in truths])
    return truths
"""
TASK = """\
from anfbuild.tasks import get


def make(options):
    return get("text_detection", {**options, "threshold": 0.4})
"""
POINTS = """\
[anfbuild.estimators]
narrow = extra.ranges:narrow
[anfbuild.datasets]
noise = extra.data:write
[anfbuild.tasks]
reading = extra.task:make
"""
CHOICES = ("calibration.estimator=narrow", "dataset.kind=noise", "task.kind=reading", "dataset.path=null")


class Distribution:
    """An installed distribution, in a folder of its own on the path."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "extra").mkdir(parents=True)
        for name, text in {"__init__": "", "ranges": ESTIMATOR, "data": DATA, "task": TASK}.items():
            (folder / "extra" / f"{name}.py").write_text(text)
        self.release("1.0")

    def release(self, version: str) -> None:
        info = self.folder / "extra.dist-info"
        info.mkdir(exist_ok=True)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: extra\nVersion: {version}\n")
        (info / "entry_points.txt").write_text(POINTS)

    def edit(self, name: str, old: str, new: str) -> None:
        path = self.folder / "extra" / f"{name}.py"
        path.write_text(path.read_text().replace(old, new))


@pytest.fixture
def extra(tmp_path: Path) -> Distribution:
    return Distribution(tmp_path / "site")


def steps_run(project: Project, extra: Distribution) -> set[str]:
    ran = project.run("+recipe=mine", *CHOICES, "--json", PYTHONPATH=str(extra.folder))
    assert ran.code == 0, ran.err
    return set(ran.steps_run)


def test_plugins_are_used_and_their_code_and_version_are_in_the_keys(alone: Project, extra: Distribution) -> None:
    assert {"dataset", "calibrate", "quantize", "evaluate"} <= steps_run(alone, extra)
    assert steps_run(alone, extra) == set()

    extra.edit("ranges", "0.5", "0.25")
    assert "quantize" in steps_run(alone, extra)

    extra.release("1.1")  # of the same code: what it makes comes out the same, and nothing behind it runs
    assert steps_run(alone, extra) == {"dataset", "calibrate", "baseline", "quantize", "emulate", "evaluate"}


def test_a_plugin_that_is_not_chosen_changes_nothing(alone: Project, extra: Distribution) -> None:
    assert alone.run("+recipe=mine").code == 0
    again = alone.run("+recipe=mine", "--json", PYTHONPATH=str(extra.folder))
    assert (again.code, again.steps_run) == (0, [])


@pytest.mark.parametrize(
    ("override", "words"),
    [
        ("calibration.estimator=narow", ["did you mean 'narrow'?", "minmax"]),
        ("dataset.kind=nois", ["did you mean 'noise'?", "folder"]),
        ("task.kind=readin", ["did you mean 'reading'?", "text_detection"]),
    ],
)
def test_an_unknown_kind_names_those_of_plugins_too(
    tiny: Project, extra: Distribution, override: str, words: list[str]
) -> None:
    ran = tiny.run("+recipe=mine", override, PYTHONPATH=str(extra.folder))
    assert ran.code == 2
    assert all(word in ran.err for word in words), ran.err


def test_a_plugin_that_does_not_import_is_named(tiny: Project, extra: Distribution) -> None:
    extra.edit("ranges", "def narrow", "raise OSError('no such thing')\n\ndef narrow")
    ran = tiny.run("+recipe=mine", *CHOICES, PYTHONPATH=str(extra.folder))
    assert ran.code == 1
    assert "extra.ranges:narrow: the plug-in 'narrow' cannot be loaded: OSError: no such thing" in ran.err
