"""The server as a process: killed, and started again."""

import http.client
import random
import re
import threading
import time
from urllib.parse import urlencode, urlsplit

import pytest

from airbo.lab import Campaign
from tests.lab.serve.common import QUICK, write
from tests.lab.serve.client import Answer
from tests.lab.serve.processes import serving

N = 40


def request(host, port, method, path, body=None, **headers):
    """Send one request; return the answer, read and closed."""
    connection = http.client.HTTPConnection(host, port, timeout=60)
    try:
        connection.request(method, path, body, headers)
        answer = connection.getresponse()
        found = [(name.lower(), value) for name, value in answer.getheaders()]
        return Answer(answer.status, found, answer.read())
    finally:
        connection.close()


class Person:
    """Tells one value after the other over the network, and remembers what was acknowledged."""

    def __init__(self, url):
        self.place = urlsplit(url).hostname, urlsplit(url).port
        self.acknowledged = []
        page = request(*self.place, "GET", "/")
        self.cookie = page.header("set-cookie").partition(";")[0]
        self.forms = page.forms

    def tell_all(self, numbers):
        for number in numbers:
            form = self.forms[f"/tell/{number}"] | {"value": str(number + 0.5)}
            try:
                answer = request(
                    *self.place,
                    "POST",
                    f"/tell/{number}",
                    urlencode(form),
                    Cookie=self.cookie,
                    Origin="http://{}:{}".format(*self.place),
                    **{"Content-Type": "application/x-www-form-urlencoded"},
                )
            except (OSError, http.client.HTTPException):
                return
            assert answer.status == 303
            self.acknowledged.append(number)


@pytest.mark.parametrize("text", [LINE, pytest.param(SQLITE, marks=pytest.mark.slow)])
def test_what_a_killed_server_acknowledged_is_in_the_storage(tmp_path, text):
    c = campaign(tmp_path, text)
    c.ask(N)
    c.close()
    with serving(tmp_path / "campaign.toml") as (process, url):
        person = Person(url)
        teller = threading.Thread(target=person.tell_all, args=(range(N),))
        teller.start()
        wanted = random.Random(1).randrange(3, 12)
        while len(person.acknowledged) < wanted:
            time.sleep(0.001)
        process.kill()
        teller.join()
    done = {e.number: e.value for e in Campaign.open(tmp_path / "campaign.toml").experiments}
    assert wanted <= len(person.acknowledged) < N
    for number in person.acknowledged:
        assert done[number] == number + 0.5
    told = [n for n, value in done.items() if value is not None]
    assert len(told) <= len(person.acknowledged) + 1  # the one that was on its way


@pytest.mark.slow
@pytest.mark.parametrize("storage", ["journal", "server"])
def test_a_server_killed_again_and_again_loses_and_doubles_nothing(tmp_path, request, storage):
    text = edited(LINE, '"line"', f'"{tmp_path.name}"')
    if storage == "server":
        url = request.getfixturevalue("postgres_url")
        text = edited(text, "journal:///campaign.journal", url)
    with campaign(tmp_path, text) as c:
        c.ask(N)
    acknowledged, rng = [], random.Random(2)
    for _ in range(6):
        with serving(tmp_path / "campaign.toml") as (process, link):
            person = Person(link)
            left = [n for n in range(N) if f"/tell/{n}" in person.forms]
            teller = threading.Thread(target=person.tell_all, args=(left,))
            teller.start()
            wanted = rng.randrange(1, 6)
            while len(person.acknowledged) < min(wanted, len(left)):
                time.sleep(0.001)
            process.kill()
            teller.join()
        acknowledged += person.acknowledged
        with Campaign.open(tmp_path / "campaign.toml") as c:
            told = {e.number: e.value for e in c.experiments if e.has_outcome}
            assert len(c.experiments) == N
        assert told.keys() >= set(acknowledged)
        assert all(value == number + 0.5 for number, value in told.items())
        assert len(told) <= len(acknowledged) + 6  # at most one on its way at each kill
    assert len(acknowledged) == len(set(acknowledged)) > 6


def test_other_addresses_print_a_link_with_a_token(tmp_path):
    campaign(tmp_path).close()
    options = ["--host", "0.0.0.0"]
    with serving(tmp_path / "campaign.toml", *options, AIRBO_TOKEN="abcdef") as (_, url):
        assert re.fullmatch(r"http://[^/]+:\d+/\?token=abcdef", url)
        port = urlsplit(url).port
        for query, status in (("", 401), ("?token=abcdef", 303), ("?token=abc", 403)):
            assert request("127.0.0.1", port, "GET", f"/{query}").status == status
