"""A log that was made from a known truth gives the truth back."""

import tomllib

import numpy as np
import pandas as pd
import pytest
import torch

from airbo import uncertainty as unc
from airbo.calibrate import learned as learning
from airbo.calibrate.logs import step_of

N = 1000


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture
def asked(rng):
    return rng.uniform(10, 100, N)


@pytest.fixture
def two_folds(monkeypatch):
    """Fit candidates twice instead of five times, where any choice will do."""
    monkeypatch.setattr(learning, "N_FOLDS", 2)


def kinds(learned):
    return {finding.kind for finding in learned.findings}


def chosen(learned):
    return [c.name for c in learned.candidates if c.chosen]


def moments(uncertainty, x):
    X = torch.tensor([[x]], dtype=torch.float64)
    return uncertainty.mean(X).item() - x, uncertainty.covariance(X).item() ** 0.5


# -- bias, scale and shape


def test_an_unbiased_normal_is_found(rng, asked):
    learned = unc.learn(asked, asked + rng.normal(0, 2, N))
    assert isinstance(learned.uncertainty, unc.Normal)
    assert learned.uncertainty.std == pytest.approx(2, rel=0.06)
    assert kinds(learned) == {"no bias", "normal", "constant"}


def test_a_bias_is_kept(rng, asked):
    learned = unc.learn(asked, asked - 1.5 + rng.normal(0, 2, N))
    assert moments(learned.uncertainty, 50.0) == pytest.approx((-1.5, 2), rel=0.1)
    assert kinds(learned) == {"bias", "normal", "constant"}
    assert "below the asked value" in learned.text


def test_a_small_bias_is_never_dropped(rng):
    asked = rng.uniform(10, 100, 5 * N)
    learned = unc.learn(asked, asked + rng.normal(0.1, 1, 5 * N))
    assert moments(learned.uncertainty, 50.0)[0] == pytest.approx(0.1, abs=0.06)
    assert "above the asked value (bias)" in learned.text


def test_a_log_that_cannot_resolve_its_deviations_says_so(rng):
    asked = rng.choice([0.0, 25.0, 50.0, 75.0], N)
    learned = unc.learn(asked, np.round(asked + rng.normal(0, 0.2, N)))
    assert "unresolved" in kinds(learned)
    assert "Deviations come in steps of 1, which is too coarse" in learned.text
    fine = unc.learn(asked, np.round(asked + rng.normal(0, 2, N)))
    assert "unresolved" not in kinds(fine)


def test_a_coarse_log_without_any_deviation_does_not_prove_that_there_is_none(rng):
    asked = rng.integers(0, 100, N).astype(float)
    learned = unc.learn(asked, np.round(asked + rng.normal(0, 0.05, N)))
    assert "unresolved" in kinds(learned)
    assert "cannot show standard deviations below 0.3" in learned.text
    fine = rng.uniform(0, 100, N)
    assert "unresolved" not in kinds(unc.learn(fine, fine))


def test_deviations_in_a_part_of_the_range_are_not_called_the_same_everywhere(rng):
    asked = rng.choice([0.0, 25.0, 50.0, 75.0], N)
    missed = np.where(asked == 0, rng.choice([0.0, 1.0], N), 0.0)
    learned = unc.learn(asked, asked + missed)
    assert "part of the range" in kinds(learned)
    assert "deviations occur only where 0 was asked for" in learned.text.lower()
    everywhere = unc.learn(asked, asked + rng.choice([0.0, 1.0], N))
    assert "part of the range" not in kinds(everywhere)


@pytest.mark.parametrize("bias", [0.0, 0.03])
def test_an_error_in_percent_is_relative(rng, asked, bias):
    learned = unc.learn(asked, asked * (1 + rng.normal(bias, 0.05, N)))
    assert isinstance(learned.uncertainty, unc.Relative)
    for x in (10.0, 100.0):
        mean, std = moments(learned.uncertainty, x)
        assert mean == pytest.approx(bias * x, abs=0.005 * x)
        assert std == pytest.approx(0.05 * x, rel=0.1)
    assert "of the value (standard deviation)" in learned.text


def test_a_factor_is_log_normal(rng, asked):
    learned = unc.learn(asked, asked * np.exp(rng.normal(0, 0.3, N)))
    assert isinstance(learned.uncertainty, unc.LogNormal)
    assert learned.uncertainty.sigma == pytest.approx(0.3, rel=0.06)


