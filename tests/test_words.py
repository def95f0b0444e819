"""Numbers and uncertainties as people read them."""

from types import SimpleNamespace

import pytest
import scipy.stats

import airbo
from airbo import uncertainty as unc
from airbo import words
from tests.uncertainties import ALL_UNCERTAINTIES


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"),
        (1.0, "1"),
        (120.0, "120"),
        (1234.5678, "1235"),
        (0.0012345678, "0.001235"),
        (-2.5, "−2.5"),
        (1e-7, "1e−07"),
        (123456789.0, "1.235e+08"),
        (99999.9, "100000"),
        (-1e-300, "−1e−300"),
    ],
)
def test_numbers_are_short(value, text):
    assert words.number(value) == text


@pytest.mark.parametrize(
    ("mean", "std", "text"),
    [
        (1.23456, 0.0567, "1.235 ± 0.057"),
        (-123.4, 56.7, "−123 ± 57"),
        (5.0, 0.0, "5 ± 0"),
        (12345.6, 789.0, "12346 ± 789"),
        (1e-12, 1e-13, "1e−12 ± 1e−13"),
        (3e9, 2e8, "3e+09 ± 2e+08"),
    ],
)
def test_means_are_rounded_to_what_is_known(mean, std, text):
    assert words.plus_minus(SimpleNamespace(mean=mean, std=std)) == text


def test_gains_carry_their_sign():
    assert words.plus_minus(SimpleNamespace(mean=0.5, std=0.1), signed=True) == "+0.50 ± 0.10"


def test_lists_read_as_sentences():
    assert words.listed(["a"]) == "a"
    assert words.listed(["a", "b", "c"]) == "a, b and c"


@pytest.mark.parametrize(("uncertainty", "d"), ALL_UNCERTAINTIES, ids=repr)
def test_every_uncertainty_has_words(uncertainty, d):
    space = airbo.Space({f"x{i}": airbo.Float(-1.0, 1.0, unit="mm") for i in range(d)})
    for name in space.names:
        text = words.hit(space, uncertainty, name)
        assert text
        assert "tensor" not in text


def test_parameters_that_are_hit_together_are_named():
    space = airbo.Space({"a": (0.0, 1.0), "b": (0.0, 1.0), "c": (0.0, 1.0)})
    P = unc.Product([unc.Ring(0.1), unc.Exact()], [(0, 2), (1,)])
    assert words.hit(space, P, "a") == "on a circle of radius 0.1; together with c"
    assert words.hit(space, P, "b") == "exactly"


PERCENT = [
    (unc.Relative(unc.Normal(0.05)), "±5% of the value (standard deviation)"),
    (unc.Relative(unc.Uniform(-0.1, 0.1)), "anywhere within ±10% of the value"),
    (unc.Relative(unc.Uniform(-0.1, 0.2)), "anywhere from −10% to 20% of the value"),
    (unc.LogNormal(0.07), "±7% of the value (log-normal)"),
    (
        unc.GaussianMixture([[1.43]], [[[0.25]]]),
        "normal, standard deviation 0.5 mm, on average 1.43 mm above the design",
    ),
    (
        unc.GaussianMixture([[-1.0], [1.0]], [[[0.25]], [[0.04]]], [0.3, 0.7]),
        "one of 2 normal distributions: 30% around −1 (±0.5), 70% around 1 (±0.2)",
    ),
    (unc.Empirical([0.1, -0.3]), "as in a log of 2 deviations, from −0.3 to 0.1 mm"),
    (
        unc.Piecewise([9.0], [unc.Exact(), unc.Normal(2.0)]),
        "below 9 mm: set exactly; from 9 mm on: normal, standard deviation 2 mm",
    ),
    (unc.SciPy(scipy.stats.laplace(scale=0.5)), "distributed as laplace (scale = 0.5)"),
    (unc.Rounded(unc.Normal(1.0), 1, 5), "normal, standard deviation 1 mm, rounded to whole"),
]


@pytest.mark.parametrize(("uncertainty", "text"), PERCENT)
def test_an_uncertainty_is_said_in_words_whether_it_is_an_object_or_a_description(
    uncertainty, text
):
    assert words.kind(uncertainty, "mm").startswith(text)
    assert words.kind(uncertainty.to_dict(), "mm") == words.kind(uncertainty, "mm")


def test_no_kind_is_shown_as_code():
    for uncertainty, _ in ALL_UNCERTAINTIES:
        text = words.kind(uncertainty, "mm")
        assert not any(sign in text for sign in ("<", "=(", "Sampler", "lambda", "{")), text


@pytest.mark.parametrize(
    ("word", "known", "said"),
    [
        ("target", ["storage", "value"], "there are 'storage', 'value'"),
        ("varying", ["ring", "normal"], "there are 'ring', 'normal'"),
        ("unif", ["uniform", "normal"], "did you mean 'uniform'?"),
        ("Sped", ["speed", "depth"], "did you mean 'speed'?"),
    ],
)
def test_only_near_words_are_suggested(word, known, said):
    assert said in words.nearest(word, known)


# -- what came of an experiment


def came(outcome, infeasible=False, **outcomes):
    return SimpleNamespace(outcome=outcome, outcomes=outcomes, infeasible=infeasible)


@pytest.mark.parametrize(
    ("experiment", "alone", "beside_others"),
    [
        (came("ok", Ra=1.39), "1.39 µm", "Ra = 1.39 µm"),
        (came("ok", Ra=-1e-9), "-1e-09 µm", "Ra = -1e-09 µm"),
        (came("failed"), "failed", "failed"),
        (came("failed", infeasible=True), "failed, its design cannot be used", None),
        (came("given up"), "given up", "given up"),
        (came("pending"), "pending", "pending"),
    ],
)
def test_what_came_of_an_experiment_is_said_with_units(experiment, alone, beside_others):
    assert words.result(experiment, {"Ra": "µm"}) == alone
    found = words.result(experiment, {"Ra": "µm", "time": None})
    assert found == (beside_others or alone)


def test_all_measured_outcomes_are_said_also_those_that_the_file_no_longer_has():
    both = came("ok", Ra=1.39, time=20.0)
    assert words.result(both, {"Ra": "µm", "time": "s"}) == "Ra = 1.39 µm, time = 20 s"
    assert words.result(both, {"Ra": "µm"}) == "Ra = 1.39 µm, time = 20"
    assert words.result(came("ok", old=1.0), {"new": "µm"}) == "old = 1"
