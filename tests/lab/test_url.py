"""The URL of a storage: it leads to the server, and never shows its password."""

import copy
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy.engine import make_url

from airbo.lab import FileError, StorageError
from airbo.lab.url import StorageURL
from tests.lab.common import LINE, edited, settings

SERVER = 'storage = "postgresql://ann@host/lab"\n'


REFUSED = [
    "postgresql://ann:se:c@ret@host:5432/lab",
    "postgresql://ann:pw/x@host",
    "postgresql://ann:my pw@host/lab",
    "postgresql+psycopg://ann@h/d?password=y&a=1",
    "postgresql://ann@h/d?PASSWD=y",
    "mysql://:x@h/d",
    "postgresql:ann:pw@host",
    "postgresql://ann:secret",
    "ann:pw@host",
    "pw@host",
    "host=x password=y",
]


@pytest.mark.parametrize("url", REFUSED)
def test_a_url_that_may_hold_a_password_is_refused_and_not_quoted(url):
    with pytest.raises(StorageError, match="must not hold a password") as caught:
        StorageURL(url)
    assert "got" not in str(caught.value)


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://ann@host/lab",
        "postgresql+psycopg://ann@[::1]:5432/lab?sslmode=require&connect_timeout=3",
        "postgresql:///lab",
        "postgresql://a%40b@host",
        "sqlite:///a.db",
    ],
)
def test_a_url_without_a_password_is_shown_as_it_is(url):
    assert str(StorageURL(url)) == url
    assert url in repr(StorageURL(url))


secrets = st.text(min_size=1).filter(lambda text: "\x00" not in text)


@given(password=secrets)
def test_any_password_reaches_the_driver_and_nobody_else(password):
    url = StorageURL("postgresql://ann@host:5432/lab", password)
    assert make_url(url.to_connect()).password == password
    assert str(url) == "postgresql://ann@host:5432/lab"
    assert not url.is_safe(f"no host '{password}' here")


@given(text=st.text())
def test_what_is_no_url_of_a_storage_is_refused_in_words(text):
    with pytest.raises(StorageError, match="storage must be a URL such as sqlite"):
        StorageURL(text)


def test_copies_and_json_hide_the_password_too():
    url = StorageURL("postgresql://ann@host/lab", "s3cret")
    both = [copy.deepcopy(url), copy.copy(url)]
    assert [make_url(each.to_connect()).password for each in both] == ["s3cret", "s3cret"]
    assert "s3cret" not in repr(both) + json.dumps(both, default=str)


def password_of(settings):
    return make_url(settings.storage.to_connect()).password


def test_a_password_comes_from_a_file_or_the_environment(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "password.txt").write_text("p@ss word\n")
    text = edited(LINE, 'storage = "sqlite:///campaign.db"\n', SERVER)
    named = text.replace(SERVER, SERVER + 'storage_password_file = "password.txt"\n')
    assert password_of(settings(text)) is None
    assert password_of(settings(named)) == "p@ss word"
    monkeypatch.setenv("AIRBO_STORAGE_PASSWORD", "other")
    assert password_of(settings(named)) == "other"
    assert "other" not in repr(settings(named)) + repr(settings(named).top)


@pytest.mark.parametrize(
    ("line", "content", "message"),
    [
        ('storage_password_file = "none.txt"', "x", "'none.txt' with the password cannot be read"),
        ('storage_password_file = "password.txt"', "a\nb", "must hold the password on one line"),
        ('storage_password_file = "password.txt"', "\n", "must hold the password on one line"),
        ("storage_password_file = 3", "x", "storage_password_file must be a text in quotes"),
    ],
)
def test_a_password_that_cannot_be_read_is_a_mistake(tmp_path, monkeypatch, line, content, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "password.txt").write_text(content)
    with pytest.raises(FileError, match=message):
        settings(f"{line}\n{LINE}")


def test_a_storage_that_is_no_text_is_not_quoted():
    text = edited(LINE, '"sqlite:///campaign.db"', '["postgresql://ann:s3cret@host/lab"]')
    with pytest.raises(FileError, match="storage must be a text in quotes") as caught:
        settings(text)
    assert "s3cret" not in str(caught.value)


def test_a_file_whose_storage_holds_a_password_is_refused_and_nothing_of_it_is_quoted():
    text = edited(LINE, "sqlite:///campaign.db", "postgresql://ann:s3cret@host/lab")
    with pytest.raises(FileError, match="line 4: storage must be a URL") as caught:
        settings(text)
    assert "s3cret" not in str(caught.value) + repr(caught.value)
