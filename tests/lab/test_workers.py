"""Workers on one campaign, two of them killed: everything told is there, once."""

import itertools
import time

import pytest

from airbo import Campaign
from airbo.lab import Settings, StorageError
from airbo.lab.storage import open_storage
from airbo.lab.url import StorageURL
from airbo.lab.study import open_study
from tests.lab import processes
from tests.lab.common import LINE, edited, write

N_WORKERS = 4


@pytest.fixture(params=["sqlite", "journal", "postgres"])
def url(request):
    files = {"sqlite": "sqlite:///w.db", "journal": "journal:///w.journal"}
    return files.get(request.param) or request.getfixturevalue("postgres_url")


def work(folder, url, budget, text, n=N_WORKERS):
    """Let workers reach a budget, kill two; return the campaign and what was acknowledged."""
    text = edited(edited(text, "sqlite:///campaign.db", url), '"line"', f'"{folder.name}"')
    path = write(folder, text)
    logs = [folder / f"{i}.log" for i in range(n)]
    workers = [processes.start(processes.work, path, log, budget, 0.02) for log in logs]
    for victim, part in zip(workers[:2], (0.25, 0.5), strict=True):
        wait_for(logs, part * budget)
        victim.kill()
    codes = [processes.finish(worker, 900) for worker in workers]
    assert set(codes[:2]) <= {-9, 0}  # on a slow machine a victim may have ended before
    assert codes[2:] == [0] * (n - 2)
    return Campaign.open(path), acknowledged(logs)


def acknowledged(logs):
    lines = [line.split() for log in logs if log.exists() for line in log.read_text().splitlines()]
    return {int(line[0]): float(line[1]) for line in lines if len(line) == 3}


def wait_for(logs, n, seconds=600):
    end = time.monotonic() + seconds
    while len(acknowledged(logs)) < n:
        assert time.monotonic() < end, "the workers do not get on"
        time.sleep(0.02)


def check(campaign, budget, told, n=N_WORKERS):
    """Every trial is accounted for, with its own value, and no design was given out twice."""
    record, trials = campaign.ledger.record(), campaign.study.get_trials(deepcopy=False)
    campaign.close()
    done = {e.number: e for e in record.experiments if e.has_outcome}
    assert done.keys() >= told.keys()
    assert all(done[number].value == value for number, value in told.items())
    assert all(e.value == processes.hill(e.design) for e in done.values())

    # those that were killed leave at most one experiment each; the others may overshoot by one
    pending = [e for e in record.experiments if e.is_pending]
    assert len(pending) + len(record.unfinished_asks) <= 2
    assert budget <= len(done) <= budget + n - 1
    numbers = [t.number for t in trials]
    assert numbers == list(range(len(numbers)))
    assert len(numbers) == len(done) + len(pending) + len(record.unfinished_asks)
    return sorted(e.design["x"] for e in record.experiments)


def test_workers_lose_and_double_nothing(tmp_path, url):
    campaign, told = work(tmp_path, url, 12, LINE)
    designs = check(campaign, 12, told)
    assert len(set(designs)) == len(designs)


STEPS = (
    "get_all_studies",
    "create_new_study",
    "get_all_trials",
    "get_study_user_attrs",
    "set_study_user_attr",
)


@pytest.mark.parametrize("storage", ["sqlite:///w.db", "journal:///w.journal"])
@pytest.mark.parametrize("moment", range(6))
def test_somebody_else_may_begin_the_campaign_at_any_moment(tmp_path, monkeypatch, storage, moment):
    path = write(tmp_path, edited(LINE, "sqlite:///campaign.db", storage))
    opened, calls = open_storage(StorageURL(storage), tmp_path), itertools.count()

    def interrupted(method):
        def call(*args, **kwargs):
            if next(calls) == moment:
                with Campaign.open(path) as other:
                    other.ask()
            return method(*args, **kwargs)

        return call

    for name in STEPS:
        monkeypatch.setattr(opened, name, interrupted(getattr(opened, name)))
    study = open_study(opened, Settings.read(path))
    assert next(calls) > moment, "opening has no such step"
    assert len(study.get_trials()) == 1


@pytest.mark.slow
def test_eight_workers_with_a_model_make_200_trials(tmp_path, url):
    campaign, told = work(tmp_path, url, 200, edited(LINE, "n_initial = 1000", "n_initial = 20"), 8)
    designs = check(campaign, 200, told, 8)
    assert len(set(designs)) > 0.9 * len(designs)


def test_passwords_are_not_shown(tmp_path, postgres_url):
    wrong = postgres_url.replace("top%20secret", "wr0ng")
    path = write(tmp_path, edited(LINE, "sqlite:///campaign.db", wrong))
    with pytest.raises(StorageError) as caught:
        Campaign.open(path)
    assert "wr0ng" not in str(caught.value)
    assert "lab:***@127.0.0.1" in str(caught.value)
    assert "refused user name or password" in str(caught.value)


def test_a_server_that_is_gone_is_named(tmp_path):
    path = write(tmp_path, edited(LINE, "sqlite:///campaign.db", GONE))
    with pytest.raises(StorageError, match="does not answer") as caught:
        Campaign.open(path)
    assert "secret" not in str(caught.value)


GONE = "postgresql://lab:secret@127.0.0.1:9/none"


def test_several_campaigns_share_a_server(tmp_path, postgres_url):
    text = edited(LINE, "sqlite:///campaign.db", postgres_url)
    paths = [write(tmp_path, edited(text, '"line"', f'"{i}"'), f"{i}.toml") for i in (1, 2)]
    with Campaign.open(paths[0]) as first, Campaign.open(paths[1]) as second:
        first.tell({"x": 0.5}, 1.0)
        assert len(first.experiments) == 1
        assert second.experiments == []
