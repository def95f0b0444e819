"""Predicted against observed: what the model says of values that it has not seen."""

import numpy as np
import pytest
import torch

import airbo
from airbo.lab.report import Slice
from airbo.lab.report.trust import (
    LeftOut,
    importance_figure,
    importance_verdict,
    importances,
    left_out,
    trust_figure,
    trust_verdict,
)
from tests.lab.report.common import milling, one, optimizer, outcome

pytestmark = pytest.mark.usefixtures("as_without_shape_checks")


def without(model, i):
    """Condition the prior of a fitted model on all values but one, by hand."""
    model.train()
    with torch.no_grad():
        prior = model(*model.train_inputs)
        noisy = model.likelihood(prior, *model.train_inputs)
    model.eval()
    mean, C, y = noisy.mean, noisy.covariance_matrix, model.train_targets
    rest = [j for j in range(len(y)) if j != i]
    weights = torch.linalg.solve(C[rest][:, rest], C[rest, i])
    predicted = mean[i] + weights @ (y[rest] - mean[rest])
    variance = C[i, i] - weights @ C[rest, i]
    both = model.outcome_transform.untransform(predicted.view(1, 1), variance.view(1, 1))
    return [t.item() for t in both]


@pytest.mark.parametrize("surrogate", ["default", "ugp", "nominal"])
@pytest.mark.parametrize("direction", ["maximize", "minimize"])
def test_a_value_is_predicted_from_all_others(surrogate, direction):
    opt = one(n=8, surrogate=surrogate, direction=direction)
    sign = 1 if direction == "maximize" else -1
    found = left_out(outcome(opt))
    assert found.observed == pytest.approx(opt.observations["value"].to_numpy())
    for i in range(8):
        mean, variance = without(opt.model, i)
        assert found.predicted[i] == pytest.approx(sign * mean, abs=1e-6)
        assert found.std[i] == pytest.approx(variance**0.5, rel=1e-4)


def test_replicates_are_left_out_together():
    opt = one(n=6, surrogate="ugp")
    opt.tell({"x": 0.3}, 1.0)
    opt.tell({"x": 0.3}, 2.0)
    found = left_out(outcome(opt))
    assert found.n == 7
    assert 1.5 in found.observed.round(9)


def said(observed, predicted, std):
    n = len(observed)
    return LeftOut(np.array(observed), np.array(predicted), np.full(n, std), ["x"] * n)


def test_a_model_that_is_right_is_believed_and_one_that_knows_nothing_is_not():
    rng = np.random.default_rng(0)
    y = rng.normal(size=40)
    good = said(y, y + 0.1 * rng.normal(size=40), 0.1)
    assert good.explained > 0.97
    text, doubt = trust_verdict(good)
    assert text.startswith("The model predicts well what it has not seen")
    assert not doubt
    others = (y.sum() - y) / 39
    mean = said(y, others, 1.0)
    assert mean.explained == pytest.approx(0)
    text, doubt = trust_verdict(mean)
    assert text.startswith("The model cannot predict yet")
    assert doubt


def test_a_model_that_is_too_sure_of_itself_is_not_believed():
    rng = np.random.default_rng(0)
    y = rng.normal(size=40)
    text, doubt = trust_verdict(said(y, y + 0.3 * rng.normal(size=40), 0.1))
    assert text.startswith("Do not trust the ± of this page")
    assert doubt


def test_a_model_that_states_its_errors_rightly_is_seldom_blamed():
    rng = np.random.default_rng(1)
    n_blamed = 0
    for _ in range(500):
        y, error = rng.normal(size=(2, 25))
        n_blamed += said(y, y + 0.2 * error, 0.2).is_overconfident
    assert n_blamed <= 15  # at most 1%, so 5 of 500; 15 has a chance of 1e-4


def test_few_values_are_not_judged():
    text, doubt = trust_verdict(left_out(outcome(one(n=4, surrogate="ugp"))))
    assert text == "With values of 4 designs it is too early to judge the model."
    assert doubt
    assert left_out(outcome(one(n=1, surrogate="ugp"))) is None


def test_every_design_stands_in_the_figure_once():
    findings = outcome(milling(n=9, failed=[3], surrogate="ugp"))
    figure = trust_figure(findings, left_out(findings))
    assert sum(len(trace.x) for trace in figure.data[1:]) == 8


# -- what matters


def test_importances_are_the_total_indices_of_a_known_function():
    opt = airbo.Optimizer({n: (0.0, 1.0) for n in "abc"}, surrogate="nominal", n_initial=40)
    for _ in range(40):
        design = opt.ask()
        opt.tell(design, 3 * design["a"] + design["b"])  # shares 9/10 and 1/10, and nothing of c
    shares = importances(outcome(opt))
    assert shares["a"] == pytest.approx(0.9, abs=0.05)
    assert shares["b"] == pytest.approx(0.1, abs=0.05)
    assert shares["c"] < 0.01
    assert importance_verdict(shares).startswith("a matters most. c makes hardly any difference")
    assert list(importance_figure(shares).data[0].y) == ["c", "b", "a"]


def test_where_all_values_are_equal_nothing_matters():
    opt = optimizer({"a": (0.0, 1.0), "b": ["x", "y"]}, n=4, f=lambda d: 2.0, surrogate="nominal")
    shares = {name: round(share, 6) for name, share in importances(outcome(opt)).items()}
    assert set(shares) == {"a", "b"}
    assert (
        importance_verdict(dict.fromkeys("ab", 0.0)) == "The model sees no parameter that matters."
    )


# -- designs that are hit exactly


@pytest.mark.parametrize("surrogate", ["mmd", "skl", "nominal"])
def test_a_surrogate_that_cannot_say_what_exact_designs_give_draws_no_such_curve(surrogate):
    assert Slice(outcome(one(n=2, surrogate=surrogate)), "x").nominal is None


@pytest.mark.parametrize("surrogate", ["default", "ugp", "erbf"])
def test_a_surrogate_that_is_linear_in_the_distribution_can_say(surrogate):
    assert outcome(one(n=2, surrogate=surrogate)).knows_exact