def test_a_spread_that_changes_in_a_step_is_piecewise(rng, asked):
    spread = np.where(asked < 40, 0.5, 3.0)
    learned = unc.learn(asked, asked + spread * rng.normal(0, 1, N))
    assert isinstance(learned.uncertainty, unc.Piecewise)
    assert learned.uncertainty.edges[0] == pytest.approx(40, abs=3)
    assert moments(learned.uncertainty, 20.0)[1] == pytest.approx(0.5, rel=0.15)
    assert moments(learned.uncertainty, 90.0)[1] == pytest.approx(3.0, rel=0.15)
    assert "varying" in kinds(learned)


def test_a_gain_error_is_a_bias_that_changes_over_the_range(rng, asked):
    learned = unc.learn(asked, 1.05 * asked - 2 + rng.normal(0, 0.3, N))
    for x in (20.0, 50.0, 90.0):
        assert moments(learned.uncertainty, x)[0] == pytest.approx(0.05 * x - 2, abs=0.5)
    assert "varying" in kinds(learned)


SHAPES = {
    "uniform": (lambda rng: rng.uniform(-1, 2, N), "uniform", unc.Uniform),
    "t with 3 degrees": (lambda rng: rng.standard_t(3, N), "mixture", unc.GaussianMixture),
    "skewed right": (lambda rng: rng.exponential(1, N), "skewed", unc.ChiSquared),
    "skewed left": (lambda rng: -rng.gamma(2, 1, N), "skewed", unc.SciPy),
    "two modes": (
        lambda rng: np.where(rng.random(N) < 0.3, -3, 1) + rng.normal(0, 0.4, N),
        "mixture",
        unc.GaussianMixture,
    ),
}


@pytest.mark.parametrize(("draw", "kind", "made"), SHAPES.values(), ids=SHAPES)
def test_shapes_are_named_and_moments_kept(rng, asked, draw, kind, made):
    deviations = draw(rng)
    learned = unc.learn(asked, asked + deviations, keep_outliers=True)
    assert kind in kinds(learned)
    assert isinstance(learned.uncertainty, made)
    mean, std = moments(learned.uncertainty, 50.0)
    assert mean == pytest.approx(deviations.mean(), abs=0.1)
    assert std == pytest.approx(deviations.std(), rel=0.1)


def test_what_no_shape_describes_falls_back_to_the_log(rng, asked):
    comb = rng.choice([-4.0, -2.5, -1.0, 0.3, 1.7, 2.2, 5.0, 9.0], N)
    learned = unc.learn(asked, asked + comb + rng.normal(0, 0.01, N))
    assert isinstance(learned.uncertainty, unc.Empirical)
    assert "log" in kinds(learned)
    assert moments(learned.uncertainty, 50.0)[1] == pytest.approx(comb.std(), rel=0.1)


def test_a_perfect_machine_is_exact(asked):
    assert unc.learn(asked, asked).uncertainty == unc.Exact()


def test_a_constant_shift_is_a_bias_without_spread(asked):
    assert moments(unc.learn(asked, asked + 2).uncertainty, 50.0) == pytest.approx((2, 0))


# -- time


def test_a_drift_is_named_with_both_ends(rng, asked):
    learned = unc.learn(asked, asked + np.linspace(0, 3, N) + rng.normal(0, 1, N))
    (drift,) = (f for f in learned.findings if f.kind == "drift")
    assert "first tenth" in drift.text


def test_a_dependence_on_the_asked_value_is_no_drift(rng):
    rising = np.linspace(10, 100, N)
    learned = unc.learn(rising, 1.05 * rising + rng.normal(0, 0.05 * rising))
    assert "drift" not in kinds(learned)


