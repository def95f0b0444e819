"""The URL of a storage: it leads to the server, and never shows its password."""

import copy
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy.engine import make_url

from airbo.lab import FileError, StorageError
from airbo.lab.url import StorageURL
from tests.lab.common import LINE, edited, settings, write

SERVER = 'storage = "postgresql://ann@host/lab"\n'


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://ann:se:c@ret@host:5432/lab", "postgresql://ann:***@host:5432/lab"),
        ("postgresql://ann:pw/x@host", "postgresql://ann:***@host"),
        ("postgresql://ann:my pw@host/lab", "postgresql://ann:***@host/lab"),
        ("postgresql://ann:p?w@[::1]:5/lab", "postgresql://ann:***@[::1]:5/lab"),
        ("postgresql+psycopg://ann:x@h/d?password=y&a=1", "postgresql+psycopg://ann:***@h/d?..."),
        ("postgresql://ann@h/d?application_name=a@b", "postgresql://ann@h/d?..."),
        ("mysql://:x@h/d", "mysql://:***@h/d"),
        ("postgresql://ann@host/lab", "postgresql://ann@host/lab"),
        ("postgresql:ann:pw@host", "postgresql:..."),
        ("postgresql://ann:secret", "postgresql:..."),
        ("ann:pw@host", "ann:..."),
        ("pw@host", "..."),
        ("host=x password=y", "..."),
        ("campaign.db", "campaign.db"),
        ("sqlite:///a.db", "sqlite:///a.db"),
    ],
)
def test_what_is_shown_holds_no_password(url, shown):
    assert str(StorageURL(url)) == shown
    assert shown in repr(StorageURL(url))


secrets = st.text(min_size=1).filter(lambda text: "\x00" not in text)


@given(password=secrets)
def test_any_password_from_elsewhere_reaches_the_driver_and_nobody_else(password):
    url = StorageURL("postgresql://ann@host:5432/lab", password)
    assert make_url(url.to_connect()).password == password
    assert str(url) == "postgresql://ann:***@host:5432/lab"
    assert not url.is_safe(f"no host '{password}' here")


@given(password=secrets.filter(lambda text: "%" not in text))
def test_any_password_in_the_url_is_understood_whatever_its_characters(password):
    url = StorageURL(f"postgresql://ann:{password}@host/lab")
    to_connect = make_url(url.to_connect())
    assert (to_connect.password, to_connect.host) == (password, "host")
    assert str(url) == "postgresql://ann:***@host/lab"


@given(text=st.text())
def test_what_is_no_url_of_a_server_is_refused_in_words(text):
    with pytest.raises(StorageError, match="storage must be a URL such as sqlite"):
        StorageURL(text).to_connect()


def test_copies_and_json_hide_the_password_too():
    url = StorageURL("postgresql://ann@host/lab", "s3cret")
    both = [copy.deepcopy(url), copy.copy(url)]
    assert both == [url, url]
    assert "s3cret" not in repr(both) + json.dumps(both, default=str)
    assert hash(url) == hash(both[0])
    assert url != StorageURL("postgresql://ann@host/lab")


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


def test_the_settings_of_a_campaign_hide_the_password(tmp_path):
    text = edited(LINE, "sqlite:///campaign.db", "postgresql://ann:s3cret@host/lab")
    read = settings(text)
    write(tmp_path, text)
    assert "s3cret" not in repr(read) + repr(read.top) + repr(vars(read))
