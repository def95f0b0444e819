"""The URL of a storage: it leads to the server, and never shows its password."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airbo.lab import FileError, StorageError
from airbo.lab.url import StorageURL
from tests.lab.common import LINE, edited, settings

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


@given(text=st.text())
def test_what_is_no_url_of_a_storage_is_refused_in_words(text):
    with pytest.raises(StorageError, match="storage must be a URL such as sqlite"):
        StorageURL(text)


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
