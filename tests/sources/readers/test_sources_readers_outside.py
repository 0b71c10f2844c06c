"""Models that take PyTorch or TensorFlow: what is said of them without either."""

from __future__ import annotations

import json
import pickle
import sys
import zipfile
from pathlib import Path

import pytest

from anfbuild.errors import StepError
from anfbuild.sources.readers import find_format, read

HDF5 = b"\x89HDF\r\n\x1a\n"


def zipped(path: Path, *names: str) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        for name in names:
            archive.writestr(name, b"")


@pytest.mark.parametrize(
    ("file", "names", "format_"),
    [
        ("a.pt", ("a/data.pkl", "a/constants.pkl", "a/code/__torch__.py"), "torchscript"),
        ("a.pt", ("a/archive_format", "a/models/model.json"), "torch"),
        ("a.pt2", ("serialized_exported_program.json",), "torch"),
        ("a.bin", ("config.json", "metadata.json", "model.weights.h5"), "keras"),
        ("a.zip", ("net/saved_model.pb", "net/variables/variables.index"), "saved_model"),
        ("a.zip", ("saved_model.pb",), "saved_model"),
    ],
)
def test_what_is_in_an_archive_tells_the_format(
    tmp_path: Path, file: str, names: tuple[str, ...], format_: str
) -> None:
    zipped(tmp_path / file, *names)
    assert find_format(tmp_path / file) == format_


def test_a_folder_with_a_saved_model_is_one(tmp_path: Path) -> None:
    (tmp_path / "saved_model.pb").touch()
    assert find_format(tmp_path) == "saved_model"


class Evil:
    def __reduce__(self) -> tuple[object, ...]:
        return print, ("never",)


@pytest.mark.parametrize("suffix", [".pt", ".pth", ".bin"])
@pytest.mark.parametrize("packed", [True, False])
def test_a_pickle_is_refused_and_never_loaded(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], suffix: str, packed: bool
) -> None:
    path = tmp_path / f"net{suffix}"
    data = pickle.dumps(Evil())
    if packed:
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("net/data.pkl", data)
    else:
        path.write_bytes(data)
    with pytest.raises(StepError, match="a pickle is refused") as caught:
        read(path)
    assert caught.value.where == str(path)
    assert "torch.export.save" in (caught.value.remedy or "")
    assert "never" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("file", "extra", "packages"),
    [
        ("a.pt2", "torch", ("torch", "onnxscript")),
        ("a.pt", "torch", ("torch",)),
        ("a.module.json", "torch", ("torch", "onnxscript")),
        ("a.keras", "tensorflow", ("tensorflow", "tf2onnx")),
        ("a.h5", "tensorflow", ("tf2onnx",)),
        ("a.tar", "tensorflow", ("tensorflow",)),
    ],
)
def test_an_extra_that_is_missing_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file: str, extra: str, packages: tuple[str, ...]
) -> None:
    path = tmp_path / file
    if file == "a.pt":
        zipped(path, "a/data.pkl", "a/constants.pkl")
    elif extra == "torch":
        path.write_text(json.dumps({"name": "net"}))
    else:
        path.write_bytes(HDF5)
    for name in ("torch", "onnxscript", "tensorflow", "tf2onnx"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(StepError, match="not installed") as caught:
        read(path, module="net" if file == "a.module.json" else None)
    assert all(name in caught.value.what for name in packages)
    assert caught.value.where == str(path)
    assert f"pip install 'anfbuild[{extra}]'" in (caught.value.remedy or "")
