"""The truth by every measure, against closed forms."""

from dataclasses import dataclass
from statistics import NormalDist
from typing import ClassVar

import pytest
import torch

from airbo import measures
from airbo.problems import Branin, Problem, Wave
from airbo.problems.truth import direction_of
from airbo.uncertainty import Normal, Uniform

STANDARD = NormalDist()


@dataclass(frozen=True)
class Slope(Problem):
    """f(x) = 3 x: under a normal error of 0.1, values are normal with a deviation of 0.3."""

    name: ClassVar[str] = "slope"
    direction: ClassVar[str] = "maximize"
    uncertainty: object = Normal(0.1)

    @property
    def bounds(self):
        return torch.tensor([[0.0], [1.0]], dtype=torch.float64)

    def __call__(self, X):
        return 3 * X.squeeze(-1)


class Downhill(Slope):
    """The same, to be minimized: the bad side is the upper one."""

    direction: ClassVar[str] = "minimize"


X = torch.tensor([[0.2], [0.5]], dtype=torch.float64)
Q = STANDARD.inv_cdf(0.9)
TAIL = STANDARD.pdf(Q) / 0.1  # mean of a standard normal beyond its 90% quantile


@pytest.mark.parametrize(
    ("measure", "offset"),
    [
        (measures.Mean(), 0.0),
        (measures.MeanStd(2.0), -0.6),
        (measures.Quantile(0.9), -0.3 * Q),
        (measures.CVaR(0.9), -0.3 * TAIL),
    ],
    ids=repr,
)
def test_measures_of_a_normal_value_have_their_closed_form_on_the_bad_side(measure, offset):
    for problem, sign in ((Slope(), 1), (Downhill(), -1)):
        expected = 3 * X.squeeze(-1) + sign * offset
        torch.testing.assert_close(
            problem.measure_value(X, measure), expected, atol=5e-4, rtol=0
        )  # fmt: skip
        assert (problem.measure_error(X, measure) < 5e-4).all()


def test_shares_and_distances_to_a_target_have_no_direction():
    share = STANDARD.cdf((1.0 - 0.6) / 0.3)
    for problem in (Slope(), Downhill()):
        found = problem.measure_value(X, measures.InSpec(high=1.0))
        assert found[0].item() == pytest.approx(share, abs=1e-3)
        assert direction_of(measures.InSpec(high=1.0), problem.direction) == "maximize"
        off = problem.measure_value(X, measures.Target(1.5))
        assert off[1].item() == pytest.approx(-0.09, abs=1e-4)
        best = problem.measure_optimum(measures.Target(1.5))
        assert best.design.item() == pytest.approx(0.5, abs=2e-3)


def test_the_worst_of_a_bounded_error_is_at_its_end():
    problem = Slope(Uniform(-0.1, 0.1))
    assert problem.measure_value(X, measures.Worst())[0].item() == pytest.approx(0.3, abs=1e-3)


@pytest.mark.parametrize("problem", [Slope(), Downhill()], ids=["maximize", "minimize"])
def test_the_worst_of_an_unbounded_error_is_what_999_of_1000_reach(problem):
    found = problem.measure_value(X, measures.Worst())
    sign = 1 if problem.direction == "maximize" else -1
    expected = 3 * X.squeeze(-1) - sign * 0.3 * STANDARD.inv_cdf(0.999)
    torch.testing.assert_close(found, expected, atol=2e-3, rtol=0)
    assert torch.equal(found, problem.measure_value(X, measures.Quantile(0.999)))


def test_the_mean_is_the_expected_value():
    problem, X = Branin(), torch.tensor([[9.4, 2.8], [3.0, 2.0]], dtype=torch.float64)
    found, error = (f(X, measures.Mean()) for f in (problem.measure_value, problem.measure_error))
    assert (found - problem.expected(X)).abs().le(5 * error + 1e-6).all()


def test_no_design_is_better_than_the_best_by_its_measure():
    problem, measure = Wave(Normal(0.03)), measures.CVaR(0.9)
    grid = torch.linspace(0, 1, 11, dtype=torch.float64).unsqueeze(-1)
    best = problem.measure_optimum(measure)
    assert problem.measure_value(grid, measure).max() < best.value + 1e-3
    at_best = problem.measure_value(best.design.unsqueeze(0), measure)
    assert at_best.item() == pytest.approx(best.value)
    assert problem.measure_optimum(measure) is best
