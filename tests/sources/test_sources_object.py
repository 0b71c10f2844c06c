"""Objects of a store: what is refused before it is asked, and (--full) SeaweedFS."""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from real_servers import seaweedfs

from anfbuild import sources
from anfbuild.errors import RecipeError, StepError
from anfbuild.sources.downloads import Downloads, Limits

BODY = bytes(range(256)) * 20_000
DIGEST = hashlib.sha256(BODY).hexdigest()


@pytest.mark.parametrize(
    "url",
    [
        "https://bucket/m.onnx",
        "s3://bucket",
        "s3://bucket/",
        "s3://bucket/a/../m.onnx",
        "s3://bucket//m.onnx",
        "s3://me:hidden@bucket/m.onnx",
        "s3://bucket/m.onnx?X-Amz-Signature=hidden",
        "s3://bucket/a\\m.onnx",
        "s3:///m.onnx",
    ],
)
def test_a_malformed_address_is_refused(url: str) -> None:
    with pytest.raises(RecipeError, match="not the address of an object") as caught:
        sources.check("object", url=url)
    assert caught.value.where == "source.url"
    assert "hidden" not in str(caught.value)


@pytest.mark.parametrize("url", ["s3://a-bucket/models/m 1.onnx", "gs://b/m", "az://container/m.onnx"])
def test_addresses_of_every_store_are_taken(url: str) -> None:
    sources.check("object", url=url, sha256=DIGEST)


def test_the_extra_that_is_missing_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "obstore", None)
    with pytest.raises(StepError, match="needs the package obstore") as caught:
        sources.fetch("object", url="s3://bucket/m.onnx", sha256=DIGEST, folder=tmp_path)
    assert "anfbuild[remote]" in (caught.value.remedy or "")


@pytest.fixture
def bucket(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The address of a folder in a bucket, with BODY in it as `m.onnx`."""
    with seaweedfs(tmp_path, monkeypatch) as url:
        put(url, "m.onnx", BODY)
        yield url


def put(url: str, key: str, data: bytes) -> None:
    from anfbuild import objects

    objects.obstore.put(objects.open_store(url, allow_http=True), key, data)


@pytest.mark.full
def test_an_object_comes_verified_and_an_interrupted_one_goes_on(bucket: str, tmp_path: Path) -> None:
    def fetch(key: str = "m.onnx", sha256: str = DIGEST) -> Path:
        return sources.fetch(
            "object", url=f"{bucket}/{key}", sha256=sha256, folder=tmp_path / "out", downloads=settings
        )

    told: list[int] = []

    def stop(received: int, total: int | None) -> None:
        assert total == len(BODY)
        told.append(received)
        if stopping and received > 10**6:
            raise KeyboardInterrupt

    stopping = True
    settings = Downloads(keep=tmp_path / "keep", tell=stop, limits=Limits(tell_s=0.0, pause_s=0.0))
    with pytest.raises(KeyboardInterrupt):
        fetch()
    (part,) = (tmp_path / "keep").glob("*.part")
    came = part.stat().st_size
    assert 0 < came < len(BODY)
    stopping = False
    told.clear()
    assert fetch().read_bytes() == BODY
    assert told[0] == came

    stopping = True
    with pytest.raises(KeyboardInterrupt):
        fetch()
    (note,) = (tmp_path / "keep").glob("*.json")
    note.write_text(json.dumps({**json.loads(note.read_text()), "tag": '"another version"'}))
    stopping = False
    assert fetch().read_bytes() == BODY

    with pytest.raises(StepError, match="there is no such object"):
        fetch("none.onnx")
    with pytest.raises(StepError, match="is not the pinned file"):
        fetch(sha256="0" * 64)


@pytest.mark.full
def test_wrong_credentials_are_told_in_few_words(bucket: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wrong-secret")
    with pytest.raises(StepError, match="cannot be fetched: permission denied") as caught:
        sources.fetch("object", url=f"{bucket}/m.onnx", sha256=DIGEST, folder=tmp_path / "out")
    assert "wrong-secret" not in str(caught.value)
