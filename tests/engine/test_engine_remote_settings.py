"""A remote is where the user says, and no secret is where it can be seen."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from anfbuild.engine.remote.connect import connect
from anfbuild.engine.remote.credentials import authorization
from anfbuild.engine.remote.settings import Settings, read
from anfbuild.errors import RecipeError

HERE = Path("/project")


def told(url: str, **environ: str) -> Settings | None:
    return read({"ANFBUILD_REMOTE": url, **environ}, HERE)


def test_without_a_url_there_is_no_remote() -> None:
    assert read({"ANFBUILD_REMOTE_WRITE": "1"}, HERE) is None
    assert told("") is None


def test_the_environment_says_where_and_whether_to_write() -> None:
    assert told("https://host/x/") == Settings("https://host/x")
    assert told("https://host", ANFBUILD_REMOTE_WRITE="1", ANFBUILD_REMOTE_WAIT="7") == Settings(
        "https://host", write=True, wait_s=7
    )


def test_the_command_line_comes_first() -> None:
    assert read({"ANFBUILD_REMOTE": "http://a"}, HERE, url="http://b", push=True) == Settings("http://b", write=True)
    with pytest.raises(RecipeError, match=r"(?s)--push: there is no remote.*http://HOST"):
        read({}, HERE, push=True)


@pytest.mark.parametrize(
    ("url", "folder"),
    [
        ("/srv/x", "/srv/x"),
        ("share/x", "/project/share/x"),
        (" /srv/x\n", "/srv/x"),
        ("~no such user/x", "/project/~no such user/x"),
        ("file:///srv/a%20b", "/srv/a b"),
    ],
)
def test_a_folder_may_be_a_path_or_a_url(url: str, folder: str) -> None:
    assert told(url) == Settings(folder)
    assert Settings(folder).scheme == "file"


@pytest.mark.parametrize(
    "url",
    ["ftp://host", "htps:/host", "http://", "http:host", "http://host:port", "http://[", "s3://", "file://host/x",
     "file:x", "https://host/x?sig=secret", "https://host/#secret"],
)  # fmt: skip
def test_a_url_that_cannot_be_is_an_error_that_names_the_variable(url: str) -> None:
    with pytest.raises(RecipeError) as error:
        told(url)
    assert str(error.value).startswith("ANFBUILD_REMOTE: ")
    assert "secret" not in str(error.value)


@pytest.mark.parametrize("value", ["yes", "2", "-1"])
def test_a_switch_is_on_or_off_and_a_time_a_number(value: str) -> None:
    with pytest.raises(RecipeError, match=r"(?s)ANFBUILD_REMOTE_WRITE: .*choices: 0, 1"):
        told("http://host", ANFBUILD_REMOTE_WRITE=value)
    with pytest.raises(RecipeError, match="ANFBUILD_REMOTE_WAIT"):
        told("http://host", ANFBUILD_REMOTE_WAIT=value.replace("2", "2.5"))


@pytest.mark.parametrize("url", ["https://user:secret@host", "s3://secret@bucket", "http://:secret@host"])
def test_a_url_with_a_user_points_to_netrc_and_is_not_repeated(url: str) -> None:
    with pytest.raises(RecipeError, match="netrc") as error:
        told(url)
    assert "secret" not in str(error.value)


def test_messages_name_the_server_alone_and_settings_go_to_workers() -> None:
    settings = Settings("https://host:8443/private/path")
    assert settings.name == "https://host:8443"
    assert pickle.loads(pickle.dumps(settings)) == settings


# ---- who


def test_a_token_comes_before_netrc(tmp_path: Path) -> None:
    (tmp_path / "netrc").write_text("machine host login me password secret\n")
    environ = {"NETRC": str(tmp_path / "netrc")}
    assert authorization("https://host/x", environ) == "Basic bWU6c2VjcmV0"
    assert authorization("https://host/x", {**environ, "ANFBUILD_REMOTE_TOKEN": "t"}) == "Bearer t"
    assert authorization("https://other/x", environ) is None


@pytest.mark.parametrize("host", ["127.0.0.1:80", "localhost", "[::1]:80"])
def test_credentials_go_over_plain_http_to_this_machine_only(host: str, tmp_path: Path) -> None:
    token = {"ANFBUILD_REMOTE_TOKEN": "secret"}
    assert authorization(f"http://{host}", token) == "Bearer secret"
    (tmp_path / "netrc").write_text("machine far login me password secret\n")
    for environ in (token, {"NETRC": str(tmp_path / "netrc")}):
        with pytest.raises(RecipeError, match=r"(?s)'far' would be sent over plain HTTP.*https://") as error:
            authorization("http://far", environ)
        assert "secret" not in str(error.value)


def test_what_cannot_be_read_or_sent_is_an_error_without_its_text(tmp_path: Path) -> None:
    (tmp_path / "netrc").write_text("machine host\nsecret word\n")
    with pytest.raises(RecipeError, match="cannot be read") as error:
        authorization("https://host", {"NETRC": str(tmp_path / "netrc")})
    assert "secret" not in str(error.value)
    with pytest.raises(RecipeError, match="ANFBUILD_REMOTE_TOKEN") as error:
        authorization("https://host", {"ANFBUILD_REMOTE_TOKEN": "secret\r\nX: y"})
    assert "secret" not in str(error.value)


def test_a_kind_whose_library_is_missing_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    with pytest.raises(RecipeError, match=r"pip install 'anfbuild\[remote\]'"):
        connect(Settings("s3://bucket/x"), {})