def test_a_lag_is_found_and_taken_out(rng):
    asked = np.repeat(rng.uniform(10, 100, N // 25), 25)
    actual = np.concatenate([np.full(4, asked[0]), asked[:-4]]) + rng.normal(0, 0.5, N)
    learned = unc.learn(asked, actual)
    (lag,) = (f for f in learned.findings if f.kind == "lag")
    assert "4 rows later" in lag.text
    assert learned.uncertainty.std == pytest.approx(0.5, rel=0.1)
    assert moments(unc.learn(asked, actual, lag=0).uncertainty, 50.0)[1] > 2


def test_the_way_to_a_new_value_is_named(rng):
    asked = np.repeat(rng.uniform(10, 100, N // 50), 50)
    actual = asked.copy()
    for i in range(1, N):
        actual[i] = actual[i - 1] + 0.5 * (asked[i] - actual[i - 1])
    actual += rng.normal(0, 0.1, N)
    assert "settling" in kinds(unc.learn(asked, actual))


# -- single values, steps, missing values


def test_outliers_are_named_and_left_out_unless_kept(rng, asked):
    deviations = rng.normal(0, 1, N)
    deviations[[5, 700]] = [60, -80]
    table = pd.DataFrame({"flow": asked}, index=np.arange(N) + 100)
    learned = unc.learn(table, table + deviations[:, None])
    (outliers,) = (f for f in learned.findings if f.kind == "outliers")
    assert "rows 105, 800" in outliers.text
    assert moments(learned.uncertainty, 50.0)[1] == pytest.approx(1, rel=0.1)
    kept = unc.learn(table, table + deviations[:, None], keep_outliers=True)
    assert "kept in the proposal" in kept.text
    assert moments(kept.uncertainty, 50.0)[1] > 1.5


def test_heavy_tails_are_no_outliers(rng, asked):
    assert "outliers" not in kinds(unc.learn(asked, asked + rng.standard_t(4, N)))


def test_rounding_is_named_and_not_mistaken_for_a_shape(rng, asked):
    asked = np.round(asked)
    learned = unc.learn(asked, np.round(asked + rng.normal(0, 0.6, N)))
    assert {"quantized", "normal"} <= kinds(learned)
    assert learned.uncertainty.std == pytest.approx(0.6, rel=0.1)


def test_a_machine_that_moves_in_steps_misses_evenly(asked):
    learned = unc.learn(asked, np.round(asked / 5) * 5)
    assert {"quantized", "uniform"} <= kinds(learned)
    assert moments(learned.uncertainty, 50.0)[1] == pytest.approx(5 / 12**0.5, rel=0.05)


@pytest.mark.parametrize("step", [0.1, 0.25, 1.0, 5.0, 0.00390625])
def test_steps_are_recognised(rng, step):
    assert step_of(np.round(rng.normal(0, 10 * step, N) / step) * step) == pytest.approx(step)


def test_numbers_with_all_their_digits_have_no_step(rng):
    assert step_of(rng.normal(size=N)) == 0


def test_rows_without_a_value_are_named(rng, asked):
    actual = asked + rng.normal(0, 2, N)
    actual[[3, 8]] = np.nan
    learned = unc.learn(asked, actual)
    assert "2 of 1000 rows lack" in learned.text


def test_few_rows_give_a_normal_and_say_so():
    learned = unc.learn([1.0, 2.0, 3.0, 4.0], [1.1, 1.9, 3.2, 3.9])
    assert isinstance(learned.uncertainty, unc.Normal)
    assert "few rows" in kinds(learned)


# -- several parameters


def test_independent_parameters_stay_independent(rng, asked):
    X = np.column_stack([asked, rng.permutation(asked)])
    learned = unc.learn(X, X + rng.normal(0, [1, 2], (N, 2)))
    assert set(learned.by_parameter) == {"x1", "x2"}
    assert "dependence" not in kinds(learned)
    assert learned.uncertainty.dim == 2


def test_correlated_parameters_become_a_group(rng, asked):
    names = ["x", "y", "z"]
    C = np.array([[1.0, 0.0, 1.6], [0.0, 1.0, 0.0], [1.6, 0.0, 4.0]])
    X = np.column_stack([asked, rng.permutation(asked), rng.permutation(asked)])
    asked = pd.DataFrame(X, columns=names)
    learned = unc.learn(asked, asked + rng.multivariate_normal([0, 1, 0], C, N))
    assert set(learned.by_parameter) == {"y", ("x", "z")}
    found = learned.uncertainty.covariance(torch.tensor([[50.0, 50.0, 50.0]]).double())[0]
    np.testing.assert_allclose(found, C, atol=0.35)
    assert "x and z deviate together (correlation 0." in learned.text


def test_correlated_errors_in_percent_stay_relative(rng, asked):
    X = np.column_stack([asked, rng.permutation(asked)])
    shares = rng.multivariate_normal([0, 0], [[0.0025, 0.002], [0.002, 0.0025]], N)
    learned = unc.learn(X, X * (1 + shares))
    assert isinstance(learned.uncertainty, unc.Relative)
    assert learned.uncertainty.dim == 2


def test_uncorrelated_parameters_on_a_circle_depend_on_each_other(rng, asked):
    angle = rng.uniform(0, 2 * np.pi, N)
    X = np.column_stack([asked, rng.permutation(asked)])
    circle = np.column_stack([np.cos(angle), np.sin(angle)]) + rng.normal(0, 0.05, (N, 2))
    learned = unc.learn(X, X + circle)
    assert learned.uncertainty.dim == 2
    assert "dependence" in kinds(learned)
    samples = learned.uncertainty.perturb(
        torch.zeros(1, 2).double(), unc.base_draws(256, learned.uncertainty.n_base(2))
    )
    assert samples.norm(dim=-1).mean().item() == pytest.approx(1, abs=0.05)


# -- the comparison


def test_candidates_say_how_far_they_are_from_the_best(rng, asked):
    learned = unc.learn(asked, asked + rng.uniform(-1, 1, N))
    best, *others = learned.candidates
    assert best.difference == 0
    assert all(c.difference <= 0 and c.standard_error >= 0 for c in others)
    assert [c.log_likelihood for c in others] == sorted(
        (c.log_likelihood for c in others), reverse=True
    )
    assert chosen(learned) == ["uniform"]


def test_the_likelihood_of_the_truth_is_its_entropy(rng, asked):
    learned = unc.learn(asked, asked + rng.normal(0, 2, N))
    (proposed,) = (c for c in learned.candidates if c.chosen)
    entropy = 0.5 * np.log(2 * np.pi * np.e * 4)
    assert proposed.log_likelihood == pytest.approx(-entropy, abs=0.06)


def test_the_same_log_gives_the_same_answer(rng, asked, two_folds):
    X = np.column_stack([asked, asked])[:200]
    Y = X + rng.multivariate_normal([0, 0], [[1, 0.9], [0.9, 1]], 200).round(1)
    first, second = unc.learn(X, Y), unc.learn(X, Y)
    assert first.candidates == second.candidates
    assert first.text == second.text


def test_units_do_not_matter(rng, asked, two_folds):
    actual = asked + rng.normal(1, 2, N)
    one, other = unc.learn(asked, actual), unc.learn(1000 * asked, 1000 * actual)
    assert chosen(one) == chosen(other)
    mean, std = moments(one.uncertainty, 50.0)
    assert moments(other.uncertainty, 50e3) == pytest.approx((1000 * mean, 1000 * std), rel=1e-2)


# -- forms of input and output


def test_arrays_columns_and_tables_are_the_same(rng, asked, two_folds):
    asked = asked[:50]
    actual = asked + rng.normal(0, 2, 50)
    table = pd.DataFrame({"sp": asked, "pv": actual})
    learned = [
        unc.learn(asked, actual),
        unc.learn(table["sp"], table["pv"]),
        unc.learn(table[["sp"]], table[["pv"]]),
        unc.learn({"a": asked}, {"a": actual}),
        unc.learn(asked.tolist(), actual.tolist()),
    ]
    assert len({one.uncertainty for one in learned}) == 1


def test_columns_are_paired_by_name(rng, asked):
    other = rng.permutation(asked)
    learned = unc.learn({"a": asked, "b": other}, {"b": other + 5, "a": asked - 5})
    assert learned.by_parameter["a"].mean(torch.zeros(1, 1).double()).item() == -5


@pytest.mark.parametrize("name", ["flow", "flow rate [l/min]", 'a "quoted" one'])
def test_toml_holds_one_table_per_parameter(rng, asked, name, two_folds):
    asked = asked[:200]
    learned = unc.learn({name: asked}, {name: asked * rng.normal(1, 0.05, 200)})
    table = tomllib.loads(learned.toml)["parameters"][name]["uncertainty"]
    assert table["kind"] == "normal"
    assert table["std"].endswith("%")
    assert float(table["std"][:-1]) / 100 == pytest.approx(learned.uncertainty.share.std)


@pytest.mark.parametrize(
    ("asked", "actual", "message"),
    [
        ([1.0, 2.0], [1.0, 2.0], "2 rows have an asked and an actual value; 3 are needed"),
        ([1.0, 2.0, 3.0], [1.0, 2.0], "3 values were asked, but 2 are actual"),
        ([1.0, np.inf, 3.0], [1.0, 2.0, 3.0], "row 1: the asked value is infinite"),
        (np.ones((5, 2)), np.ones((5, 1)), "asked has 2 columns and actual has 1"),
        (np.ones((5, 2, 2)), np.ones((5, 1)), "1 or 2 dimensions, got 3"),
        ({}, {}, "There are no columns"),
    ],
)
def test_refusals(asked, actual, message):
    with pytest.raises(ValueError, match=message):
        unc.learn(asked, actual)


def test_texts_are_no_numbers():
    with pytest.raises(TypeError, match="asked must hold numbers"):
        unc.learn(["a", "b"], [1.0, 2.0])
