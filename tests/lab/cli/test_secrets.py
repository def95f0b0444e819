"""No command prints, logs or writes a password, whatever characters it has."""

import json
import logging
import socket
import traceback

import pytest
from typer.testing import CliRunner

from airbo.lab import Campaign, CampaignError
from airbo.lab.cli.app import app
from tests.lab.common import LINE, edited

PASSWORDS = ("s3cret@w0rd", "s3cret#w0rd", 's3cret"w0rd', "s3cret@127.0.0.1/w0rd")
"""Characters that end a part of a URL, or are written otherwise; test_url has many more."""
MARKS = ("s3cr", "w0rd")
"""Every password has these parts; nothing else in these campaigns does."""

COMMANDS = [
    ["check"], ["ask"], ["tell", "0", "1.5"], ["fail", "0"], ["status"],
    ["recommend"], ["export", "-o", "all.csv"], ["import", "before.csv"], ["report"],
    ["serve", "--port", "0"], ["run", "--command", "echo 1", "--budget", "2"], ["front"],
    ["backup", "copy.db"], ["check", "--data"], ["export", "--damaged"], ["undo"],
    ["exclude", "0", "--why", "loose"], ["include", "0"], ["note", "0", "hot"],
    ["import", "--study", "sqlite:///other.db", "study"],
]  # fmt: skip
PLACES = {
    "url": "postgresql://ann:{}@127.0.0.1:{}/lab",
    "url without //": "postgresql:ann:{}@127.0.0.1:{}/lab",
    "query": "postgresql://ann@127.0.0.1:{1}/lab?password={0}",
    "elsewhere": "postgresql://ann@127.0.0.1:{1}/lab",
}


@pytest.fixture(scope="module")
def closed_port():
    """A port at which nobody listens, as long as the test holds it."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield held.getsockname()[1]


def outputs(folder, words):
    """Run a command for people and for programs; return all that it printed."""
    for more in ([], ["--json"]):
        file = [] if words[0] in ("check", "init") else ["-f", str(folder / "campaign.toml")]
        named = [str(folder / "campaign.toml")] if words[0] == "check" else []
        result = CliRunner().invoke(app, [words[0], *named, *words[1:], *file, *more])
        assert isinstance(result.exception, SystemExit | None), words
        yield result.output + str(result.exception)


def prepared(folder, password, place, port, monkeypatch):
    """Write a campaign whose server has a password."""
    monkeypatch.chdir(folder)
    (folder / "before.csv").write_text("x,value\n0.5,1.0\n")
    url = PLACES[place].format(password, port)
    storage = f"storage = {json.dumps(url, ensure_ascii=False)}\n"
    if place == "elsewhere":
        monkeypatch.setenv("PGPASSWORD", password)
    path = folder / "campaign.toml"
    path.write_text(edited(LINE, 'storage = "sqlite:///campaign.db"\n', storage), encoding="utf-8")
    return path


def assert_hidden(text):
    assert not any(mark in text for mark in MARKS), text


@pytest.mark.parametrize("password", PASSWORDS)
@pytest.mark.parametrize("place", PLACES)
def test_no_command_shows_a_password(
    tmp_path, monkeypatch, capfd, caplog, closed_port, password, place
):
    caplog.set_level(logging.DEBUG)
    path = prepared(tmp_path, password, place, closed_port, monkeypatch)
    for words in COMMANDS if place == "elsewhere" else [["status"]]:
        for output in outputs(tmp_path, words):
            assert_hidden(output)
    try:
        Campaign.open(path)
    except CampaignError as error:
        assert_hidden("".join(traceback.format_exception(error)) + repr(error))
    said = capfd.readouterr()
    assert_hidden(said.out + said.err + caplog.text)
    for file in tmp_path.iterdir():
        if file.name != "campaign.toml":
            assert_hidden(file.read_bytes().decode("utf-8", "replace"))


@pytest.mark.parametrize("password", PASSWORDS)
def test_init_refuses_a_password_on_the_command_line(tmp_path, monkeypatch, password):
    monkeypatch.chdir(tmp_path)
    url = f"postgresql://ann:{password}@127.0.0.1/lab"
    words = ["init", "--name", "a", "--parameter", "x=0:1", "--storage", url]
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 4
    assert "must not hold a password" in " ".join(result.output.split())
    assert_hidden(result.output)
    assert not list(tmp_path.iterdir())
