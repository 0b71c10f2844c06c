"""Archives: the same bytes anywhere, and nothing but what `write` makes is read."""

from __future__ import annotations

import hashlib
import json
import os
import random
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import anfbuild
from anfbuild.errors import StepError
from anfbuild.package import canonical, join, read, write

FILES: dict[str, Path | bytes] = {
    "context/model.onnx": b"wrapper",
    "context/model_qnn.bin": bytes(range(256)) * 4,
    "model.onnx": b"qdq" * 50,
}


def manifest(**changes: Any) -> dict[str, Any]:
    image = {"shape": [1, 3, 8, 8], "dtype": "float32", "layout": "NCHW"}
    normalization = {"channels": "RGB", "scale": 1 / 255, "mean": [0.5] * 3, "std": [0.25] * 3}
    encoding = {"dtype": "uint8", "scale": 0.1, "zero_point": 128}
    return {
        "name": "digits",
        "backend": "htp",
        "target": {"soc": "sm8650", "name": "Snapdragon 8 Gen 3", "arch": "v75", "soc_model": 57, "vtcm_mb": 8},
        "versions": {
            "onnxruntime": {"required": ">=1.32", "built_with": "1.32.0"},
            "qnn": {"required": ">=2.51", "built_with": None},
        },
        "tensors": {
            "inputs": {"x": {**image, "normalization": normalization, "encoding": encoding}},
            "outputs": {"y": {"shape": [1, 10], "dtype": "float32"}},
        },
        "task": {"kind": "classification", "options": {"top": 1}},
        "source": {"sha256": "0" * 64, "license": "Apache-2.0"},
        "entry": {"context": "context/model.onnx", "qdq": "model.onnx"},
        **changes,
    }


@pytest.fixture
def package(tmp_path: Path) -> Path:
    path = tmp_path / "digits.anf"
    write(path, files=FILES, manifest=manifest())
    return path


def test_what_was_written_is_read(package: Path, tmp_path: Path) -> None:
    opened = read(package)
    assert opened.names == ["README.md", *sorted(FILES)]
    assert {name: opened.read(name) for name in FILES} == FILES
    assert opened.manifest["target"]["soc_model"] == 57
    opened.extract(tmp_path / "unpacked")
    assert (tmp_path / "unpacked/context/model_qnn.bin").read_bytes() == FILES["context/model_qnn.bin"]
    assert json.loads((tmp_path / "unpacked/manifest.json").read_bytes()) == opened.manifest


def joined(package: Path, root: Path) -> dict[str, Any]:
    """What `write` takes for a package of two components that are both `package`."""
    packages = {name: read(package) for name in ("left", "right")}
    for name, one in packages.items():
        one.extract(root / name)
    files, document = join(packages, root)
    return {"files": files, "manifest": {**document, "name": "both"}}


def test_a_package_of_several_components(package: Path, tmp_path: Path) -> None:
    write(tmp_path / "both.anf", **joined(package, tmp_path))
    both, one = read(tmp_path / "both.anf"), read(package)
    assert (list(one.models), list(both.models)) == (["main"], ["left", "right"])
    assert both.names == ["README.md", *(f"{name}/{file}" for name in ("left", "right") for file in sorted(FILES))]
    assert both.read("right/context/model_qnn.bin") == FILES["context/model_qnn.bin"]
    assert both.models["left"]["entry"] == {"context": "left/context/model.onnx", "qdq": "left/model.onnx"}
    assert both.models["left"]["tensors"] == one.models["main"]["tensors"]
    assert "tensors" not in both.manifest
    text = both.read("README.md").decode()
    for part in ("2 models for the HTP", "# Component right", '"right/context/model.onnx"', "Task: classification."):
        assert part in text


def test_a_manifest_tells_of_one_model_or_of_several(package: Path, tmp_path: Path) -> None:
    several = joined(package, tmp_path)
    wrong = [
        ({**several["manifest"], "task": {"kind": "a", "options": {}}}, "nor the components of several"),
        ({**several["manifest"], "components": {}}, "nor the components of several"),
        ({key: value for key, value in manifest().items() if key != "task"}, "nor the components of several"),
    ]
    several["manifest"]["components"]["left"] = {**several["manifest"]["components"]["left"], "entry": {"qdq": "x"}}
    for document, what in [*wrong, (several["manifest"], "components.left.entry.qdq names 'x'")]:
        with pytest.raises(StepError, match=what):
            write(tmp_path / "wrong.anf", files={**several["files"], **FILES}, manifest=document)


