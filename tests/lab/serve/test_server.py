"""The server as a process: killed, and started again."""

import http.client
import os
import random
import re
import signal
import socket
import threading
import time
from pathlib import Path
from urllib.parse import urlencode, urlsplit

import pytest

from airbo.lab import Campaign
from tests.lab.common import edited, write
from tests.lab.serve.client import Answer
from tests.lab.serve.common import QUICK
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

    def post(self, path, form):
        return request(
            *self.place,
            "POST",
            path,
            urlencode(form),
            Cookie=self.cookie,
            Origin="http://{}:{}".format(*self.place),
            **{"Content-Type": "application/x-www-form-urlencoded"},
        )

    def tell_all(self, numbers):
        for number in numbers:
            form = self.forms[f"/tell/{number}"]
            entries = {"outcome:roughness": str(number + 0.5), "sure": "yes"}
            try:
                answer = self.post(f"/tell/{number}", form | entries)
            except (OSError, http.client.HTTPException):
                return
            assert answer.status == 303
            self.acknowledged.append(number)


def begun(folder, n=N):
    """The file of a campaign with pending experiments."""
    file = write(folder, QUICK)
    with Campaign.open(file) as campaign:
        campaign.ask(n)
    return file


def told(file):
    with Campaign.open(file) as campaign:
        return {e.number: e.outcomes["roughness"] for e in campaign.experiments if e.has_outcome}


def test_what_a_killed_server_acknowledged_is_in_the_storage(tmp_path):
    file = begun(tmp_path)
    with serving(file) as (process, url):
        person = Person(url)
        teller = threading.Thread(target=person.tell_all, args=(range(N),))
        teller.start()
        wanted = random.Random(1).randrange(3, 12)
        while teller.is_alive() and len(person.acknowledged) < wanted:
            time.sleep(0.001)
        process.kill()
        teller.join()
    done = told(file)
    assert wanted <= len(person.acknowledged) < N
    for number in person.acknowledged:
        assert done[number] == number + 0.5
    assert len(done) <= len(person.acknowledged) + 1  # the one that was on its way


@pytest.mark.slow
@pytest.mark.parametrize("storage", ["file", "server"])
def test_a_server_killed_again_and_again_loses_and_doubles_nothing(tmp_path, request, storage):
    text = QUICK.replace('"milling"', f'"{tmp_path.name}"')
    if storage == "server":
        text = edited(text, "sqlite:///campaign.db", request.getfixturevalue("postgres_url"))
    file = write(tmp_path, text)
    with Campaign.open(file) as campaign:
        campaign.ask(N)
    acknowledged, rng = [], random.Random(2)
    for _ in range(6):
        with serving(file) as (process, link):
            person = Person(link)
            left = [n for n in range(N) if f"/tell/{n}" in person.forms]
            teller = threading.Thread(target=person.tell_all, args=(left,))
            teller.start()
            wanted = rng.randrange(1, 6)
            while teller.is_alive() and len(person.acknowledged) < min(wanted, len(left)):
                time.sleep(0.001)
            process.kill()
            teller.join()
        acknowledged += person.acknowledged
        done = told(file)
        assert done.keys() >= set(acknowledged)
        assert all(value == number + 0.5 for number, value in done.items())
        assert len(done) <= len(acknowledged) + 6  # at most one on its way at each kill
    assert len(acknowledged) == len(set(acknowledged)) > 6


@pytest.mark.slow
def test_two_hundred_clients_that_tell_at_once_lose_and_double_nothing(tmp_path):
    n = 200
    file = begun(tmp_path, n)
    with serving(file) as (_, url):
        person = Person(url)
        together, refused = threading.Barrier(n), []

        def tell(number):
            form = person.forms[f"/tell/{number}"] | {"outcome:roughness": str(number + 0.5)}
            together.wait()
            for _ in range(20):  # whoever gets no answer sends the same form, with its key, again
                try:
                    answer = person.post(f"/tell/{number}", form | {"sure": "yes"})
                except (OSError, http.client.HTTPException):
                    continue
                if answer.status == 303:
                    return
            refused.append(number)

        tellers = [threading.Thread(target=tell, args=(number,)) for number in range(n)]
        for teller in tellers:
            teller.start()
        for teller in tellers:
            teller.join()
    assert refused == []
    assert told(file) == {number: number + 0.5 for number in range(n)}
    with Campaign.open(file) as campaign:
        changes = [c for c in campaign.history() if c.what == "told"]
        assert sorted(c.numbers for c in changes) == [(number,) for number in range(n)]
        assert campaign.store.check() == 1 + n + n


