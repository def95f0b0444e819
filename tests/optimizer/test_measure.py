"""Deciding by a measure: closed forms from a fitted model, the right tail, and what is kept."""

import math
from statistics import NormalDist

import pytest
import torch

import airbo
from airbo import measures
from airbo import uncertainty as unc
from airbo.measures import CVaR, InSpec, Mean, MeanStd, Quantile, Target, Worst
from airbo.measures.posterior import MeasureModel

NORMAL = NormalDist()
SMOOTH = (MeanStd(1.0), Quantile(0.9), CVaR(0.8), Worst(), InSpec(low=0.6), Target(0.8))


def peak_and_plateau(x):
    """A sharp peak at 0.2, twice as high as the plateau around 0.7."""
    return 2 * math.exp(-0.5 * ((x - 0.2) / 0.03) ** 2) + math.exp(-0.5 * ((x - 0.7) / 0.15) ** 2)


def told(f, n=41, low=0.0, high=1.0, **settings):
    """Return an optimizer that knows exact values of f on a grid."""
    optimizer = airbo.Optimizer({"x": (low, high)}, **settings)
    grid = torch.linspace(low, high, n).double().tolist()
    optimizer.tell([{"x": x} for x in grid], [f(x) for x in grid])
    return optimizer


@pytest.fixture(scope="module")
def line():
    return told(lambda x: 3 * x + 1, n=15, low=-1.0, deployment={"x": unc.Normal(0.1)})


@pytest.mark.parametrize(
    ("measure", "expected"),
    [
        (Mean(), 1.0),
        (MeanStd(2.0), 1.0 - 0.6),
        (Quantile(0.9), 1.0 - 0.3 * NORMAL.inv_cdf(0.9)),
        (CVaR(0.9), 1.0 - 0.3 * NORMAL.pdf(NORMAL.inv_cdf(0.9)) / 0.1),
        (Quantile(0.999), 1.0 - 0.3 * NORMAL.inv_cdf(0.999)),
        (CVaR(0.999), 1.0 - 0.3 * NORMAL.pdf(NORMAL.inv_cdf(0.999)) / 0.001),
        (Worst(), 1.0 - 0.3 * NORMAL.inv_cdf(0.999)),
        (InSpec(low=0.8), NORMAL.cdf(2 / 3)),
        (Target(2.0), -(1.0 + 0.09)),
    ],
    ids=repr,
)
def test_measures_of_a_line_under_a_normal_error_have_the_closed_forms(line, measure, expected):
    found = line.evaluate({"x": 0.0}, measure)
    assert found.mean == pytest.approx(expected, abs=0.02)
    assert found.interval[0] <= found.mean <= found.interval[1]


IN_ORDER = (Worst(), CVaR(0.99), Quantile(0.99), CVaR(0.9), Quantile(0.9), Mean())
"""For normal values, from the worst to the best."""


@pytest.mark.parametrize(
    ("P", "direction"),
    [(unc.Normal(0.1), "maximize"), (unc.Uniform(-0.2, 0.2), "minimize")],
    ids=["normal", "uniform"],
)
def test_worst_tail_quantile_and_mean_are_in_order_also_without_bounds(P, direction):
    sign = 1 if direction == "maximize" else -1
    settings = {"n": 15, "low": -1.0, "deployment": {"x": P}, "direction": direction}
    optimizer = told(lambda x: 3 * x + 1, **settings)
    found = [sign * optimizer.evaluate({"x": 0.0}, m).mean for m in IN_ORDER]
    assert found == sorted(found)
    # no level reaches further than the worst, but the mean beyond 999 of 1,000 does
    assert found[0] <= sign * optimizer.evaluate({"x": 0.0}, Quantile(0.999)).mean


def test_the_worst_of_a_bounded_error_lies_at_its_edge():
    optimizer = told(lambda x: 3 * x + 1, n=15, low=-1.0, deployment={"x": unc.Uniform(-0.1, 0.2)})
    assert optimizer.evaluate({"x": 0.0}, Worst()).mean == pytest.approx(0.7, abs=0.01)


