"""Killed at any moment and taken up again is the same as never killed."""

import random
import shutil
import signal

import pytest

from airbo import Campaign
from tests.campaign import processes
from tests.campaign.common import LINE, SQLITE, campaign, edited, told

STORAGES = {"sqlite": SQLITE, "journal": LINE}
BEFORE = "x,value,executed_x\n0.25,1.0,\n0.5,2.0,0.52\n0.75,3.0,\n"


def on_server(url):
    """The same campaign on a server."""
    return edited(LINE, "journal:///campaign.journal", url)


def prepared(folder, text=LINE):
    """A campaign with two pending experiments, one told, and one given up."""
    folder.mkdir(parents=True)
    (folder / "before.csv").write_text(BEFORE)
    c = campaign(folder, text)
    c.ask(4)
    c.tell(2, 5.5)
    c.give_up(3)
    return c


def rest(c):
    """What was told but for experiments 0 to 3."""
    return sorted(e.value for e in c.experiments if e.has_outcome and e.number > 3)


def outcome(c, number):
    e = c.experiment(number)
    return e.outcome, e.value, dict(e.executed)


def copies(folder, text):
    """Yield the files of campaigns like a fresh one; on a server each has its own name."""
    if "postgresql:" in text:
        for n in range(100):
            name = f"{folder.name} {n}"
            with prepared(folder / str(n), edited(text, '"line"', f'"{name}"')) as c:
                path = c.settings.path
            yield path
        return
    fresh = prepared(folder / "fresh", text).settings.path.parent
    for n in range(100):
        yield shutil.copytree(fresh, folder / str(n)) / "campaign.toml"


def kill_everywhere(folder, operation, text=LINE):
    """Yield the campaign, reopened, after a kill before each write of an operation."""
    for n, path in enumerate(copies(folder, text)):
        code = processes.finish(processes.start(processes.killed_before_write, path, operation, n))
        if code == 0:
            assert n > 0
            return
        assert code == -signal.SIGKILL
        with Campaign.open(path) as c:
            yield c
    raise AssertionError("the operation does not end")


def repeat_killed(folder, operation, text=LINE):
    """Kill a report everywhere and repeat it: it is as if it had never been killed."""
    never_killed = prepared(folder / "never")
    processes.OPERATIONS[operation](never_killed)
    for c in kill_everywhere(folder, operation, text):
        processes.OPERATIONS[operation](c)
        assert told(c) == told(never_killed)
        assert [e.number for e in c.experiments] == [e.number for e in never_killed.experiments]
        processes.OPERATIONS[operation](c)
        assert told(c) == told(never_killed)


@pytest.mark.parametrize("operation", [f.__name__ for f in processes.REPORTS])
def test_a_report_that_was_killed_can_be_repeated(tmp_path, operation):
    repeat_killed(tmp_path, operation)


@pytest.mark.slow
@pytest.mark.parametrize("operation", [f.__name__ for f in processes.REPORTS])
def test_a_report_that_was_killed_can_be_repeated_on_a_server(tmp_path, postgres_url, operation):
    repeat_killed(tmp_path, operation, on_server(postgres_url))


def seen(c):
    """All that people see of the experiments, and how many changes there were."""
    shown = [
        (e.number, e.outcome, e.value, e.design["x"], e.excluded, e.notes) for e in c.experiments
    ]
    return shown, len(c.history())


@pytest.mark.slow
@pytest.mark.parametrize("storage", ["journal", "server"])
@pytest.mark.parametrize("operation", [f.__name__ for f in processes.CHANGES])
def test_a_change_that_was_killed_was_made_or_was_not(tmp_path, request, operation, storage):
    text = STORAGES.get(storage) or on_server(request.getfixturevalue("postgres_url"))
    before = seen(prepared(tmp_path / "before"))
    after = prepared(tmp_path / "after")
    processes.OPERATIONS[operation](after)
    found = []
    for c in kill_everywhere(tmp_path, operation, text):
        found.append(seen(c))
        c.tell(0, 1.5)
        assert c.experiment(0).value == 1.5
    assert all(state in (before, seen(after)) for state in found)
    assert before in found


def test_killed_while_asking_leaves_what_was_told_and_can_ask_again(tmp_path):
    for c in kill_everywhere(tmp_path, "ask"):
        assert outcome(c, 2) == ("ok", 5.5, {})
        assert [e.outcome for e in c.experiments[:4]] == ["pending", "pending", "ok", "given up"]
        [new] = c.ask()
        assert new.is_pending
        designs = [e.design["x"] for e in c.experiments]
        assert len(set(designs)) == len(designs)


def test_killed_while_correcting_leaves_the_old_value_or_the_new_one(tmp_path):
    seen = set()
    for c in kill_everywhere(tmp_path, "correct"):
        [value] = [e.value for e in c.experiments if e.value is not None]
        assert outcome(c, 2) == ("ok", value, {})
        assert list(c.optimizer().observations["value"]) == [value]
        seen.add(value)
    assert seen == {5.5, 7.5}


@pytest.mark.parametrize(
    "storage", ["journal", *(pytest.param(s, marks=pytest.mark.slow) for s in ("sqlite", "server"))]
)
def test_killed_while_importing_leaves_all_rows_or_none(tmp_path, storage, request):
    text = STORAGES.get(storage) or on_server(request.getfixturevalue("postgres_url"))
    counts = set()
    for c in kill_everywhere(tmp_path, "import_rows", text):
        counts.add(len(rest(c)))
        assert rest(c) in ([], [1.0, 2.0, 3.0])
        processes.import_rows(c)
        assert rest(c) == [1.0, 2.0, 3.0]
        assert not c.status().notes
    assert counts == {0, 3}


def test_killed_while_reporting_leaves_the_old_page_and_the_campaign(tmp_path):
    c = prepared(tmp_path / "lab")
    c.tell_all([(0, 1.0), (1, 2.0)])
    before, page = told(c), tmp_path / "page.html"
    page.write_text("old")
    process = processes.start(processes.killed_while_reporting, c.settings.path, page)
    assert processes.finish(process) == -signal.SIGKILL
    assert page.read_text() == "old"
    assert told(Campaign.open(c.settings.path)) == before


def test_a_killed_run_goes_on_to_the_same_end(tmp_path):
    for c in kill_everywhere(tmp_path, "run"):
        processes.run(c)
        done = [e for e in c.experiments if e.has_outcome]
        assert len(done) == 3
        assert all(e.value == e.design["x"] for e in done if e.number != 2)


@pytest.mark.parametrize("storage", STORAGES)
def test_a_run_killed_again_and_again_loses_and_doubles_nothing(tmp_path, storage):
    rng = random.Random(0)
    path = campaign(tmp_path, STORAGES[storage]).settings.path
    told = {}
    for _ in range(5):
        n = rng.randrange(18)  # an experiment takes about six writes, a run here three experiments
        process = processes.start(processes.killed_before_write, path, "run_on", n)
        assert processes.finish(process) == -signal.SIGKILL
        c = Campaign.open(path)
        now = {e.number: e.value for e in c.experiments if e.has_outcome}
        assert now.items() >= told.items()
        told = now
    assert told, "no run got as far as telling something"
    c = Campaign.open(path)
    processes.run(c, budget=len(told) + 2)
    done = [e for e in c.experiments if e.has_outcome]
    assert len(done) == len(told) + 2
    assert all(e.value == e.design["x"] for e in done)
