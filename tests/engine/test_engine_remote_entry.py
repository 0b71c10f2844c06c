"""An entry from outside is the result that was sent, or it is refused."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anfbuild.engine.remote.entry import decode, encode
from anfbuild.engine.result import Result

KEY = "a" * 64
SHA = st.text("0123456789abcdef", min_size=64, max_size=64)
PART = st.text("abcXYZ0-_. é", min_size=1, max_size=8).filter(lambda part: part.strip(". ") != "")
BLOB = st.tuples(SHA, st.integers(0, 1 << 40))
FILES = st.dictionaries(st.builds("{}.f".format, PART), BLOB, max_size=4)
FOLDERS = st.dictionaries(st.builds("{}.d/{}/{}".format, PART, PART, PART), BLOB, max_size=4)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


@given(SHA, FILES, FOLDERS)
def test_what_is_encoded_comes_back(key: str, files: dict[str, Any], folders: dict[str, Any]) -> None:
    result = Result(key, {**files, **folders})
    assert decode(key, encode(result)) == Result(key, result.files, remote=True)


@given(SHA, SHA, FILES)
def test_another_keys_entry_is_refused(key: str, other: str, files: dict[str, Any]) -> None:
    if key != other:
        with pytest.raises(ValueError, match="another key"):
            decode(other, encode(Result(key, files)))


@given(FILES.filter(bool), st.data())
def test_a_changed_output_is_refused(files: dict[str, Any], data: st.DataObject) -> None:
    document = json.loads(encode(Result(KEY, files)))
    output = data.draw(st.sampled_from(document["outputFiles"]))
    if data.draw(st.booleans()):
        output["path"] += "x"
    else:
        output["digest"]["sizeBytes"] = str(int(output["digest"]["sizeBytes"]) + 1)
    with pytest.raises(ValueError, match="was changed"):
        decode(KEY, json.dumps(document).encode())


@given(JSON)
def test_any_json_is_an_entry_or_a_value_error(value: object) -> None:
    with pytest.raises(ValueError):  # noqa: PT011  # of many texts
        decode(KEY, json.dumps(value).encode())


@given(st.binary(max_size=40), JSON, st.sampled_from(["stdoutRaw", "outputFiles"]))
def test_any_part_may_be_anything(data: bytes, value: object, part: str) -> None:
    good = Result(KEY, {"a": ("0" * 64, 1)})
    with pytest.raises(ValueError):  # noqa: PT011
        decode(KEY, data)
    document = json.loads(encode(good))
    document[part] = value
    with pytest.raises(ValueError):  # noqa: PT011
        decode(KEY, json.dumps(document).encode())


@pytest.mark.parametrize(
    "name", ["../a", "/a", "a/../b", "C:a", "a\\b", "a\0", "n" * 300, "a/" * 600 + "a", "a\nb", "\ud800", "", "."]
)
def test_a_name_that_cannot_be_written_is_refused_though_well_bound(name: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011
        decode(KEY, encode(Result(KEY, {name: ("0" * 64, 1)})))


def test_a_file_cannot_be_a_folder_too() -> None:
    with pytest.raises(ValueError, match="cannot have the name"):
        decode(KEY, encode(Result(KEY, {"a": ("0" * 64, 1), "a/b": ("0" * 64, 1)})))


def test_an_entry_is_an_action_result_that_a_server_may_write_anew() -> None:
    """As bazel-remote does: other order and spaces, zeros left out, the worker noted."""
    document = json.loads(encode(Result(KEY, {"b": ("1" * 64, 0), "a": ("0" * 64, 7)})))
    assert document["exitCode"] == 0
    assert json.loads(base64.b64decode(document["stdoutRaw"]))["key"] == KEY
    del document["exitCode"], document["outputFiles"][0]["digest"]["sizeBytes"]
    document["outputFiles"].reverse()
    document["executionMetadata"] = {"worker": "127.0.0.1"}
    again = json.dumps(document, indent=2).encode()
    assert decode(KEY, again).files == {"b": ("1" * 64, 0), "a": ("0" * 64, 7)}
