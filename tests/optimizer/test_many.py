"""Very many observations: the model looks at a part, says so, and chooses it without luck."""

import warnings

import numpy as np
import optuna
import pandas as pd
import pytest
import torch

from airbo import uncertainty as unc
from airbo.acquisition import most_promising
from airbo.analysis import outlook
from airbo.integrations.optuna import UNCERTAINTY, AIRBOSampler, describe_uncertainty
from airbo.optimizer import optimizer as optimizer_module
from airbo.optimizer import search, surrogate
from airbo.optimizer.surrogate import PartOfDataWarning, replicates
from tests.optimizer.common import LINE, SQUARE, cheap, recommend

MOST = 20


@pytest.fixture
def few_rows(monkeypatch):
    """Let a model look at few rows, as if these were already too many."""
    for module in (search, surrogate):
        monkeypatch.setattr(module, "MOST_ROWS", MOST)
    monkeypatch.setattr(outlook, "MOST_TRIED", MOST)


def line(n, lucky=None):
    """A hill with its top at 0.3; one value may be lucky."""
    x = np.random.default_rng(0).permutation(n) / (n - 1)
    value = 1 - (x - 0.3) ** 2
    if lucky is not None:
        value[lucky] += 5.0
    return pd.DataFrame({"x": x, "value": value})


def told(table, **settings):
    optimizer = cheap(LINE, **settings)
    optimizer.tell(table)
    return optimizer


def rows(optimizer):
    return optimizer.model.train_inputs[0].flatten()


@pytest.mark.usefixtures("few_rows")
def test_a_model_looks_at_a_part_of_too_many_designs_and_says_so():
    optimizer = told(line(3 * MOST))
    with pytest.warns(PartOfDataWarning, match=f"looks at {MOST} of {3 * MOST} observations"):
        design = optimizer.ask()
    optimizer.tell(design, 0.5)
    with pytest.warns(PartOfDataWarning, match=f"looks at {MOST} of {3 * MOST + 1} observations"):
        best = recommend(optimizer)
    assert best.design["x"] == pytest.approx(0.3, abs=0.05)
    assert optimizer.model.train_targets.shape == (MOST,)


@pytest.mark.usefixtures("few_rows")
def test_a_model_looks_at_everything_where_that_is_not_too_much():
    with warnings.catch_warnings():
        warnings.simplefilter("error", PartOfDataWarning)
        assert len(rows(told(line(MOST)))) == MOST


@pytest.mark.usefixtures("few_rows")
@pytest.mark.filterwarnings("ignore::airbo.optimizer.surrogate.PartOfDataWarning")
def test_the_part_knows_the_best_place_better_than_the_others():
    X = rows(told(line(200)))
    assert (X - 0.3).abs().lt(0.1).sum() >= MOST // 2  # half of the rows on a fifth of the line
    assert X.max() - X.min() > 0.6


@pytest.mark.usefixtures("few_rows")
@pytest.mark.filterwarnings("ignore::airbo.optimizer.surrogate.PartOfDataWarning")
def test_a_lucky_value_does_not_bring_its_design_into_the_part():
    table = line(200)
    before = rows(told(table))
    left_out = next(i for i, x in enumerate(table["x"]) if (before - x).abs().min() > 1e-9)
    torch.testing.assert_close(rows(told(line(200, lucky=left_out))), before)


@pytest.mark.usefixtures("few_rows")
def test_replicates_of_few_designs_are_all_looked_at():
    table = pd.concat([line(MOST)] * 10)
    optimizer = told(table)
    assert optimizer.model.train_inputs[2].sum() == len(table)


def test_replicates_are_of_one_design_under_one_uncertainty_with_one_executed_input():
    optimizer = cheap(LINE, {"x": unc.Normal(0.1)})
    for under in (None, {"x": unc.Normal(0.2)}, {"x": unc.Normal(0.3)}):
        for executed in (None, {"x": 0.4}):
            for _ in range(2):
                optimizer.tell({"x": 0.5}, 1.0, executed, under)
    groups = replicates(optimizer._history.known)
    assert sorted(map(len, groups)) == [2] * 6


@pytest.mark.usefixtures("few_rows")
def test_too_many_pending_and_failed_designs_are_looked_at_in_part():
    optimizer = told(line(5))
    for x in np.linspace(0, 1, MOST):
        optimizer.tell({"x": x}, None)
    for x in np.linspace(0.01, 0.99, MOST - 1):
        optimizer.expect({"x": x})
    waiting = [o.design for o in optimizer.record.waiting[-MOST:]]
    assert waiting == [{"x": 1.0}, *optimizer.pending]
    assert optimizer.ask() not in optimizer.pending[:-1]


def test_the_promising_points_are_those_with_the_largest_bounds():
    optimizer = told(line(12))
    Z = torch.linspace(0, 1, 50, dtype=torch.float64).unsqueeze(-1)
    posterior = optimizer.model.posterior(Z.unsqueeze(-2))
    bounds = posterior.mean.flatten() + posterior.variance.flatten().sqrt()
    found = most_promising(optimizer.model, Z, 7)
    assert set(found.tolist()) == set(bounds.argsort()[-7:].tolist())
    assert most_promising(optimizer.model, Z, 50).tolist() == list(range(50))


@pytest.mark.usefixtures("few_rows")
@pytest.mark.filterwarnings("ignore::airbo.optimizer.surrogate.PartOfDataWarning")
def test_the_outlook_simulates_a_bounded_number_of_designs(monkeypatch):
    sizes = []
    joint = outlook._joint
    monkeypatch.setattr(
        outlook, "_joint", lambda look, Z, t: sizes.append(len(Z)) or joint(look, Z, t)
    )
    outlook.look_ahead(told(line(100)))
    assert sizes[0] <= 1 + MOST + outlook.N_PROMISING + outlook.N_AROUND + outlook.N_ELSEWHERE


def test_trials_under_the_same_uncertainty_are_checked_once(monkeypatch):
    calls = []
    by_columns = optimizer_module.by_columns
    monkeypatch.setattr(
        optimizer_module, "by_columns", lambda *given: calls.append(1) or by_columns(*given)
    )
    sampler = AIRBOSampler(surrogate="nominal", n_startup_trials=1, seed=0)
    study = optuna.create_study(sampler=sampler)
    under = describe_uncertainty({"x": unc.Normal(0.05)})
    kinds = {name: optuna.distributions.FloatDistribution(*ends) for name, ends in SQUARE.items()}
    for i in range(20):
        study.add_trial(
            optuna.create_trial(
                params={"x": i / 20, "y": 0.5},
                distributions=kinds,
                value=float(i),
                user_attrs={UNCERTAINTY: under},
            )
        )
    study.ask(kinds)
    assert len(calls) <= 3
