"""What people do with the page, and what the storage holds then."""

import re
import threading
import time
from datetime import UTC, datetime

import pytest

from airbo.lab import Campaign, CampaignError
from airbo.lab.serve.view import clock
from airbo.lab.store import Store
from tests.lab.common import edited
from tests.lab.serve.client import Visitor

VALUE = "outcome:roughness"
DESIGN = {"speed": 120.0, "depth": 0.5, "passes": 2, "tool": "B"}
OWN = {f"design:{name}": str(value) for name, value in DESIGN.items()}


def ask(visitor, live, n=1):
    visitor.send("/ask", n=str(n))
    live.wait()


def run(threads):
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def outcomes(file):
    with Campaign.open(file) as campaign:
        return {e.number: (e.outcome, e.outcomes.get("roughness")) for e in campaign.experiments}


def test_asking_shows_the_design_and_leaves_it_pending(ann, live, file):
    ask(ann, live, 2)
    page = ann.get()
    [first, second] = Campaign.open(file).experiments
    assert first.is_pending
    assert f"{first.design['speed']:g}" in page.words
    assert {"/tell/0", "/tell/1"} <= set(page.forms)
    assert second.number == 1


def test_what_is_saved_is_in_the_storage_and_the_card_is_gone(ann, live, file):
    ask(ann, live)
    page = ann.send("/tell/0", value="1.25", **{"executed:speed": "121.5", "note": "new tool"})
    assert page.said() == ["Experiment 0: 1.25 µm."]
    assert "/tell/0" not in page.forms
    e = Campaign.open(file).experiment(0)
    assert (e.outcomes["roughness"], dict(e.executed), e.notes) == (
        1.25,
        {"speed": 121.5},
        ("new tool",),
    )


def test_failed_and_given_up_are_told_apart(ann, live, file):
    ask(ann, live, 2)
    ann.send("/fail/0", note="tool broke")
    ann.send("/give-up/1")
    assert outcomes(file) == {0: ("failed", None), 1: ("given up", None)}
    assert Campaign.open(file).experiment(0).notes == ("tool broke",)


def test_what_was_set_otherwise_than_asked_is_the_design(ann, live, file):
    ask(ann, live)
    ann.send("/tell/0", value="1", **{"set:speed": "91", "set:tool": "B"})
    design = Campaign.open(file).experiment(0).design
    assert (design["speed"], design["tool"]) == (91.0, "B")


def test_an_own_design_is_added_once_unless_it_was_another_run(ann, file):
    ann.send("/add", value="2", **OWN)
    page = ann.send("/add", value="2", **OWN)
    assert page.status == 409
    assert page.forms["/add"]["design:speed"] == "120.0"
    assert outcomes(file) == {0: ("ok", 2.0)}
    ann.post("/add", {**page.forms["/add"], "again": "yes"})
    assert outcomes(file) == {0: ("ok", 2.0), 1: ("ok", 2.0)}


def test_a_design_outside_the_ranges_needs_a_tick(ann, file):
    page = ann.send("/add", value="2", **OWN | {"design:speed": "210"})
    assert page.status == 422
    assert "210" in " ".join(page.said("mistake"))
    ann.post("/add", {**page.forms["/add"], "outside": "yes"})
    assert outcomes(file) == {0: ("ok", 2.0)}


# -- mistakes


@pytest.mark.parametrize(
    ("typed", "mistake"),
    [
        ("", "Enter the roughness"),
        ("abc", "must be a number"),
        ("1,250", "1,250 can mean 1.250 or 1250"),
        ("inf", "must be a finite number"),
        ("1e200", "must not exceed"),
    ],
)
def test_a_value_that_cannot_be_read_is_explained_and_everything_typed_is_kept(
    ann, live, file, typed, mistake
):
    ask(ann, live)
    page = ann.send("/tell/0", value=typed, **{"executed:speed": "x1", "note": "<b>hm</b>"})
    assert page.status == 422
    kept = page.forms["/tell/0"]
    assert (kept[VALUE], kept["executed:speed"], kept["note"]) == (typed, "x1", "<b>hm</b>")
    assert "<b>hm" not in page.text
    said = " ".join(page.said("mistake"))
    assert mistake in said or typed == "1e200"
    assert "speed must be a number, got 'x1'" in said  # all mistakes at once
    assert outcomes(file) == {0: ("pending", None)}


