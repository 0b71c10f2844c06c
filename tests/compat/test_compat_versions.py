import importlib.util
import platform
import subprocess
import sys
from importlib import metadata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.specifiers import InvalidSpecifier, SpecifierSet

from anfbuild.compat import Part, check
from anfbuild.errors import RecipeError, VersionError


@pytest.fixture
def installed(monkeypatch, tmp_path):
    """Pretend that distributions are installed on a host that onnxruntime-qnn has a wheel for."""

    def pretend(versions, info="qnn_version = '2.51.0'\n"):
        def version(name):
            if name not in versions:
                raise metadata.PackageNotFoundError(name)
            return versions[name]

        folder = tmp_path / "onnxruntime_qnn"
        if "onnxruntime-qnn" in versions:
            folder.mkdir()
            (folder / "__init__.py").write_text("raise RuntimeError('vendor code was run')\n")
            if info is not None:
                (folder / "build_and_package_info.py").write_text(info)
        monkeypatch.setattr(metadata, "version", version)
        monkeypatch.setattr(sys, "platform", "linux")
        monkeypatch.setattr(platform, "machine", lambda: "x86_64")
        monkeypatch.setattr(sys, "path", [str(tmp_path)])
        monkeypatch.delitem(sys.modules, "onnxruntime_qnn", raising=False)
        importlib.invalidate_caches()

    return pretend


def test_matching_parts_are_verified_in_the_order_of_their_names(installed):
    installed({"onnxruntime": "1.32.0", "onnxruntime-qnn": "2.7.0"})
    parts = check({"qnn": ">=2.51,<2.52", "onnxruntime-qnn": ">=2.7,<2.8", "onnxruntime": ">=1.32,<1.33"})
    assert parts == [
        Part("onnxruntime", ">=1.32,<1.33", "1.32.0", verified=True),
        Part("onnxruntime-qnn", ">=2.7,<2.8", "2.7.0", verified=True),
        Part("qnn", ">=2.51,<2.52", "2.51.0", verified=True),
    ]
    expected = {"part": "onnxruntime", "required": ">=1.32,<1.33", "found": "1.32.0", "verified": True, "reason": None}
    assert parts[0].to_json() == expected


@pytest.mark.parametrize(
    ("part", "required", "found"),
    [
        ("onnxruntime", "<1", "1.32.0"),
        ("onnxruntime-qnn", "==2.6.*", "2.7.0"),
        ("qnn", ">=2.52", "2.51.0"),
    ],
)
def test_other_version_is_an_error_that_names_both_and_the_remedy(installed, part, required, found):
    installed({"onnxruntime": "1.32.0", "onnxruntime-qnn": "2.7.0"})
    with pytest.raises(VersionError) as caught:
        check({part: required})
    message = str(caught.value)
    assert caught.value.exit_code == 4
    assert f"{part} {required} is required, and {found} is installed" in message
    assert "pip install" in message


def test_missing_runtime_is_an_error(installed):
    installed({})
    with pytest.raises(VersionError, match="onnxruntime >=1 is required, and none is found"):
        check({"onnxruntime": ">=1"})


@pytest.mark.parametrize("part", ["onnxruntime-qnn", "qnn"])
def test_missing_compiler_is_an_error_where_it_could_be_had(installed, monkeypatch, part):
    installed({})
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    with pytest.raises(VersionError, match=f"{part} >=1 is required, and none is found"):
        check({part: ">=1"})


@pytest.mark.parametrize("info", [None, "", "qnn_version = 2\n", "qnn_version = (\n", "other = '2.51'\n"])
def test_wheel_that_does_not_state_its_sdk_is_an_error(installed, info):
    installed({"onnxruntime-qnn": "2.7.0"}, info)
    with pytest.raises(VersionError, match="qnn >=2 is required, and none is found"):
        check({"qnn": ">=2"})


def test_version_that_follows_no_scheme_does_not_match(installed):
    installed({"onnxruntime-qnn": "2.7.0"}, "qnn_version = 'nightly'\n")
    with pytest.raises(VersionError, match="nightly"):
        check({"qnn": ">=2"})


@pytest.mark.parametrize(("system", "machine"), [("darwin", "arm64"), ("linux", "riscv64"), ("win32", "x86")])
def test_part_that_the_platform_cannot_have_is_no_error(installed, monkeypatch, system, machine):
    installed({"onnxruntime": "1.32.0"})
    monkeypatch.setattr(sys, "platform", system)
    monkeypatch.setattr(platform, "machine", lambda: machine)
    runtime, provider, sdk = check({"onnxruntime": ">=1.32", "onnxruntime-qnn": ">=2.7", "qnn": ">=2.51"})
    assert runtime.verified
    for part in (provider, sdk):
        assert (part.found, part.verified) == (None, False)
        assert machine in part.reason


def test_unknown_part_is_refused_with_the_choices():
    with pytest.raises(RecipeError, match="did you mean 'onnxruntime'") as caught:
        check({"onnxruntim": ">=1"})
    assert caught.value.choices == ["onnxruntime", "onnxruntime-qnn", "qnn"]
    assert caught.value.where == "versions.onnxruntim"


@pytest.mark.parametrize("text", ["banana", "1.32", ">=", None, 3, [">=1"]])
def test_bad_specifier_is_refused(text):
    with pytest.raises(RecipeError) as caught:
        check({"onnxruntime": text})
    assert caught.value.where == "versions.onnxruntime"


@given(st.text(max_size=12))
def test_any_text_is_judged_without_a_traceback(text):
    try:
        matches = SpecifierSet(text).contains(metadata.version("onnxruntime"), prereleases=True)
    except InvalidSpecifier:
        with pytest.raises(RecipeError):
            check({"onnxruntime": text})
        return
    if matches:
        assert check({"onnxruntime": text})[0].verified
    else:
        with pytest.raises(VersionError):
            check({"onnxruntime": text})


def test_nothing_required_is_nothing_checked():
    assert check({}) == []


def test_check_imports_no_runtime():
    code = (
        "import sys\n"
        "from anfbuild.compat import check\n"
        "check({'onnxruntime': '>=1'})\n"
        "print(sorted({'numpy', 'onnx', 'onnxruntime', 'onnxruntime_qnn'} & set(sys.modules)))\n"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"