def test_size_and_digest_are_those_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "a.anf"
    written = write(path, files=FILES, manifest=manifest())
    data = path.read_bytes()
    assert written == {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}


def test_any_zip_tool_reads_it(package: Path) -> None:
    with zipfile.ZipFile(package) as archive:
        assert archive.testzip() is None
        infos = archive.infolist()
    assert [info.filename for info in infos] == sorted(["README.md", "manifest.json", *FILES])
    assert {(i.compress_type, i.date_time, i.external_attr >> 16, i.extra, i.create_system) for i in infos} == {
        (zipfile.ZIP_STORED, (1980, 1, 1, 0, 0, 0), 0o100644, b"", 3)
    }


def test_bytes_depend_on_content_alone(package: Path, tmp_path: Path) -> None:
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    for name, content in FILES.items():
        assert isinstance(content, bytes)
        (folder / name.replace("/", "_")).write_bytes(content)
        os.utime(folder / name.replace("/", "_"), (1, 1))
    script = (
        "import os, sys, json; from pathlib import Path; from anfbuild.package import write\n"
        "files = {n: Path(n.replace('/', '_')) for n in reversed(json.loads(sys.argv[1]))}\n"
        "os.umask(0o077)\n"
        "write(Path('other.anf'), files=files, manifest=json.loads(sys.argv[2]))"
    )
    turned = dict(reversed(manifest().items()))
    environment = {
        **os.environ,
        "PYTHONHASHSEED": "7",
        "TZ": "Asia/Tokyo",
        "PYTHONPATH": str(Path(anfbuild.__file__).parents[1]),
    }
    arguments = [json.dumps(list(FILES)), json.dumps(turned)]
    subprocess.run([sys.executable, "-c", script, *arguments], cwd=folder, env=environment, check=True)
    assert (folder / "other.anf").read_bytes() == package.read_bytes()


def test_neither_place_nor_digest_of_itself_is_inside(package: Path, tmp_path: Path) -> None:
    data = package.read_bytes()
    assert str(tmp_path).encode() not in data
    assert "manifest.json" not in read(package).manifest["files"]


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_a_flipped_bit_is_refused(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    path = tmp_path_factory.mktemp("flip") / "a.anf"
    write(path, files=FILES, manifest=manifest())
    content = bytearray(path.read_bytes())
    bit = data.draw(st.integers(0, 8 * len(content) - 1))
    content[bit // 8] ^= 1 << bit % 8
    path.write_bytes(content)
    with pytest.raises(StepError, match=r"a\.anf"):
        read(path)


def test_every_header_bit_is_refused_when_flipped(tmp_path: Path) -> None:
    path = tmp_path / "a.anf"
    small = manifest(entry={"qdq": "m"})
    write(path, files={"m": b"content"}, manifest=small)
    content = path.read_bytes()
    bodies = set()
    with zipfile.ZipFile(path) as archive:
        for info in archive.infolist():
            start = info.header_offset + 30 + len(info.filename)
            bodies |= set(range(start, start + info.file_size))
    headers = [place for place in range(len(content)) if place not in bodies]
    sample = random.Random(0).sample(sorted(bodies), 60)
    for place in headers + sample:
        for bit in range(8):
            changed = bytearray(content)
            changed[place] ^= 1 << bit
            path.write_bytes(changed)
            with pytest.raises(StepError):
                read(path)


@settings(max_examples=60, deadline=None)
@given(cut=st.integers(0, 3000), tail=st.binary(max_size=40))
def test_truncated_or_continued_is_refused(tmp_path_factory: pytest.TempPathFactory, cut: int, tail: bytes) -> None:
    path = tmp_path_factory.mktemp("cut") / "a.anf"
    write(path, files=FILES, manifest=manifest())
    content = path.read_bytes()
    changed = content[: max(0, len(content) - cut)] + tail
    if changed == content:
        return
    path.write_bytes(changed)
    with pytest.raises(StepError):
        read(path)


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=300))
def test_any_other_bytes_are_refused(tmp_path_factory: pytest.TempPathFactory, junk: bytes) -> None:
    path = tmp_path_factory.mktemp("junk") / "a.anf"
    path.write_bytes(junk)
    with pytest.raises(StepError, match="not a sound package"):
        read(path)


def rezip(path: Path, change: Callable[[zipfile.ZipFile, dict[str, bytes]], None]) -> None:
    """Write the members of the package again by `zipfile`, as `change` wants them."""
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(path, "w") as archive:
        change(archive, members)