@pytest.mark.parametrize(("typed", "value"), [("1,5", 1.5), (" −2.5 µm ", -2.5), ("1e-3", 0.001)])
def test_numbers_are_read_as_people_write_them(ann, live, file, typed, value):
    ask(ann, live)
    ann.send("/tell/0", value=typed)
    assert outcomes(file) == {0: ("ok", value)}


def test_a_number_that_looks_like_a_slip_is_questioned(ann, live, file):
    ask(ann, live)
    page = ann.send("/tell/0", value="1", **{"executed:speed": "9999"})
    assert page.status == 422
    assert "far outside" in page.words
    assert outcomes(file) == {0: ("pending", None)}
    ann.post("/tell/0", {**page.forms["/tell/0"], "sure": "yes"})
    assert outcomes(file) == {0: ("ok", 1.0)}


@pytest.mark.parametrize("n", ["0", "-1", "21", "x", "1.5", "²", "9" * 30, "0000000019999999"])
def test_asking_for_a_senseless_number_asks_for_nothing(ann, live, file, n):
    assert ann.send("/ask", n=n).status == 422
    live.wait()
    assert outcomes(file) == {}


def test_an_experiment_that_is_not_there_is_not_told(ann, live, file):
    ask(ann, live)
    form = ann.get().forms["/tell/0"]
    assert "no experiment 7" in ann.post("/tell/7", form | {VALUE: "1"}).words
    assert ann.get("/experiment/7").status == 404


# -- several people, and forms that are sent twice


def test_a_form_sent_twice_counts_once(ann, file):
    form = ann.get().forms["/add"] | OWN | {VALUE: "2", "again": "yes"}
    ann.post("/add", form)
    ann.post("/add", form)
    assert outcomes(file) == {0: ("ok", 2.0)}


def test_a_form_sent_many_times_at_once_counts_once(app, file, ann):
    form = ann.get().forms["/add"] | OWN | {VALUE: "2", "again": "yes"}
    run([threading.Thread(target=ann.post, args=("/add", form)) for _ in range(6)])
    assert outcomes(file) == {0: ("ok", 2.0)}


def test_tabs_that_send_everything_twice_at_once_lose_and_double_nothing(app, live, file):
    n_tabs, n_each = 4, 5

    def work(tab):
        visitor = Visitor(app)
        for i in range(n_each):
            number = tab * n_each + i
            design = OWN | {"design:speed": str(50 + number)}
            form = visitor.get().forms["/add"] | design | {VALUE: str(1 + number / 100)}
            twice = [threading.Thread(target=visitor.post, args=("/add", form)) for _ in range(2)]
            run(twice)

    run([threading.Thread(target=work, args=(tab,)) for tab in range(n_tabs)])
    with Campaign.open(file) as campaign:
        told = [e.outcomes["roughness"] for e in campaign.experiments]
        assert [e.number for e in campaign.experiments] == list(range(n_tabs * n_each))
    assert sorted(told) == [1 + number / 100 for number in range(n_tabs * n_each)]


def test_asking_twice_with_one_form_asks_once(ann, live, file):
    form = ann.get().forms["/ask"]
    ann.post("/ask", form)
    ann.post("/ask", form)
    live.wait()
    assert len(outcomes(file)) == 1


def test_of_two_who_answer_the_same_the_second_is_asked(ann, bob, live, file):
    ask(ann, live)
    late = bob.get().forms["/tell/0"]
    ann.send("/tell/0", value="1")
    page = bob.post("/tell/0", late | {VALUE: "2", "note": "bob"})
    assert page.status == 409
    assert "Experiment 0 has an outcome already: 1 µm" in page.words
    kept = page.forms["/tell/0"]
    assert (kept[VALUE], kept["note"]) == ("2", "bob")
    assert outcomes(file) == {0: ("ok", 1.0)}
    bob.post("/tell/0", kept | {"correct": "yes"})
    assert outcomes(file) == {0: ("ok", 2.0)}


