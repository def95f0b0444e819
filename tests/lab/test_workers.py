"""Workers that ask and tell on one campaign, some of them killed: nothing is lost or doubled."""

import multiprocessing
import time
import uuid

import pytest
import sqlalchemy as sa

from airbo import Campaign
from airbo.lab import StorageError, events
from airbo.lab.store import Store
from tests.lab import processes
from tests.lab.common import LINE, edited, value_of, write

N_WORKERS = 8
GONE = "postgresql://lab@127.0.0.1:9/none"


def hill(design):
    """A function of the design alone, so that no value can be mistaken for another."""
    return 1 - (design["x"] - 0.3) ** 2


def work(path, log, budget):
    """Ask and tell until the campaign has ``budget`` values; log what was told."""
    with Campaign.open(path) as campaign, log.open("a") as file:
        while sum(e.has_outcome for e in campaign.experiments) < budget:
            [experiment] = campaign.ask()
            time.sleep(0.01)
            campaign.tell(experiment.number, hill(experiment.design))
            file.write(f"{experiment.number} {hill(experiment.design)!r} .\n")
            file.flush()


def acknowledged(logs):
    lines = [line.split() for log in logs if log.exists() for line in log.read_text().splitlines()]
    return {int(line[0]): float(line[1]) for line in lines if len(line) == 3}


def wait_for(logs, n, seconds=600):
    end = time.monotonic() + seconds
    while len(acknowledged(logs)) < n:
        assert time.monotonic() < end, "the workers do not get on"
        time.sleep(0.01)


def worked(folder, text, budget):
    """Let workers reach a budget, and kill two of them; return the record."""
    path = write(folder, edited(text, '"line"', f'"{folder.name}"'))
    logs = [folder / f"{i}.log" for i in range(N_WORKERS)]
    workers = [processes.start(lambda log=log: work(path, log, budget)) for log in logs]
    for victim, part in zip(workers[:2], (0.25, 0.5), strict=True):
        wait_for(logs, part * budget)
        processes.kill(victim)
    codes = [processes.finish(worker) for worker in workers]
    assert set(codes[:2]) <= {-9, 0}  # on a slow machine a victim may have ended before
    assert codes[2:] == [0] * (N_WORKERS - 2)
    told = acknowledged(logs)

    with Campaign.open(path) as campaign:
        record, found = campaign.record(), campaign.experiments
        assert campaign.store.check() == len(campaign.record().events)
    done = {e.number: value_of(e) for e in found if e.has_outcome}
    assert told.items() <= done.items()
    assert all(value_of(e) == hill(e.design) for e in found if e.has_outcome)
    assert [e.number for e in found] == list(range(len(found)))
    assert budget <= len(done) <= budget + N_WORKERS - 1  # the others may overshoot by one each
    assert len(found) - len(done) <= 2  # those that were killed leave at most one each
    return record


def n_shared(record):
    """Count the designs that were asked for while somebody else had the same one."""
    pending, n = {}, 0
    for event in record.events:
        if isinstance(event.fact, events.Asked):
            n += event.fact.design in pending.values()
            pending[event.fact.number] = event.fact.design
        elif isinstance(event.fact, events.Told):
            pending.pop(event.fact.number, None)
    return n


def test_workers_lose_and_double_nothing(tmp_path, storage):
    text = edited(LINE, 'storage = "sqlite:///campaign.db"\n', storage)
    record = worked(tmp_path, text, 16)
    assert n_shared(record) == 0


@pytest.fixture
def empty_storage(storage):
    """A storage in which nobody has made a table yet."""
    if not storage:
        return storage
    url = storage.split('"')[1]
    schema = f"new_{uuid.uuid4().hex}"
    engine = sa.create_engine(url.replace("postgresql:", "postgresql+psycopg:"))
    with engine.begin() as connection:
        connection.execute(sa.schema.CreateSchema(schema))
    engine.dispose()
    return storage.replace(url, f"{url}?options=-csearch_path%3D{schema}")


def test_workers_that_begin_a_campaign_at_the_same_moment_all_succeed(tmp_path, empty_storage):
    text = edited(LINE, 'storage = "sqlite:///campaign.db"\n', empty_storage)
    path = write(tmp_path, text)
    barrier = multiprocessing.get_context("fork").Barrier(N_WORKERS)
    append, waited = Store.append, []

    def together(store, new, after):
        waited or waited.append(barrier.wait(timeout=100))
        return append(store, new, after)

    def begin(i):
        Store.append = together  # in this process alone
        with Campaign.open(path) as campaign:
            campaign.tell({"x": i / N_WORKERS}, float(i), sure=True)

    workers = [processes.start(lambda i=i: begin(i)) for i in range(N_WORKERS)]
    assert [processes.finish(worker) for worker in workers] == [0] * N_WORKERS
    with Campaign.open(path) as campaign:
        record = campaign.record()
        assert campaign.store.check() == 1 + N_WORKERS
    assert sorted(map(value_of, record.experiments)) == list(range(N_WORKERS))
    assert [e.number for e in record.experiments] == list(range(N_WORKERS))
    assert [e.fact.kind for e in record.events] == ["begun", *["told"] * N_WORKERS]


@pytest.mark.slow
def test_eight_workers_with_a_model_make_200_experiments(tmp_path, storage):
    text = edited(LINE, 'storage = "sqlite:///campaign.db"\n', storage)
    record = worked(tmp_path, edited(text, "n_initial = 1000", "n_initial = 20"), 200)
    assert n_shared(record) <= 0.02 * len(record.experiments)  # near the best one, digits are few


def test_a_server_that_is_gone_is_named_without_its_password(tmp_path, monkeypatch):
    monkeypatch.setenv("PGPASSWORD", "secret")
    path = write(tmp_path, edited(LINE, "sqlite:///campaign.db", GONE))
    with pytest.raises(StorageError, match="does not answer") as caught:
        Campaign.open(path)
    assert "secret" not in str(caught.value)
    assert GONE in str(caught.value)


def test_several_campaigns_share_a_server(tmp_path, postgres_url):
    text = edited(LINE, "sqlite:///campaign.db", postgres_url)
    paths = [write(tmp_path, edited(text, '"line"', f'"{i}"'), f"{i}.toml") for i in (1, 2)]
    with Campaign.open(paths[0]) as first, Campaign.open(paths[1]) as second:
        first.tell({"x": 0.5}, 1.0)
        assert len(first.experiments) == 1
        assert second.experiments == []
