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
        ("net.pt2", b"PK", "torch"),
        ("net.h5", b"\x89HDF\r\n\x1a\n", "keras"),
        ("net.hdf5", b"\x89HDF\r\n\x1a\n", "keras"),
        ("net.keras", b"PK\x03\x04", "keras"),
        ("net.tar", b"anything", "saved_model"),
        ("net.tar.gz", b"\x1f\x8b", "saved_model"),
        ("net.tgz", b"\x1f\x8b", "saved_model"),
        ("model.gz", b"\x1f\x8b", "saved_model"),
        ("saved_model.pb", b"anything", "saved_model"),
        ("net.onnx", b"\x1c\0\0\0TFL3", "tflite"),
    ],
)
def test_content_and_suffix_tell_the_format(tmp_path: Path, name: str, content: bytes, format_: str) -> None:
    (tmp_path / name).write_bytes(content)
    assert find_format(tmp_path / name) == format_


def test_an_unknown_format_names_those_that_can_be_read(tmp_path: Path) -> None:
    for name, remedy in (
        ("net.safetensors", "weights alone"),
        ("net.weights.h5", "weights alone"),
        ("net.x", "right file"),
        ("model.module.json", "right file"),  # no file chooses which installed code runs
    ):
        (tmp_path / name).write_bytes(b"\x89HDF")
        with pytest.raises(StepError, match="none of the formats") as caught:
            read(tmp_path / name)
        assert caught.value.where == str(tmp_path / name)
        assert caught.value.choices == list(FORMATS.values())
        assert remedy in (caught.value.remedy or "")
    with pytest.raises(StepError, match=r"a folder without saved_model\.pb is none") as caught:
        read(tmp_path)
    assert "source.file" in (caught.value.remedy or "")
    with pytest.raises(StepError, match="cannot be read"):
        read(tmp_path / "nothing.onnx")


def test_an_onnx_model_comes_as_it_is(tmp_path: Path) -> None:
    model = conv_model()
    (tmp_path / "net.onnx").write_bytes(serialize(model))
    assert read(tmp_path / "net.onnx") == model