def test_the_same_answer_of_two_people_counts_once(ann, bob, live, file):
    ask(ann, live)
    late = bob.get().forms["/tell/0"]
    ann.send("/tell/0", value="1")
    assert "Nothing changed" in bob.post("/tell/0", late | {VALUE: "1"}).said()[0]
    assert len([c for c in Campaign.open(file).history() if c.undoable]) == 1


def test_a_tell_from_the_command_line_shows_up(ann, live, file):
    ask(ann, live)
    before = ann.get("/live").text
    Campaign.open(file).tell(0, 7.5)
    assert ann.get("/live").text != before
    assert "/tell/0" not in ann.get().forms
    assert "7.5 µm" in ann.get().words


def test_a_changed_file_shows_up_and_a_broken_one_is_explained(ann, live, file):
    text = file.read_text()
    file.write_text(text.replace('name = "roughness"', 'name = "waviness"'))
    assert "waviness" in ann.get().words
    file.write_text(text + "[oops")
    page = ann.get()
    assert page.status == 503
    assert "campaign.toml has a mistake" in page.words
    file.write_text(text)
    assert ann.get().status == 200


# -- changing one's mind


def test_undo_takes_back_a_report_with_its_note(ann, live, file):
    ask(ann, live)
    page = ann.send("/tell/0", value="1", note="slip")
    page = ann.post("/undo", page.forms["/undo"])
    assert "Taken back" in page.said()[0]
    assert outcomes(file) == {0: ("pending", None)}
    assert Campaign.open(file).experiment(0).notes == ()


def test_undo_takes_back_what_the_visitor_saw_and_nothing_newer(ann, bob, live, file):
    ask(ann, live, 2)
    mine = ann.send("/tell/0", value="1").forms["/undo"]
    bob.send("/tell/1", value="2")
    page = ann.post("/undo", mine)
    assert page.status == 422
    assert "There is a newer change" in page.words
    assert outcomes(file) == {0: ("ok", 1.0), 1: ("ok", 2.0)}


def test_undo_sent_twice_takes_back_one_change(ann, live, file):
    ask(ann, live, 2)
    ann.send("/tell/0", value="1")
    ann.send("/tell/1", value="2")
    form = ann.get("/history").forms["/undo"]
    ann.post("/undo", form)
    ann.post("/undo", form)
    ann.post("/undo", form | {"once": "another"})
    assert outcomes(file) == {0: ("ok", 1.0), 1: ("pending", None)}


def test_corrections_keep_what_was_measured_and_say_what_changed(ann, live, file):
    ask(ann, live)
    ann.send("/tell/0", value="139", **{"executed:speed": "121.5"})
    page = ann.send("/tell/0", "/experiment/0", value="13.9")
    assert page.said() == ["Experiment 0 is corrected: 139 µm → 13.9 µm."]
    e = Campaign.open(file).experiment(0)
    assert (e.outcomes["roughness"], dict(e.executed)) == (13.9, {"speed": 121.5})
    ann.send("/tell/0", "/experiment/0", **{"executed:speed": ""})
    assert dict(Campaign.open(file).experiment(0).executed) == {}


def test_a_card_takes_the_known_noise_of_a_value(ann, live, file):
    ask(ann, live)
    page = ann.send("/tell/0", value="1", **{"noise:roughness": "about 0.1"})
    assert page.said("mistake") == ["roughness must be a number, got 'about 0.1'."]
    ann.send("/tell/0", value="1", **{"noise:roughness": "0,1 µm"})
    assert dict(Campaign.open(file).experiment(0).noise) == {"roughness": 0.1}


def test_leaving_out_needs_a_reason_and_can_be_taken_back(ann, live, file):
    ask(ann, live)
    ann.send("/tell/0", value="1")
    assert ann.send("/exclude/0", "/experiment/0", why=" ").status == 422
    ann.send("/exclude/0", "/experiment/0", why="loose sensor")
    assert Campaign.open(file).experiment(0).excluded == "loose sensor"
    assert "loose sensor" in ann.get("/experiments").words
    ann.send("/include/0", "/experiment/0")
    assert Campaign.open(file).experiment(0).excluded is None


