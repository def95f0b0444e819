"""The sampler under Ray Tune's OptunaSearch."""

import re
from pathlib import Path

import optuna
import pytest

from airbo import uncertainty as unc
from airbo.integrations.optuna import AIRBOSampler, optimizer_of, recommend
from tests.integrations.optuna.common import hill, quick, run, study_of

pytest.importorskip("ray.tune", reason="needs ray: `make slow` installs it")
pytestmark = [
    pytest.mark.needs("ray"),
    pytest.mark.filterwarnings("default"),  # Ray has warnings of its own
]

import ray  # noqa: E402
from ray import tune  # noqa: E402
from ray.tune.search.optuna import OptunaSearch  # noqa: E402

SPACE = {
    "x": optuna.distributions.FloatDistribution(0.0, 1.0),
    "y": optuna.distributions.FloatDistribution(0.0, 1.0),
}


def searcher(storage=None):
    return OptunaSearch(SPACE, metric="value", mode="max", sampler=quick(), storage=storage)


def complete(search, name):
    params = search.suggest(name)
    search.on_trial_complete(name, {"value": hill(params)})
    return params


def test_ray_gets_the_parameters_that_optuna_gets():
    search = searcher()
    assert [complete(search, f"t{i}") for i in range(6)] == run(study_of(quick()), 6)


def test_what_ray_has_not_finished_is_pending_and_what_it_lost_has_failed():
    storage = optuna.storages.InMemoryStorage()
    search = searcher(storage)
    for i in range(4):
        complete(search, f"t{i}")
    lost, under_way = search.suggest("lost"), search.suggest("under way")
    search.on_trial_complete("lost", error=True)
    study = optuna.load_study(study_name="optuna", storage=storage, sampler=quick())
    optimizer = optimizer_of(study)
    assert optimizer.pending == [under_way]
    assert list(optimizer.observations["status"]) == ["ok"] * 4 + ["failed"]
    assert optimizer.observations["x"].iloc[-1] == lost["x"]


def test_a_search_that_ray_saves_and_restores_goes_on(tmp_path):
    search, restored = searcher(), searcher()
    for i in range(4):
        complete(search, f"t{i}")
    search.save(str(tmp_path / "search"))
    restored.restore(str(tmp_path / "search"))
    assert complete(restored, "next") == complete(search, "next")


PAGE = Path(__file__).parents[3] / "docs" / "optuna.md"


@pytest.mark.slow
def test_the_example_of_the_docs_finds_the_optimum(tmp_path, monkeypatch):
    monkeypatch.setenv("RAY_AUTH_MODE", "disabled")
    monkeypatch.chdir(tmp_path)
    [example] = re.findall(r"^```py\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.S | re.M)

    def experiment(config):  # pickled by value: the workers do not import this file
        tune.report({"value": -(((config["speed"] - 120) / 40) ** 2) - (config["depth"] - 1) ** 2})

    sampler = AIRBOSampler({"speed": unc.Normal(5.0)}, n_startup_trials=6, seed=0)
    names = {"optuna": optuna, "sampler": sampler, "experiment": experiment, "recommend": recommend}
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    try:
        exec(example.replace("num_samples=40", "num_samples=14"), names)
    finally:
        ray.shutdown()
    assert [trial.state.name for trial in names["study"].trials] == ["COMPLETE"] * 14
    best = recommend(names["study"], sampler=sampler).design
    assert abs(best["speed"] - 120) < 20
