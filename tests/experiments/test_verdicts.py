"""What is asked of the default is judged on the repeats that all methods have."""

from dataclasses import replace

import numpy as np
import pytest

from experiments.choosing.comparison import BASELINES, CHOOSING, CONFIRM
from experiments.choosing.verdicts import Verdict, tabulate
from experiments.harness.experiment import Results
from experiments.paper.optimization import DOUBLE_PEAK
from experiments.subjects.methods import BOTORCH, ERBF, GP, NYSTROM

DEFAULT = CHOOSING.candidate
CASE = replace(DOUBLE_PEAK, methods=CHOOSING.methods)


def made_up(regrets, seconds=1.0, n=4, left_out=()):
    """Results in which every method has the regrets that are given, or 1."""
    best = CASE.problem.robust_optimum.value
    each = []
    for task in CASE.tasks(n):
        regret = np.broadcast_to(regrets.get(task.label, 1.0), n)[task.seed]
        result = {
            "expected": [best - regret] * 51,
            "covered": 0.9,
            "seconds": seconds if task.label == DEFAULT.label else 1.0,
        }
        if (task.label, task.seed) not in left_out:
            each.append((task, result))
    return Results(each)


def judged(results):
    return Verdict.of(CASE, results, DEFAULT, BASELINES)


def test_ratios_and_gaps_are_those_of_the_regrets():
    v = judged(made_up({DEFAULT.label: 0.3, NYSTROM.label: 0.6, GP.label: 0.4}, seconds=2.5))
    assert v.best == GP.label
    np.testing.assert_allclose(v.gaps, [-0.1] * 4)
    assert (v.of_nystrom, v.of_plain) == pytest.approx((0.5, 0.75))
    assert (v.covered, v.times_plain) == pytest.approx((0.9, 2.5))


@pytest.mark.parametrize(
    ("regrets", "is_not_worse"),
    [([0.3] * 4, True), ([0.5] * 4, False), ([0.0, 0.9, 0.1, 0.8], True)],
    ids=["better", "always worse", "worse in the mean, not for sure"],
)
def test_worse_is_what_the_interval_says(regrets, is_not_worse):
    v = judged(made_up({DEFAULT.label: regrets, ERBF.label: 0.4}))
    assert v.is_not_worse == is_not_worse


def test_only_repeats_that_all_methods_have_count():
    regrets = {DEFAULT.label: [0.1, 0.1, 0.1, 99.0]}
    assert judged(made_up(regrets, left_out=[(ERBF.label, 3)])).n_repeats == 3
    assert judged(made_up(regrets, left_out=[(GP.label, i) for i in range(4)])) is None


def test_times_are_those_of_repeats_that_also_the_plain_loop_has():
    assert judged(made_up({}, 2.5, left_out=[(BOTORCH.label, 3)])).times_plain == 2.5
    nobody = judged(made_up({}, left_out=[(BOTORCH.label, i) for i in range(4)]))
    assert nobody.n_repeats == 4
    assert np.isnan(nobody.times_plain)


def test_targets_are_counted_for_all_cases_and_by_purpose_and_kind():
    good = judged(made_up({DEFAULT.label: 0.1}))
    bad = judged(made_up({DEFAULT.label: 2.0}, seconds=4.0))
    text = tabulate([(good, "choosing"), (bad, "confirming")])
    assert "| cases | all | choosing | confirming | P same everywhere |" in text
    for target, n in {
        "not worse than the best baseline": (1, 1, 0),
        "less than half of MMDGP-nystrom's regret": (1, 1, 0),
        "90% interval covers 85% to 95%": (2, 1, 1),
        "at most 3 times the plain loop": (1, 1, 0),
    }.items():
        assert "| {} | {} of 2 | {} of 1 | {} of 1 | {} of 2 |".format(target, *n, n[0]) in text
    assert "cover | 90% | 90% | 90% | 90% |" in text


def test_the_summary_says_what_a_case_is_for():
    text = CHOOSING.summary(made_up({}))
    assert f"| {CASE.title} | choosing | same everywhere | 4 |" in text
    assert not any(f"| {case.title} | confirming" in text for case in CONFIRM)
