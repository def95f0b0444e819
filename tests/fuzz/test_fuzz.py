"""Whatever comes in: a clear error or a working campaign, never a traceback."""

import json
import shutil
import tempfile
import zlib
from pathlib import Path

import optuna
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from optuna.distributions import FloatDistribution
from typer.testing import CliRunner

import airbo
from airbo import uncertainty as unc
from airbo.integrations.optuna import AIRBOSampler, recommend
from airbo.lab import Campaign, CampaignError, FileError
from airbo.lab.cli.app import app
from airbo.lab.file import parse
from airbo.lab.report import write_report
from tests.fuzz.strategies import campaign_files, command_lines, extremes, mutated, studies, tables
from tests.lab.common import LINE, campaign, write

pytestmark = [
    pytest.mark.usefixtures("as_without_shape_checks"),
    pytest.mark.filterwarnings("ignore"),  # numbers at their limits warn, and may
]
FEW, MANY = 20, 400
"""Examples of each of the five in `make test` and in `make slow`."""


def fuzzed(strategy, n):
    """Give a test so many examples."""
    unchecked = [HealthCheck.too_slow, HealthCheck.function_scoped_fixture]
    setup = settings(max_examples=n, suppress_health_check=unchecked)
    return lambda test: setup(given(strategy)(test))


# -- campaign files


def try_file(text, reported):
    """Read a file; where it is accepted, all that can be done with it works."""
    with tempfile.TemporaryDirectory() as folder:
        path = write(Path(folder), 'storage = "sqlite:///a.db"\n' + text)
        try:
            campaign = Campaign.open(path)
            campaign.settings.check()
        except CampaignError:
            return
        with campaign as c:
            for value in (1.0, 2.0, -3.0):
                c.tell(c.ask()[0].number, value)
            c.recommend()
            assert c.import_table(c.export(), again=True).numbers
            if reported:
                write_report(c.optimizer(), Path(folder, "page.html"))


@fuzzed(campaign_files(), FEW)
def test_a_campaign_file_is_refused_in_words_or_works(text):
    try_file(text, reported=zlib.crc32(text.encode()) % 5 == 0)  # a report takes seconds


@pytest.mark.slow
@fuzzed(campaign_files(), MANY)
def test_many_campaign_files_are_refused_in_words_or_work(text):
    try_file(text, reported=True)


# -- tables


@pytest.fixture(scope="module")
def begun(tmp_path_factory):
    """A campaign with two experiments, to be copied."""
    folder = tmp_path_factory.mktemp("begun")
    with campaign(folder) as c:
        c.ask(2)
        c.tell(0, 1.0)
    return folder


def try_table(begun, text):
    """Import a table: all of its rows count, or none."""
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(begun, folder, dirs_exist_ok=True)
        path = Path(folder, "table.csv")
        path.write_text(text, encoding="utf-8", errors="replace")
        with Campaign.open(Path(folder, "campaign.toml")) as c:
            before = len(c.experiments)
            try:
                n = len(c.import_table(path).numbers)
            except CampaignError:
                n = 0
            assert len(c.experiments) == before + n


@fuzzed(tables(), FEW)
def test_a_table_is_refused_in_words_or_imported_whole(begun, text):
    try_table(begun, text)


@pytest.mark.slow
@fuzzed(tables(), MANY)
def test_many_tables_are_refused_in_words_or_imported_whole(begun, text):
    try_table(begun, text)


# -- states of optimizers


def state():
    optimizer = airbo.Optimizer({"x": (0.0, 1.0), "k": ["A", "B"]}, {"x": unc.Normal(0.1)})
    optimizer.tell({"x": 0.5, "k": "A"}, 1.0, executed={"x": 0.4})
    optimizer.ask()
    return optimizer.to_json()


STATE = state()


def paths(value, path=()):
    """List the places of all values inside a value."""
    rows = enumerate(value) if isinstance(value, list) else ()
    for key, inner in value.items() if isinstance(value, dict) else rows:
        yield (*path, key)
        yield from paths(inner, (*path, key))


