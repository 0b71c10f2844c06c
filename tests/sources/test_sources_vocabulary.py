from __future__ import annotations

from pathlib import Path

import onnx
import pytest

from anfbuild.errors import StepError
from anfbuild.sources.vocabulary import vocabulary


def with_characters(text: str | None = None) -> onnx.ModelProto:
    model = onnx.ModelProto()
    if text is not None:
        model.metadata_props.add(key="character", value=text)
    return model


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("[PAD]\n[UNK]\nthe\n##s\n", ["[PAD]", "[UNK]", "the", "##s"]),
        ("a\r\nb", ["a", "b"]),
        ('["[PAD]", "\u2581", "\u2581the", "s", "[", "\u2581["]', ["[PAD]", "", "the", "##s", "##[", "["]),
        ('["a", "b"]', ["a", "b"]),
    ],
)
def test_reads_lines_and_json(tmp_path: Path, content: str, expected: list[str]) -> None:
    (tmp_path / "v").write_bytes(content.encode())
    assert vocabulary(tmp_path / "v", with_characters("x")) == expected


def test_the_models_own_characters_come_second(tmp_path: Path) -> None:
    assert vocabulary(tmp_path / "none", with_characters("a\n \n\u2028")) == ["a", " ", "\u2028"]
    assert vocabulary(tmp_path / "none", with_characters()) == []


@pytest.mark.parametrize(("content", "message"), [(b"\xff\xfe", "no text in UTF-8"), (b'{"a": 1}', "no list of texts")])
def test_refuses_what_is_no_vocabulary(tmp_path: Path, content: bytes, message: str) -> None:
    (tmp_path / "v").write_bytes(content)
    with pytest.raises(StepError, match=message):
        vocabulary(tmp_path / "v", with_characters())
