"""The cases of the second and third round: published optima, disjoint sets, wide tolerances."""

import numpy as np
import pytest
import torch

from airbo.problems import Hartmann
from airbo.uncertainty import Normal
from experiments.choosing.confirming import ratio_of_all
from experiments.choosing.second import CHOOSE_NEW, CHOOSE_OLD, CONFIRM_NEW
from experiments.choosing.third import CONFIRM_THIRD
from experiments.figures.choosing import Gap
from experiments.subjects.cases import CASES
from experiments.subjects.classics import Styblinski
from experiments.subjects.loops import OptimizerLoop
from experiments.subjects.published import Chirp, Polynomial, ThreeBumps


@pytest.mark.parametrize(
    ("problem", "design", "value", "digit"),
    [
        (Chirp(), [0.3111], 1.0421, 1e-4),
        (ThreeBumps(), [0.2003, 0.2002], 0.40012, 2e-5),
        (Polynomial(), [0.267, 0.675], 7.342, 1e-3),
        (Hartmann(3, Normal(0.1)), [0.117, 0.569, 0.830], -2.9711, 1e-4),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_robust_optima_are_the_published_ones(problem, design, value, digit):
    optimum = problem.robust_optimum
    assert optimum.value == pytest.approx(value, abs=digit)
    torch.testing.assert_close(optimum.design, optimum.design.new_tensor(design), atol=5e-3, rtol=0)


def test_no_case_for_confirming_is_for_choosing():
    chosen = {case.case_name for case in (*CHOOSE_NEW, *CHOOSE_OLD)}
    second = {case.case_name for case in CONFIRM_NEW}
    assert not chosen & second
    assert not (chosen | second) & {case.case_name for case in CONFIRM_THIRD}


@pytest.mark.slow
def test_the_optimum_of_a_sum_over_columns_has_equal_columns():
    optimum = Styblinski().robust_optimum.design
    torch.testing.assert_close(optimum, optimum[0].expand(4), atol=2e-3, rtol=0)


def test_a_batch_asks_for_several_designs_before_it_is_told():
    protocol = {"acquisition": "ucb", "beta": 2.0, "n_initial": 4, "initial": "random", "batch": 4}
    loop = OptimizerLoop(CASES["cliff"], "nominal", protocol, seed=0)
    design = loop.ask()
    assert len(loop.optimizer.pending) == 4
    loop.tell(design, 1.0)
    assert len(loop.optimizer.pending) == 3


@pytest.mark.parametrize(
    "name",
    [
        "spring",
        *(pytest.param(n, marks=pytest.mark.slow) for n in ("circuit", "piston", "controller")),
    ],
)
def test_a_target_is_reached_exactly_but_not_under_tolerances(name):
    problem = CASES[name].problem
    assert problem.nominal_optimum.value == pytest.approx(0, abs=1e-3)
    assert problem.robust_optimum.value > 0.01


def test_the_ratio_of_all_is_the_geometric_mean_and_small_regrets_count_as_a_thousandth():
    half, double = (np.array([1.0, 3.0]), np.array([2.0, 6.0])), (np.full(2, 8.0), np.full(2, 4.0))
    middle, low, high = ratio_of_all([half, double], [1.0, 1.0])
    assert middle == pytest.approx(1.0)
    assert low <= middle <= high
    tiny = (np.full(2, 1e-9), np.full(2, 1e-5))
    assert ratio_of_all([tiny], [1.0]) == (1.0, 1.0, 1.0)


def test_the_gap_is_to_the_best_other_on_the_repeats_that_all_have():
    finals = {"ours": {0: 1.0, 1: 2.0, 2: 9.0}, "a": {0: 0.5, 1: 0.7}, "b": {0: 3.0, 1: 4.0}}
    gap = Gap.of(finals, "ours")
    assert gap.best == "a"
    np.testing.assert_allclose(gap.each, [0.5, 1.3])