def test_share_in_spec_cpk_and_ppm_have_the_closed_forms(line):
    found = line.evaluate({"x": 0.0}, InSpec(0.4, 1.9)).capability
    share = NORMAL.cdf(3) - NORMAL.cdf(-2)
    assert found.share == pytest.approx(share, abs=0.005)
    assert found.cpk == pytest.approx(0.6 / 0.9, abs=0.01)
    assert found.ppm == pytest.approx(1e6 * (1 - share), abs=5000)
    assert found.share_interval[0] <= found.share <= found.share_interval[1]
    assert line.evaluate({"x": 0.0}, Mean()).capability is None


@pytest.mark.parametrize(
    "direction", ["maximize", pytest.param("minimize", marks=pytest.mark.slow)]
)
def test_measures_of_risk_choose_the_plateau_and_not_the_sharp_peak(direction):
    sign = 1 if direction == "maximize" else -1
    settings = {"direction": direction, "deployment": {"x": unc.Uniform(-0.1, 0.1)}}
    optimizer = told(lambda x: sign * peak_and_plateau(x), **settings)
    limits = InSpec(low=0.5) if sign > 0 else InSpec(high=-0.5)
    for measure in (Quantile(0.9), CVaR(0.9), Worst(), MeanStd(1.0), limits):
        peak, plateau = (optimizer.evaluate({"x": x}, measure).mean for x in (0.2, 0.7))
        better = plateau - peak if measure == limits else sign * (plateau - peak)
        assert better > 0.1, measure
    # the other tail would choose the peak
    good_tail = -1 * torch.tensor([-peak_and_plateau(0.2 + d / 100) for d in range(-10, 11)])
    assert good_tail.quantile(0.9) > 1.0


@pytest.mark.parametrize("direction", ["maximize", "minimize"])
def test_ask_and_recommend_go_by_the_measure_in_both_directions(direction):
    sign = 1 if direction == "maximize" else -1
    optimizer = told(
        lambda x: sign * peak_and_plateau(x),
        direction=direction,
        deployment={"x": unc.Uniform(-0.1, 0.1)},
        measure=CVaR(0.9),
        acquisition="ei",
    )
    best = optimizer.recommend()
    assert best.design["x"] == pytest.approx(0.7, abs=0.05)
    assert sign * best.mean == pytest.approx(math.exp(-0.5 * (0.1 / 0.15) ** 2), abs=0.1)
    assert 0.0 <= optimizer.ask()["x"] <= 1.0


def test_the_mean_as_a_measure_is_the_same_in_every_digit():
    plain, named = (
        airbo.Optimizer({"x": (0.0, 1.0)}, {"x": unc.Normal(0.05)}, n_initial=5, **kind)
        for kind in ({}, {"measure": Mean()})
    )
    for optimizer in (plain, named):
        for x in (0.1, 0.3, 0.45, 0.7, 0.9):
            optimizer.tell({"x": x}, peak_and_plateau(x))
    named.evaluate({"x": 0.4}, CVaR(0.9))  # looking does not change what is asked
    assert plain.ask() == named.ask()
    assert plain.recommend("anywhere") == named.recommend("anywhere")
    assert plain.to_json() == named.to_json()
    assert named.evaluate({"x": 0.3}).mean == named.predict({"x": 0.3})["mean"].item()


def test_a_state_carries_the_measure_and_the_noise():
    optimizer = told(peak_and_plateau, n=6, measure=InSpec(low=0.5), noise="product")
    again = airbo.Optimizer.from_json(optimizer.to_json())
    assert (again.measure, again.noise) == (InSpec(low=0.5), "product")
    assert again.to_json() == optimizer.to_json()


def test_a_state_with_a_level_that_cannot_be_estimated_is_refused():
    state = told(peak_and_plateau, n=6, measure=CVaR(0.99)).to_json()
    with pytest.raises(ValueError, match=r"level must not exceed 0\.999"):
        airbo.Optimizer.from_json(state.replace("0.99", "0.9999"))


