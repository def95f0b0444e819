"""The double peak under wrong beliefs: what docs/paper.md says about 0.352."""

import pytest

from airbo import uncertainty as unc
from airbo.problems import DoublePeak
from experiments.paper.beliefs import BELIEFS, TRUE, beliefs, believed
from tests.experiments.small import small_tasks


@pytest.mark.parametrize(
    ("std", "low", "high"), [(0.02, 0.35, 0.3503), (0.03, 0.34, 0.35), (0.06, 0.3, 0.34)]
)
def test_no_gaussian_with_mean_zero_has_its_optimum_at_0352(std, low, high):
    assert low < DoublePeak(unc.Normal(std)).robust_optimum.design.item() < high


def test_a_gaussian_of_the_same_moments_puts_the_optimum_between_the_peaks():
    same = believed("Gaussian, same mean and variance")
    for moment in ("mean", "covariance"):
        design = same.bounds[:1]
        found, true = (getattr(u, moment)(design) for u in (same.uncertainty, beliefs()[TRUE]))
        assert found.item() == pytest.approx(true.item(), rel=1e-6)
    assert same.robust_optimum.design.item() == pytest.approx(0.2781, abs=1e-4)


def test_samples_scatter_the_optimum_around_the_true_one():
    task = next(t for t in small_tasks(BELIEFS) if t.label.endswith("0.01"))
    result = BELIEFS.run(task)
    assert len(set(result["sampled"])) > 1
    assert all(abs(x - result["design"]) < 0.01 for x in result["sampled"])
