"""A server that answers as the hub does: what it is asked, and that the token goes to it alone."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest
from servers import send, serving

from anfbuild import sources
from anfbuild.errors import AnfbuildError, RecipeError, StepError
from anfbuild.sources.downloads import Downloads, Limits

BODY = bytes(range(256)) * 400
DIGEST = hashlib.sha256(BODY).hexdigest()
COMMIT = "0123456789abcdef" * 2 + "01234567"
SECRET = "hf_never-shown"
QUICK = Downloads(limits=Limits(pause_s=0.0, idle_s=5))


class Hub:
    """The hub and, behind a redirect, the host that has the bytes; what each was told of who asks."""

    def __init__(self) -> None:
        self.told: dict[str, list[str | None]] = {"hub": [], "store": []}
        self.store = ""
        self.needs_token = False

    def answer(self, request: BaseHTTPRequestHandler) -> None:
        self.told["hub"].append(request.headers.get("Authorization"))
        prefix = f"/me/net/resolve/{COMMIT}/"
        if request.path.startswith(f"/old/net/resolve/{COMMIT}/"):
            send(request, 307, b"", Location=request.path.replace("/old/", "/me/"))
        elif not request.path.startswith(prefix):
            send(request, 404, b"Repository not found")
        elif self.needs_token and not request.headers.get("Authorization"):
            send(request, 401, b"Invalid username or password.")
        elif request.path == f"{prefix}onnx/m%20a.onnx":
            send(request, 302, b"", Location=f"{self.store}/bytes?Signature=secret-of-the-store")
        elif request.path == f"{prefix}small.onnx":
            send(request, 200, BODY, ETag='"git"')
        elif request.path == f"{prefix}unsafe.onnx":
            send(request, 302, b"", Location="http://models.example.org/m?Signature=secret-of-the-store")
        else:
            send(request, 404, b"Entry not found")

    def bytes(self, request: BaseHTTPRequestHandler) -> None:
        self.told["store"].append(request.headers.get("Authorization"))
        send(request, 200, BODY, ETag='"1"')


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Hub]:
    hub = Hub()
    with serving(hub.answer) as front, serving(hub.bytes) as store:
        hub.store = store.url.replace("127.0.0.1", "localhost")
        monkeypatch.setenv("HF_ENDPOINT", f"{front.url}/")
        for name in ("HF_TOKEN", "HF_TOKEN_PATH", "XDG_CACHE_HOME"):
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
        yield hub


def fetch(folder: Path, file: str = "onnx/m a.onnx", repo: str = "me/net", sha256: str | None = DIGEST) -> Path:
    return sources.fetch(
        "huggingface", repo=repo, revision=COMMIT, file=file, sha256=sha256, folder=folder, downloads=QUICK
    )


@pytest.mark.parametrize("file", ["onnx/m a.onnx", "small.onnx"])
def test_a_file_comes_under_its_name_at_the_pinned_commit(hub: Hub, tmp_path: Path, file: str) -> None:
    path = fetch(tmp_path / "out", file)
    assert path == tmp_path / "out" / file.rpartition("/")[2]
    assert path.read_bytes() == BODY
    assert hub.told["hub"] == [None]


def test_the_token_goes_to_the_endpoint_and_to_no_other_host(
    hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_TOKEN", SECRET)
    hub.needs_token = True
    fetch(tmp_path, repo="old/net")
    assert hub.told == {"hub": [f"Bearer {SECRET}"] * 2, "store": [None]}


@pytest.mark.parametrize("place", ["HF_TOKEN_PATH", "HF_HOME"])
def test_the_token_may_lie_where_the_hubs_tools_keep_it(
    hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    (tmp_path / "token").write_text(f"{SECRET}\n")
    monkeypatch.setenv(place, str(tmp_path / "token" if place == "HF_TOKEN_PATH" else tmp_path))
    fetch(tmp_path / "out")
    assert hub.told["hub"] == [f"Bearer {SECRET}"]


@pytest.mark.parametrize(
    ("file", "repo", "words"),
    [
        ("onnx/m a.onnx", "me/net", "Set HF_TOKEN to a token that may read me/net"),
        ("none.onnx", "me/net", "Set HF_TOKEN"),
        ("m.onnx", "me/none", "Correct source.repo, source.revision or source.file"),
    ],
)
def test_what_is_not_given_says_what_to_do(hub: Hub, tmp_path: Path, file: str, repo: str, words: str) -> None:
    hub.needs_token = True
    with pytest.raises(StepError, match=r"answers 40[14]") as caught:
        fetch(tmp_path / "out", file, repo)
    assert words in (caught.value.remedy or "")
    assert len(hub.told["hub"]) == 1


@pytest.mark.usefixtures("hub")
def test_no_secret_is_in_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", SECRET)
    for file, sha256 in (("unsafe.onnx", DIGEST), ("onnx/m a.onnx", "0" * 64), ("onnx/m a.onnx", None), ("x", DIGEST)):
        with pytest.raises(AnfbuildError) as caught:
            fetch(tmp_path / "out", file, sha256=sha256)
        assert SECRET not in str(caught.value)
        assert "secret-of-the-store" not in str(caught.value)
    monkeypatch.setenv("HF_TOKEN", f"{SECRET} \nX: y")
    with pytest.raises(RecipeError, match="no header can") as odd:
        fetch(tmp_path / "out")
    assert SECRET not in str(odd.value)
    assert odd.value.where == "HF_TOKEN"


def test_an_endpoint_that_is_not_protected_is_refused(
    hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_ENDPOINT", "http://hub.example.org")
    with pytest.raises(RecipeError, match="not protected") as caught:
        fetch(tmp_path / "out")
    assert caught.value.where == "HF_ENDPOINT"
    assert hub.told["hub"] == []


@pytest.mark.usefixtures("hub")
def test_a_missing_pin_is_told(tmp_path: Path) -> None:
    with pytest.raises(RecipeError, match="is not pinned") as caught:
        fetch(tmp_path / "out", sha256=None)
    assert DIGEST in (caught.value.remedy or "")
    assert "127.0.0.1" not in str(caught.value)


@pytest.mark.parametrize(
    ("keys", "where"),
    [
        ({"revision": "main"}, "source.revision"),
        ({"revision": COMMIT[:39]}, "source.revision"),
        ({"repo": "me/../net"}, "source.repo"),
        ({"repo": "https://hub.example.org/me/net"}, "source.repo"),
        ({"file": "../m.onnx"}, "source.file"),
        ({"url": "https://hub.example.org"}, "source.url"),
        ({"sha256": "abc"}, "source.sha256"),
    ],
)
def test_what_is_malformed_is_refused_before_any_work(keys: dict[str, str], where: str) -> None:
    with pytest.raises(RecipeError) as caught:
        sources.check("huggingface", **{"repo": "me/net", "revision": COMMIT, "file": "m.onnx", **keys})
    assert caught.value.where == where