def test_noise_counts_where_it_belongs_to_the_product():
    generator = torch.Generator().manual_seed(0)
    optimizer = airbo.Optimizer({"x": (0.0, 1.0)})
    X = torch.rand(40, generator=generator).double()
    Y = X + 0.3 * torch.randn(40, generator=generator).double()
    optimizer.tell([{"x": x} for x in X.tolist()], Y.tolist())
    alone = optimizer.evaluate({"x": 0.5}, MeanStd(1.0))
    product = optimizer.evaluate({"x": 0.5}, MeanStd(1.0), noise="product")
    mean = optimizer.evaluate({"x": 0.5}, Mean())
    assert alone.mean == pytest.approx(mean.mean, abs=0.02)  # hit exactly: nothing scatters
    assert mean.mean - product.mean == pytest.approx(0.3, abs=0.1)


@pytest.fixture(scope="module")
def bumpy():
    return told(peak_and_plateau, n=12, deployment={"x": unc.Normal(0.1)}).model


@pytest.mark.parametrize("measure", SMOOTH, ids=repr)
def test_gradients_of_a_measure_equal_finite_differences(bumpy, measure):
    torch.manual_seed(0)
    judged = MeasureModel(bumpy, measure, unc.Normal(0.1))
    x = torch.tensor([[0.61]], dtype=torch.float64, requires_grad=True)
    mean = judged.posterior(x).mean
    [slope] = torch.autograd.grad(mean.sum(), x)
    with torch.no_grad():
        ends = [judged.posterior(x + h).mean.item() for h in (-1e-5, 1e-5)]
    assert slope.item() == pytest.approx((ends[1] - ends[0]) / 2e-5, rel=1e-2, abs=1e-4)


def test_measures_take_mixed_spaces_and_uncertainties_that_vary():
    space = {
        "speed": (1.0, 10.0),
        "depth": airbo.Float(0.1, 10.0, log=True),
        "passes": airbo.Integer(1, 3),
        "tool": airbo.Categorical(["A", "B"]),
    }
    P = {"speed": unc.Varying(lambda x: unc.Normal(0.05 * x)), "depth": unc.LogNormal(0.1)}
    optimizer = airbo.Optimizer(space, P, measure=Quantile(0.8), n_initial=6)
    for i in range(6):
        design = optimizer.ask()
        optimizer.tell(design, design["speed"] - (design["tool"] == "B") + 0.1 * i)
    asked = optimizer.ask()
    assert optimizer.space.checked(asked)
    assert optimizer.evaluate(asked, Worst()).mean < optimizer.evaluate(asked, Mean()).mean


@pytest.mark.parametrize("surrogate", ["skl", "erbf", "nominal"])
def test_a_surrogate_without_a_model_of_f_is_refused(surrogate):
    with pytest.raises(ValueError, match="has no model of f itself"):
        airbo.Optimizer({"x": (0, 1)}, surrogate=surrogate, measure=CVaR(0.9))


@pytest.mark.parametrize("surrogate", ["ugp", "mmd"])
def test_other_models_of_f_answer_too(surrogate):
    settings = {"surrogate": surrogate, "deployment": {"x": unc.Uniform(-0.1, 0.1)}}
    optimizer = told(lambda x: 3 * x, n=12, **settings)
    worst, mean = (optimizer.evaluate({"x": 0.5}, m).mean for m in (Worst(), Mean()))
    assert worst == pytest.approx(mean - 0.3, abs=0.1)
    with pytest.raises(ValueError, match="cannot tell observation noise from unseen inputs"):
        optimizer.evaluate({"x": 0.5}, Worst(), noise="product")


@pytest.mark.usefixtures("as_without_shape_checks")
def test_what_does_not_go_with_a_measure_is_refused():
    with pytest.raises(ValueError, match="a theorem about the mean"):
        airbo.Optimizer({"x": (0, 1)}, acquisition="ucb-theory", measure=Worst())
    with pytest.raises(ValueError, match="noise must be 'measurement' or 'product'"):
        airbo.Optimizer({"x": (0, 1)}, noise="both")
    with pytest.raises(TypeError, match=r"measure must be one of airbo\.measures"):
        airbo.Optimizer({"x": (0, 1)}, measure="cvar")


def test_words_say_which_part_of_the_values_counts():
    assert "95 of 100 executed inputs meet or beat" in measures.Quantile(0.95).words
    assert measures.CVaR(0.999).words == "mean over the worst 1 of 1,000 executed inputs"