def info(name: str, mode: int = 0o100644) -> zipfile.ZipInfo:
    result = zipfile.ZipInfo(name)
    result.create_system, result.external_attr = 3, mode << 16
    return result


def store(archive: zipfile.ZipFile, members: dict[str, bytes]) -> None:
    for name in sorted(members):
        archive.writestr(info(name), members[name])


def compressed(archive: zipfile.ZipFile, members: dict[str, bytes]) -> None:
    for name in sorted(members):
        archive.writestr(info(name), members[name], compress_type=zipfile.ZIP_DEFLATED)


def linked(archive: zipfile.ZipFile, members: dict[str, bytes]) -> None:
    store(archive, {name: data for name, data in members.items() if name != "model.onnx"})
    archive.writestr(info("model.onnx", 0o120777), b"/etc/passwd")


def doubled(archive: zipfile.ZipFile, members: dict[str, bytes]) -> None:
    store(archive, members)
    with pytest.warns(UserWarning, match="Duplicate"):
        archive.writestr(info("model.onnx"), b"other")


def added(name: str) -> Callable[[zipfile.ZipFile, dict[str, bytes]], None]:
    return lambda archive, members: store(archive, {**members, name: b"more"})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (compressed, "README.md' is compressed"),
        (linked, "model.onnx' is a symbolic link"),
        (doubled, "'model.onnx' and 'model.onnx' are one file"),
        (added("MODEL.onnx"), "are one file"),
        (added("../evil"), "'../evil' is not allowed"),
        (added("/evil"), "'/evil' is not allowed"),
        (added("C:/evil"), "is not allowed"),
        (added("a\\b"), "is not allowed"),
    ],
)
def test_what_other_tools_may_write_is_named(
    package: Path, change: Callable[[zipfile.ZipFile, dict[str, bytes]], None], message: str
) -> None:
    rezip(package, change)
    with pytest.raises(StepError) as caught:
        read(package)
    assert message in str(caught.value)
    assert str(package) in str(caught.value)


def canonical_archive(path: Path, members: dict[str, bytes]) -> None:
    """An archive with sound headers and any manifest: what someone who knows the format could make."""
    with zipfile.ZipFile(path, "w") as archive:
        for name in sorted(members):
            entry = info(name)
            entry.create_version, entry.extract_version = 20, 10
            archive.writestr(entry, members[name])
    content = bytearray(path.read_bytes())
    for signature, place in ((b"PK\3\4", 4), (b"PK\1\2", 6)):
        at = content.find(signature)
        while at >= 0:
            content[at + place : at + place + 2] = b"\x0a\0"
            at = content.find(signature, at + 4)
    path.write_bytes(content)


