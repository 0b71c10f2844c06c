"""Which reader a file goes to, and what is said of one that none can read."""

from __future__ import annotations

from pathlib import Path

import pytest
from graph_models import conv_model

from anfbuild.errors import StepError
from anfbuild.graph import serialize
from anfbuild.sources.readers import FORMATS, find_format, read


@pytest.mark.parametrize(
    ("name", "content", "format_"),
    [
        ("net.onnx", b"", "onnx"),
        ("net", b"\x08\x09", "onnx"),
        ("net.bin", b"\x08\x09", "onnx"),
        ("net.ONNX", b"anything", "onnx"),
        ("net.tflite", b"anything", "tflite"),
        ("net.onnx", b"\x1c\0\0\0TFL3", "tflite"),
    ],
)
def test_content_and_suffix_tell_the_format(tmp_path: Path, name: str, content: bytes, format_: str) -> None:
    (tmp_path / name).write_bytes(content)
    assert find_format(tmp_path / name) == format_


def test_an_unknown_format_names_those_that_can_be_read(tmp_path: Path) -> None:
    path = tmp_path / "net.h5"
    path.write_bytes(b"\x89HDF")
    for unknown in (path, tmp_path):
        with pytest.raises(StepError) as caught:
            read(unknown)
        assert caught.value.where == str(unknown)
        assert caught.value.choices == list(FORMATS.values())
    with pytest.raises(StepError, match="cannot be read"):
        read(tmp_path / "nothing.onnx")


def test_an_onnx_model_comes_as_it_is(tmp_path: Path) -> None:
    model = conv_model()
    (tmp_path / "net.onnx").write_bytes(serialize(model))
    assert read(tmp_path / "net.onnx") == model
