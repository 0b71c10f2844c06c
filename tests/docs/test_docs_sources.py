"""The recipes of docs/sources.md compose and pass all that is checked before a build."""

from __future__ import annotations

import re
from importlib import metadata
from pathlib import Path

import pytest

from anfbuild import plugins, sources
from anfbuild.recipe import compose
from anfbuild.sources.readers import FORMATS

PAGE = (Path(__file__).parents[2] / "docs" / "sources.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)


@pytest.mark.parametrize("text", EXAMPLES)
def test_an_example_composes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    points = {"mine": metadata.EntryPoint("mine", "my_package.nets:make", plugins.MODELS)}
    monkeypatch.setattr(plugins, "installed", lambda group: points if group == plugins.MODELS else {})
    (tmp_path / "recipes").mkdir()
    head, rest = text.split("\n", 1)
    chosen = re.fullmatch(r"defaults: \[(.*?)\].*", head)
    assert chosen is not None
    defaults = [chosen[1], "override /dataset: folder", "override /task: text_detection", "_self_"]
    lines = ["defaults:", *(f"  - {one}" for one in defaults), "dataset: {path: data}", rest]
    if "model:" not in rest:
        lines.append("model: {inputs: {x: {shape: [1, 3, 32, 32]}}}")
    (tmp_path / "recipes" / "mine.yaml").write_text("\n".join(lines), encoding="utf-8")
    config = compose(["+recipe=mine"], tmp_path).config
    keys = {key: value for key, value in config["source"].items() if key not in ("license", "private", "vocabulary")}
    sources.check(keys.pop("kind"), **keys)


def test_every_kind_and_every_format_is_on_the_page() -> None:
    kinds = set(re.findall(r"override /source: (\w+)", PAGE)) | set(re.findall(r"kind: (\w+)", PAGE))
    assert set(sources.KINDS) <= kinds
    for text in FORMATS.values():
        for suffix in re.findall(r"\.\w+(?=[,)])", text):
            assert f"`{suffix}" in PAGE