def members_of(path: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def test_the_doctored_archives_below_are_sound_but_for_their_manifest(package: Path) -> None:
    before = package.read_bytes()
    canonical_archive(package, members_of(package))
    assert package.read_bytes() == before


def doctor(package: Path, **changes: Any) -> None:
    members = members_of(package)
    members["manifest.json"] = canonical({**json.loads(members["manifest.json"]), **changes})
    canonical_archive(package, members)


def test_a_newer_schema_is_refused(package: Path) -> None:
    doctor(package, schema_version=2)
    with pytest.raises(StepError, match=r"schema_version 2.*up to 1") as caught:
        read(package)
    assert "Update anfbuild" in str(caught.value)


def test_an_unknown_manifest_key_is_refused(package: Path) -> None:
    doctor(package, host="builder")
    with pytest.raises(StepError, match="/host: is not known"):
        read(package)


@pytest.mark.parametrize("text", [b"", b"[]", b"{}", b'{"a": NaN}', b"\xff", b"[" * 100_000])
def test_a_broken_manifest_is_refused(package: Path, text: bytes) -> None:
    canonical_archive(package, {**members_of(package), "manifest.json": text})
    with pytest.raises(StepError, match=r"manifest\.json"):
        read(package)


def test_a_key_given_twice_is_refused(package: Path) -> None:
    members = members_of(package)
    members["manifest.json"] = members["manifest.json"].replace(
        b'"name": "digits"', b'"name": "x",\n  "name": "digits"'
    )
    canonical_archive(package, members)
    with pytest.raises(StepError, match="cannot be read"):
        read(package)


def test_manifest_and_members_must_agree(package: Path) -> None:
    members = members_of(package)
    canonical_archive(package, {**members, "more.bin": b""})
    with pytest.raises(StepError, match=r"'more\.bin' is not in the manifest"):
        read(package)
    canonical_archive(package, {name: data for name, data in members.items() if name != "context/model_qnn.bin"})
    with pytest.raises(StepError, match=r"'context/model_qnn\.bin' of the manifest is missing"):
        read(package)
    canonical_archive(package, {**members, "model.onnx": b"other"})
    with pytest.raises(StepError, match=r"'model\.onnx' has another digest"):
        read(package)
    canonical_archive(package, {name: data for name, data in members.items() if name != "manifest.json"})
    with pytest.raises(StepError, match=r"has no manifest\.json"):
        read(package)


def test_a_file_that_changes_after_opening_is_noticed(package: Path, tmp_path: Path) -> None:
    opened = read(package)
    content = package.read_bytes()
    package.write_bytes(content.replace(b"wrapper", b"wrapped"))
    with pytest.raises(StepError, match=r"context/model\.onnx"):
        opened.read("context/model.onnx")
    package.write_bytes(content[:10])
    with pytest.raises(StepError, match="changed"):
        opened.extract(tmp_path / "unpacked")


def test_a_missing_member_names_those_that_are_there(package: Path) -> None:
    with pytest.raises(StepError) as caught:
        read(package).read("model.bin")
    assert caught.value.choices == ["README.md", *sorted(FILES)]


def test_a_missing_file_or_a_folder_is_refused(tmp_path: Path) -> None:
    for path in (tmp_path / "none.anf", tmp_path):
        with pytest.raises(StepError, match="cannot be read"):
            read(path)


@pytest.mark.parametrize(
    "name",
    ["", "/a", "a/../b", "..", "./a", "a//b", "a/", "a\\b", "C:a", "a\nb", "a.", "nul", "x/COM1.txt", "é", "a b"],
)
def test_unsafe_names_are_not_written(tmp_path: Path, name: str) -> None:
    with pytest.raises(StepError, match="is not allowed"):
        write(tmp_path / "a.anf", files={**FILES, name: b""}, manifest=manifest())


@pytest.mark.parametrize("name", ["Model.onnx", "readme.md", "MANIFEST.json", "README.md", "context", "model.onnx/a"])
def test_names_that_collide_are_not_written(tmp_path: Path, name: str) -> None:
    with pytest.raises(StepError, match=f"(?i){name.split('/')[0]}"):
        write(tmp_path / "a.anf", files={**FILES, name: b""}, manifest=manifest())


def test_a_failed_write_leaves_the_old_file_and_no_other(package: Path) -> None:
    before = package.read_bytes()
    with pytest.raises(StepError, match=r"'gone' cannot be read"):
        write(package, files={**FILES, "gone": package.parent / "gone"}, manifest=manifest())
    assert package.read_bytes() == before
    assert list(package.parent.iterdir()) == [package]


def test_more_than_the_format_holds_is_refused(tmp_path: Path) -> None:
    many: dict[str, Path | bytes] = {f"part{index}": b"" for index in range(65_534)}
    with pytest.raises(StepError, match="less than 4 GiB"):
        write(tmp_path / "a.anf", files={**FILES, **many}, manifest=manifest())
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"source": {"sha256": "zz", "license": None}}, "/source/sha256"),
        ({"entry": {"qdq": "missing.onnx"}}, "entry.qdq names 'missing.onnx'"),
        ({"target": {"soc": "sm8650"}}, "/target: lacks 'arch'"),
        ({"path": "/home/me"}, "/path: is not known"),
    ],
)
def test_a_manifest_that_is_not_valid_is_not_written(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(StepError) as caught:
        write(tmp_path / "a.anf", files=FILES, manifest=manifest(**changes))
    assert message in str(caught.value)


def test_readme_says_what_it_is_and_how_to_load_it(package: Path) -> None:
    text = read(package).read("README.md").decode()
    for word in (
        "Snapdragon 8 Gen 3",
        "v75",
        ">=2.51",
        "Apache-2.0",
        "[1, 3, 8, 8]",
        "zero point 128",
        "disable_fallback",
    ):
        assert word in text
    assert 'InferenceSession("context/model.onnx"' in text
    for block in text.split("```python\n")[1:]:
        compile(block.split("```")[0], "README.md", "exec")


def test_readme_without_a_context_says_so(tmp_path: Path) -> None:
    path = tmp_path / "a.anf"
    write(path, files={"model.onnx": b"qdq"}, manifest=manifest(entry={"qdq": "model.onnx"}))
    text = read(path).read("README.md").decode()
    assert "no context binary" in text
    assert "get_qnn_htp_path" not in text