def processes_of(group):
    """Ids of processes of a group that still run."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue  # it has just ended
        if int(fields[2]) == group and fields[0] != "Z":
            found.append(int(stat.parent.name))
    return found


def ended(group, seconds=30):
    """Say whether all processes of a group end; the fork server may still import PyTorch."""
    deadline = time.monotonic() + seconds
    while processes_of(group) and time.monotonic() < deadline:
        time.sleep(0.05)
    return not processes_of(group)


needs_proc = pytest.mark.skipif(not Path("/proc").is_dir(), reason="looks at processes in /proc")


@needs_proc
@pytest.mark.parametrize(
    "how", [signal.SIGTERM, pytest.param(signal.SIGINT, marks=pytest.mark.slow), signal.SIGKILL]
)
def test_jobs_end_with_the_server_and_nothing_appears_afterwards(tmp_path, how):
    slow = QUICK.replace("n_initial = 1000", "n_initial = 2")
    file = write(tmp_path, slow)
    with Campaign.open(file) as campaign:
        design = {"speed": 120.0, "depth": 0.5, "passes": 2, "tool": "B"}
        designs = [design | {"speed": 50.0 + 3 * i} for i in range(40)]
        campaign.tell_all([(d, 1.0 + i % 5) for i, d in enumerate(designs)], sure=True)
    with serving(file) as (process, url):
        person = Person(url)
        assert person.post("/ask", {**person.forms["/ask"], "n": "20"}).status == 303
        while len(processes_of(process.pid)) < 4:  # server, its tracker and fork server, a job
            time.sleep(0.05)
        time.sleep(0.5)
        process.send_signal(how)
        process.wait(10)
        assert ended(process.pid)
        with Campaign.open(file) as campaign:
            n = len(campaign.experiments)
        time.sleep(1)
        with Campaign.open(file) as campaign:
            assert len(campaign.experiments) == n < 60
        said = process.stderr.read()
    assert "Traceback" not in said, said


@needs_proc
@pytest.mark.parametrize("seconds", [0.0, pytest.param(0.5, marks=pytest.mark.slow), 2.0])
def test_ctrl_c_ends_everything_without_a_traceback(tmp_path, seconds):
    file = begun(tmp_path, 1)
    with serving(file) as (process, url):
        Person(url).tell_all([0])  # a job begins to look for the best design
        time.sleep(seconds)
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does
        process.wait(10)
        assert ended(process.pid)
        said = process.stderr.read()
    assert "Traceback" not in said, said


def test_other_addresses_print_a_link_with_a_token(tmp_path):
    file = write(tmp_path, QUICK)
    options = ["--host", "0.0.0.0"]
    with serving(file, *options, AIRBO_TOKEN="abcdef") as (_, url):
        assert re.fullmatch(r"http://[^/]+:\d+/\?token=abcdef", url)
        port = urlsplit(url).port
        for query, status in (("", 401), ("?token=abcdef", 303), ("?token=abc", 403)):
            assert request("127.0.0.1", port, "GET", f"/{query}").status == status


def test_behind_a_proxy_the_link_is_the_proxys_and_its_forms_count(tmp_path):
    file = begun(tmp_path, 1)
    origin = "https://lab.example"
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        place = free.getsockname()  # where the proxy passes on what browsers send it
    options = ["--origin", origin, "--port", str(place[1])]
    with serving(file, *options, AIRBO_TOKEN="abcdef") as (_, link):
        assert link == f"{origin}/?token=abcdef"
        entered = request(*place, "GET", "/?token=abcdef", Host="lab.example")
        cookies = [v.partition(";") for k, v in entered.headers if k == "set-cookie"]
        assert all(rest.endswith("Secure") for _, _, rest in cookies)
        sent = {"Host": "lab.example", "Cookie": "; ".join(first for first, _, _ in cookies)}
        form = request(*place, "GET", "/", **sent).forms["/tell/0"] | {"outcome:roughness": "1.5"}
        sent |= {"Content-Type": "application/x-www-form-urlencoded"}
        for own, status in (("http://127.0.0.1:8000", 403), (origin, 303)):
            answer = request(*place, "POST", "/tell/0", urlencode(form), Origin=own, **sent)
            assert answer.status == status
    assert told(file) == {0: 1.5}


@pytest.mark.slow
def test_two_hundred_clients_at_once_all_get_an_answer(tmp_path):
    file = begun(tmp_path, 5)
    with serving(file) as (_, url):
        place, statuses = (urlsplit(url).hostname, urlsplit(url).port), []

        def look(path):
            statuses.append(request(*place, "GET", path).status)

        clients = [threading.Thread(target=look, args=(p,)) for p in ["/", "/live"] * 100]
        for client in clients:
            client.start()
        for client in clients:
            client.join()
    assert statuses == [200] * 200