@st.composite
def states(draw):
    """States in which one value is another, or the text is changed."""
    data = json.loads(STATE)
    *way, last = draw(st.sampled_from(sorted(paths(data), key=repr)))
    inner = data
    for key in way:
        inner = inner[key]
    inner[last] = draw(extremes)
    return draw(mutated(json.dumps(data)))


def try_state(text):
    """Read a state: it is refused with a ValueError, or it can be written again."""
    try:
        optimizer = airbo.Optimizer.from_json(text)
    except (ValueError, TypeError):
        return
    assert airbo.Optimizer.from_json(optimizer.to_json()).to_json() == optimizer.to_json()


@fuzzed(states(), FEW)
def test_a_state_is_refused_with_a_value_error_or_restored(text):
    try_state(text)


@pytest.mark.slow
@fuzzed(states(), MANY)
def test_many_states_are_refused_with_a_value_error_or_restored(text):
    try_state(text)


def test_a_state_that_is_nested_too_deeply_is_refused():
    with pytest.raises(ValueError, match="not the state of an optimizer"):
        airbo.Optimizer.from_json("[" * 100_000)


# -- command lines


def try_words(begun, line):
    """Run a command: it ends with a message and an exit code."""
    command, words = line
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(begun, folder, dirs_exist_ok=True)
        where = ["--file", str(Path(folder, "campaign.toml"))]
        named = [str(Path(folder, "new.toml"))] if command in ("check", "init") else []
        result = CliRunner().invoke(app, [command, *named, *words, *([] if named else where)])
        assert isinstance(result.exception, SystemExit | None), line
        assert result.exit_code in (0, 1, 2, 3, 4), line
        with Campaign.open(Path(folder, "campaign.toml")) as c:
            assert c.experiment(0).has_outcome


@fuzzed(command_lines, FEW)
def test_a_command_line_ends_with_a_message(begun, tmp_path, monkeypatch, line):
    monkeypatch.chdir(tmp_path)
    try_words(begun, line)


@pytest.mark.slow
@fuzzed(command_lines, MANY)
def test_many_command_lines_end_with_a_message(begun, tmp_path, monkeypatch, line):
    monkeypatch.chdir(tmp_path)
    try_words(begun, line)


# -- trials that somebody else has written


def try_trials(trials):
    """Put trials into a study: the sampler works on, or says what is wrong."""
    storage = optuna.storages.InMemoryStorage()
    study = optuna.create_study(storage=storage, sampler=sampler())
    for trial in trials:
        study._storage.create_new_trial(study._study_id, template_trial=trial)
    work_on_study(study)


def sampler():
    under = {"x": unc.Normal(0.05)}
    space = {"x": FloatDistribution(0.0, 1.0)}
    return AIRBOSampler(under, surrogate="nominal", n_startup_trials=2, search_space=space, seed=0)


def work_on_study(study):
    try:
        trial = study.ask({"x": FloatDistribution(0.0, 1.0)})
        study.tell(trial, 1.0)
        recommend(study)
    except ValueError:
        return


@fuzzed(studies, FEW // 2)
def test_trials_of_others_are_refused_in_words_or_used(trials):
    try_trials(trials)


@pytest.mark.slow
@fuzzed(studies, MANY // 2)
def test_many_trials_of_others_are_refused_in_words_or_used(trials):
    try_trials(trials)


def test_what_the_strategies_make_is_sometimes_right():
    """Otherwise only the refusals would be tested."""
    seen = set()

    @settings(max_examples=150, database=None, derandomize=True)
    @given(campaign_files())
    def look(text):
        try:
            parse(text, Path("campaign.toml"))
            seen.add("right")
        except FileError:
            seen.add("wrong")

    look()
    assert seen == {"right", "wrong"}
    assert parse(LINE, Path("campaign.toml"))