def test_changes_are_signed(ann, bob, live, file):
    ann.send("/name", name="Ann  Lee;")
    ask(ann, live, 2)
    ann.send("/tell/0", value="1")
    bob.send("/tell/1", value="2")
    by = [(c.what, c.by) for c in Campaign.open(file).history() if c.what in ("asked", "told")]
    assert by[:3] == [("asked", "Ann Lee;"), ("asked", "Ann Lee;"), ("told", "Ann Lee;")]
    assert by[3][1].endswith(", on the page")
    assert "Ann Lee;" in bob.get("/history").words


# -- a search that failed


def test_a_search_that_failed_is_repeated_when_asked(ann, live, monkeypatch):
    tries = []

    def fails(path, report):
        tries.append(path)
        if len(tries) == 1:
            raise CampaignError("No model today.")

    monkeypatch.setattr("airbo.lab.serve.live.find", fails)
    ann.send("/add", value="2", **OWN)
    ann.get()
    live.wait()
    for path in ("/", "/report"):
        assert "No model today." in ann.get(path).words
    assert len(tries) == 1  # looking at it is not enough
    ann.send("/find-again", "/report")
    live.wait()
    assert len(tries) == 2
    assert "No model today." not in ann.get().words


# -- what is shown


@pytest.mark.parametrize("path", ["/", "/live", "/report", "/experiments", "/history"])
def test_a_page_reads_the_events_once_and_only_what_is_new(ann, live, file, monkeypatch, path):
    ask(ann, live)
    ann.get()
    reads, read = [], Store.read
    monkeypatch.setattr(Store, "read", lambda *args: reads.append(read(*args)) or reads[-1])
    ann.get(path)
    assert reads == [[]]
    Campaign.open(file).tell(0, 1.0)
    reads.clear()
    ann.get(path)
    assert [len(events) for events in reads] == [1]


def test_a_page_of_many_experiments_is_quick(ann, file):
    n = 2000
    with Campaign.open(file) as campaign:
        designs = [DESIGN | {"speed": 50 + 150 * i / n} for i in range(n)]
        campaign.tell_all([(d, 1 + i % 7) for i, d in enumerate(designs)], again=True, sure=True)
    ann.get()
    for path, most in (("/", 0.2), ("/live", 0.05)):
        seconds = []
        for _ in range(3):
            begun = time.process_time()
            ann.get(path)
            seconds.append(time.process_time() - begun)
        assert min(seconds) < most, path


def test_the_recommendation_follows_the_experiments(models, ann, live, file):
    for x, value in (("60", "9"), ("120", "1"), ("180", "8")):
        ann.send("/add", value=value, **OWN | {"design:speed": x})
    for _ in range(2):  # a search that was under way is followed by another one
        ann.get()
        live.wait()
    advice = ann.get().words.partition("Best design so far")[2].partition("Progress")[0]
    assert re.search(r"speed 120(\.0)? ", advice)
    assert "From 3 values." in advice


@pytest.fixture
def berlin(monkeypatch):
    """Be in a time zone that is not UTC."""
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.skipif(not hasattr(time, "tzset"), reason="this system has no tzset")
def test_times_are_those_of_the_clock_on_the_wall(berlin):
    assert clock(datetime(2026, 7, 1, 22, 30, tzinfo=UTC)) == "2 Jul 00:30"
    twice = [datetime(2025, 10, 26, hour, 30, tzinfo=UTC) for hour in (0, 1)]  # clocks go back
    assert [clock(at) for at in twice] == ["26 Oct 02:30", "26 Oct 02:30"]


@pytest.mark.parametrize("page", ["/", "/report", "/experiments", "/history", "/experiment/0"])
def test_nothing_in_a_name_a_note_or_a_text_becomes_markup(ann, live, file, page):
    hostile = "</script><img src=x onerror=alert(1)>"
    ask(ann, live)
    ann.send("/name", name=hostile)
    ann.send("/tell/0", value="1", note=hostile)
    answer = ann.get(page)
    assert answer.status == 200
    assert "<img" not in answer.text


def test_a_password_of_the_storage_is_on_no_page(app, ann, live, file):
    server = "postgresql://ann:s3cret@127.0.0.1:1/lab"
    file.write_text(edited(file.read_text(), "sqlite:///campaign.db", server))
    page = ann.get()
    assert page.status == 503
    assert "must not hold a password" in page.words
    assert "s3cret" not in page.text
