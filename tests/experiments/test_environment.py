"""What nobody sets: published optima, contexts and known noise."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from experiments.harness.experiment import Results, Task
from experiments.measures import environment
from experiments.measures.environment import (
    CONTEXT,
    CONTEXTUAL,
    KNOWN_NOISE,
    RELIABILITY,
    STRUCTURES,
    contexts,
)
from tests.experiments.small import small_tasks

PUBLISHED = {
    "cantilever": {"w": 2.461, "t": 3.868},
    "short column": {"b": 8.649, "h": 25.0},
    "otrobopt": {"x0": 2.2, "x1": 0.6},
}


@pytest.mark.parametrize("name", STRUCTURES)
def test_the_published_optimum_just_keeps_its_limits(name):
    cost, missed = STRUCTURES[name].judge(PUBLISHED[name])
    assert cost == pytest.approx(STRUCTURES[name].best, rel=0.002)
    assert missed == pytest.approx(1.0, abs=0.06)


def test_environments_have_the_published_moments():
    drawn = STRUCTURES["short column"].drawn(10**5, seed=0)
    assert np.corrcoef(drawn["P"], drawn["M"])[0, 1] == pytest.approx(0.5, abs=0.01)
    assert (drawn["Y"].mean(), drawn["Y"].std()) == pytest.approx((5.0, 0.5), rel=0.02)
    again = STRUCTURES["short column"].drawn(1, seed=3, i=5)
    assert again == STRUCTURES["short column"].drawn(1, seed=3, i=5)


@pytest.mark.parametrize("name", CONTEXTUAL)
def test_the_best_design_of_a_context_loses_nothing(name, monkeypatch):
    monkeypatch.setattr(environment, "N_GRID", 21)
    problem = replace(CONTEXTUAL[name])  # its truth is that of this grid
    line = torch.linspace(0, 1, 21, dtype=torch.float64)
    X = torch.cartesian_prod(*[line] * problem.d).reshape(-1, problem.d)
    best = {c: X[problem.expected(X, c).argmax()].tolist() for c in contexts()}
    assert problem.regret(best) == pytest.approx(0.0, abs=1e-12)
    same = dict.fromkeys(contexts(), best[contexts()[4]])
    assert problem.regret(same) > 0.15  # it pays to know the context


def test_expected_values_are_those_of_samples():
    problem, x = CONTEXTUAL["hartmann"], torch.tensor([[0.3, 0.6]]).double()
    landed = x + problem.error * torch.randn(200_000, 2, generator=torch.Generator().manual_seed(0))
    mean = problem.f(landed, torch.tensor(0.5)).mean().item()
    assert problem.expected(x, 0.5).item() == pytest.approx(mean, abs=0.003)


def test_results_are_tabulated():
    kept, missed = {"more": 0.02, "missed": 0.9}, {"more": -0.1, "missed": 3.0}
    each = [(Task("reliability", "otrobopt, seen", i, {}), r) for i, r in enumerate([kept, missed])]
    assert "| otrobopt, seen | 1 of 2 | +2.0% (+2.0%) | 1.95 |" in RELIABILITY.summary(
        Results(each)
    )
    lost = [
        (Task("context", "ridge: airbo", i, {}), {"regret": r}) for i, r in enumerate((0.1, 0.3))
    ]
    assert "| ridge | 0.200 ± 0.100 (2) | – | – |" in CONTEXT.summary(Results(lost))


@pytest.mark.slow
@pytest.mark.parametrize("experiment", [RELIABILITY, CONTEXT, KNOWN_NOISE])
def test_a_small_version_runs(experiment):
    tasks = [t for t in small_tasks(experiment) if t.config["of"] in ("otrobopt", "ridge")]
    assert tasks
    for task in tasks:
        result = experiment.run(task)
        assert all(np.isfinite(v) for v in result.values() if not isinstance(v, dict))
