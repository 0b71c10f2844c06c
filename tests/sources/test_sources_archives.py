"""Archives unpack below their folder and within bounds, or are refused by name."""

from __future__ import annotations

import contextlib
import io
import stat
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from anfbuild.errors import StepError
from anfbuild.sources import archives
from anfbuild.sources.archives import unpack, zip_names

Write = Callable[[Path], None]


def zipped(*members: tuple[str | zipfile.ZipInfo, bytes]) -> Write:
    def write(path: Path) -> None:
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, data in members:
                archive.writestr(name, data)

    return write


def tarred(*members: tuple[str, bytes | str], kind: bytes = tarfile.REGTYPE, mode: str = "w:gz") -> Write:
    def write(path: Path) -> None:
        with tarfile.open(path, mode) as archive:
            for name, data in members:
                info = tarfile.TarInfo(name)
                if isinstance(data, str):
                    info.type, info.linkname = kind, data
                    archive.addfile(info)
                else:
                    info.size = len(data)
                    archive.addfile(info, io.BytesIO(data))

    return write


def link(name: str) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name)
    info.external_attr = (stat.S_IFLNK | 0o777) << 16
    return info


@pytest.mark.parametrize(
    "write",
    [
        zipped(("net/saved_model.pb", b"a"), ("net/variables/v", b"b")),
        tarred(("net/saved_model.pb", b"a"), ("net/variables/v", b"b")),
        tarred(("./net/saved_model.pb", b"a"), ("./net/variables/v", b"b"), mode="w"),
        tarred(("net/saved_model.pb", b"a"), ("net/variables/v", b"b"), mode="w:xz"),
    ],
)
def test_files_come_out_as_they_were(tmp_path: Path, write: Write) -> None:
    write(tmp_path / "a.pack")
    unpack(tmp_path / "a.pack", tmp_path / "out")
    found = {path.relative_to(tmp_path / "out").as_posix(): path.read_bytes() for path in tmp_path.rglob("out/**/?*.*")}
    assert found == {"net/saved_model.pb": b"a"}
    assert (tmp_path / "out" / "net" / "variables" / "v").read_bytes() == b"b"


@pytest.mark.parametrize(
    ("write", "says"),
    [
        (zipped(("../out.txt", b"a")), r"'../out.txt' in the archive leads out"),
        (zipped(("a/../../out.txt", b"a")), "leads out"),
        (zipped(("/tmp/out.txt", b"a")), "leads out"),
        (zipped(("C:/out.txt", b"a")), "leads out"),
        (zipped(("a\\..\\out.txt", b"a")), "leads out"),
        (zipped((link("a"), b"/etc"), ("a/passwd", b"x")), "'a' in the archive is a link"),
        (zipped(("a", b"1"), ("a/b", b"2")), "cannot be unpacked|twice"),
        (tarred(("../out.txt", b"a")), "leads out"),
        (tarred(("/tmp/out.txt", b"a")), "leads out"),
        (tarred(("a", "/etc"), ("a/passwd", b"x"), kind=tarfile.SYMTYPE), "'a' in the archive is a link"),
        (tarred(("a", "/etc/passwd"), kind=tarfile.LNKTYPE), "'a' in the archive is a link"),
        (tarred(("a", ""), kind=tarfile.CHRTYPE), "link or a device"),
        (tarred(("a", ""), kind=tarfile.FIFOTYPE), "link or a device"),
        (tarred(("a", b"1"), ("a", b"2")), "'a' twice"),
        (zipped(("a", bytes(3_000_000))), "unpacks to more than"),
        (tarred(("a", bytes(3_000_000))), "unpacks to more than"),
        (tarred(("a", bytes(3_000_000)), mode="w:xz"), "unpacks to more than"),
        (zipped(*((str(n), b"") for n in range(12))), "more than 10 files"),
    ],
)
def test_what_leads_elsewhere_or_has_no_end_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, write: Write, says: str
) -> None:
    monkeypatch.setattr(archives, "MOST_FILES", 10)
    monkeypatch.setattr(archives, "MOST_RATIO", 2)
    path = tmp_path / "deep" / "a.pack"
    path.parent.mkdir()
    write(path)
    with pytest.raises(StepError, match=says) as caught:
        unpack(path, tmp_path / "deep" / "out")
    assert caught.value.where == str(path)
    assert caught.value.remedy
    assert [entry.name for entry in tmp_path.iterdir()] == ["deep"]


@pytest.mark.parametrize("suffix", [".zip", ".tar.gz"])
def test_a_damaged_archive_is_refused_wherever_it_ends(tmp_path: Path, suffix: str) -> None:
    whole = tmp_path / f"a{suffix}"
    (zipped if suffix == ".zip" else tarred)(("net/saved_model.pb", b"abc" * 99))(whole)
    data = whole.read_bytes()
    for end in range(0, len(data) - 1, 7):
        path = tmp_path / f"{end}{suffix}"
        path.write_bytes(data[:end])
        with contextlib.suppress(StepError):
            unpack(path, tmp_path / f"out{end}")
            # only the padding was cut off
            assert (tmp_path / f"out{end}" / "net" / "saved_model.pb").read_bytes() == b"abc" * 99


def test_the_names_in_a_zip_are_those_of_its_files(tmp_path: Path) -> None:
    zipped(("a/", b""), ("a/b", b"1"))(tmp_path / "a.zip")
    assert zip_names(tmp_path / "a.zip") == ["a/b"]
    (tmp_path / "b.zip").write_bytes(b"PK\x03\x04 nothing")
    assert zip_names(tmp_path / "b.zip") is None
