"""The recipes on texts, small: their packages hold what an application needs to read and to write them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageDraw, ImageFont
from projects import READ, SEARCH, Project

from anfbuild import package, qnn, tasks
from anfbuild.graph import Session

pytestmark = pytest.mark.skipif(qnn.unavailable() is not None, reason=str(qnn.unavailable()))


def build(folder: Path, store: Path, arguments: tuple[str, ...]) -> tuple[package.Package, Session, tasks.Task]:
    """Build; the package, its quantized model, and its task with its vocabulary."""
    ran = Project(folder, store).run(*arguments, "--json")
    assert ran.code == 0, ran.err
    results = ran.document["results"]
    assert results["placement"]["partitions"] == 1
    assert results["placement"]["share"]["macs"]["htp"] == 1.0
    assert results["accuracy"]["float"] > 0.3
    assert results["accuracy"]["emulated"] is not None
    packed = package.read(folder / "artifacts" / "builds" / results["recipe"] / "latest" / f"{results['recipe']}.anf")
    entry = packed.manifest["entry"]
    vocabulary = json.loads(packed.read(entry["vocabulary"]))
    task = tasks.get(packed.manifest["task"]["kind"], packed.manifest["task"]["options"], vocabulary)
    return packed, Session(packed.read(entry["qdq"])), task


def test_a_line_is_read_with_the_package_alone(tmp_path: Path, store: Path) -> None:
    packed, session, task = build(tmp_path, store, READ)
    ((name, tensor),) = packed.manifest["tensors"]["inputs"].items()
    spec = {"shape": tensor["shape"], "layout": tensor["layout"], **tensor["normalization"]}
    image = Image.new("RGB", (180, 48), "white")
    ImageDraw.Draw(image).text((10, 4), "Market 42", "black", ImageFont.load_default(32))
    line = np.asarray(image)
    answer = task.decode(session.run(task.feeds(line, {name: spec})), task.size(line))
    assert answer["text"].replace(" ", "") == "Market42"


def test_a_question_is_answered_with_the_package_alone(tmp_path: Path, store: Path) -> None:
    packed, session, task = build(tmp_path, store, SEARCH)
    specs = packed.manifest["tensors"]["inputs"]
    assert all("normalization" not in spec for spec in specs.values())
    texts = ("The shop sells fresh bread.", "The car was repaired yesterday.", "Where can I buy a loaf?")
    bread, car, question = (
        np.array(task.decode(session.run(task.feeds(text, specs)), task.size(text))["vector"]) for text in texts
    )
    assert question @ bread > question @ car + 0.2
