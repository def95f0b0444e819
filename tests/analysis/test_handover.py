"""What people hand over: the operating window and the tolerance budget of a design."""

import json
import math
from dataclasses import replace
from itertools import product

import pytest
import torch
from scipy.stats import norm

import airbo
from airbo import measures
from airbo import uncertainty as unc
from airbo.analysis import Handover, operating_window, tolerance_budget
from airbo.analysis import window as window_module
from airbo.analysis.budget import first_order_index
from airbo.analysis.words import budget_sentences, window_verdict
from airbo.measures.capability import Likely

P = {"x": unc.Normal(0.3), "y": unc.Normal(0.2)}
MIDDLE = {"x": 4.0, "y": 3.0}
LIMIT = 30.0
GRID = [{"x": float(x), "y": float(y)} for x, y in product((0, 2.5, 5, 7.5, 10), repeat=2)]


def linear(design):
    return 2 * design["x"] + 4 * design["y"]


def known(f=linear, P=P, space=None, designs=GRID, **settings):
    """Return an optimizer that knows f from exact experiments, and uses designs under P."""
    space = space or {"x": (0.0, 10.0), "y": (0.0, 10.0)}
    opt = airbo.Optimizer(space, None, deployment=P, **settings)
    for design in designs:
        opt.tell(design, f(design))
    return opt


@pytest.fixture(scope="module", autouse=True)
def coarse():
    """Look at fewer designs: the function is linear."""
    with pytest.MonkeyPatch.context() as patch:
        for name, n in {"N_VALUES": 9, "N_INSIDE": 4, "N_CONFIRMED": 8}.items():
            patch.setattr(window_module, name, n)
        yield


@pytest.fixture(scope="module")
def opt():
    return known(measure=measures.InSpec(high=LIMIT))


@pytest.fixture(scope="module")
def window(opt):
    return operating_window(opt, 0.95, MIDDLE)


# 2 x + 4 y has standard deviations 0.6 and 0.8, together 1
SLACK = LIMIT - norm.ppf(0.95) - linear(MIDDLE)
"""How much further 2 x + 4 y may rise."""


def test_range_of_one_parameter_is_the_closed_form(window):
    assert window.alone["x"] == pytest.approx((0.0, 4 + SLACK / 2), abs=0.15)
    assert window.alone["y"] == pytest.approx((0.0, 3 + SLACK / 4), abs=0.08)


def test_joint_window_shares_the_room_equally(window):
    # the largest box below 2 u + 4 v = SLACK gives half of the room to each
    assert window.jointly["x"] == pytest.approx((0.0, 4 + SLACK / 4), abs=0.15)
    assert window.jointly["y"] == pytest.approx((0.0, 3 + SLACK / 8), abs=0.1)


def test_joint_window_lies_inside_the_single_ones(window):
    for name, (low, high) in window.jointly.items():
        assert window.alone[name][0] <= low <= MIDDLE[name] <= high <= window.alone[name][1]


def test_a_higher_level_makes_the_window_smaller(opt, window):
    strict = operating_window(opt, 0.999, MIDDLE)
    assert strict.alone["x"][1] < window.alone["x"][1]
    assert strict.jointly["y"][1] < window.jointly["y"][1]


def test_a_design_that_is_not_in_spec_has_no_window(opt):
    window = operating_window(opt, 0.95, {"x": 9.0, "y": 9.0})
    assert (window.probability, window.alone, window.jointly) == (0.0, {}, {})
    assert len(window.along["x"].values) == len(window.along["x"].probabilities)


@pytest.mark.slow
def test_limits_mean_the_same_in_both_directions(window):
    other = known(measure=measures.InSpec(high=LIMIT), direction="minimize")
    assert operating_window(other, 0.95, MIDDLE).alone["y"] == pytest.approx(
        window.alone["y"], abs=0.05
    )


def test_window_of_all_limits_lies_inside_that_of_one():
    outcomes = {"cost": airbo.Minimize(), "a": airbo.AtMost(LIMIT), "b": airbo.AtLeast(5.0)}
    opt = known(lambda d: {"cost": d["x"], "a": linear(d), "b": d["x"] + d["y"]}, outcomes=outcomes)
    window = operating_window(opt, 0.95, MIDDLE)
    # x + y has a standard deviation of 0.36
    assert window.alone["x"][0] == pytest.approx(2 + norm.ppf(0.95) * 0.36, abs=0.15)
    assert window.alone["x"][1] == pytest.approx(4 + SLACK / 2, abs=0.15)
    assert (
        json.loads(json.dumps(Handover(window, ()).to_dict()))["operating_window"]["level"] == 0.95
    )
    assert tolerance_budget(opt, MIDDLE, "a").in_spec.value == pytest.approx(1.0, abs=0.01)


def test_whole_numbers_and_choices_have_a_window():
    space = {"n": airbo.Integer(0, 10), "tool": ["A", "B"], "x": (0.0, 1.0)}
    f = {"A": 0.0, "B": 5.0}
    designs = [
        {"n": n, "tool": t, "x": x} for n in (0, 3, 6, 10) for t in f for x in (0.0, 0.5, 1.0)
    ]
    opt = known(
        lambda d: d["n"] + f[d["tool"]] + d["x"],
        {"x": unc.Normal(0.05)},
        space,
        designs,
        measure=measures.InSpec(high=6.2),
    )
    window = operating_window(opt, 0.95, {"n": 3, "tool": "A", "x": 0.5})
    assert window.alone["n"] == (0, 5)
    assert window.alone["tool"] == ("A",)
    assert window.jointly["tool"] == ("A",)


def test_parameters_of_an_equality_cannot_move_alone_and_the_window_says_so():
    space = airbo.Space(
        {"a": (0.0, 1.0), "b": (0.0, 1.0), "t": (0.0, 10.0)}, constraints=["a + b == 1"]
    )
    designs = [{"a": a / 4, "b": 1 - a / 4, "t": t} for a in range(5) for t in (0.0, 5.0, 10.0)]
    opt = known(lambda d: d["a"] + d["t"], {"t": unc.Normal(0.1)}, space, designs)
    window = operating_window(opt, 0.95, {"a": 0.5, "b": 0.5, "t": 3.0}, measures.InSpec(high=6.0))
    assert window.tied == ("a", "b")
    for ranges in (window.alone, window.jointly):
        assert [*ranges["a"], *ranges["b"]] == pytest.approx([0.5] * 4, abs=1e-3)
        assert ranges["t"][0] < 1.0 < 5.0 < ranges["t"][1]
    assert "a and b cannot move alone: an equality constraint" in window_verdict(window)
    assert Handover(window, ()).to_dict()["operating_window"]["tied"] == ("a", "b")


def test_without_an_equality_every_parameter_can_move_alone(window):
    assert window.tied == ()
    assert "cannot move alone" not in window_verdict(window)


# -- tolerance budget


@pytest.fixture(scope="module")
def budget():
    at_limit = measures.InSpec(high=linear(MIDDLE) + 1.0)
    return tolerance_budget(known(measure=at_limit), MIDDLE)


def test_shares_of_a_linear_function_are_the_closed_form(budget):
    # 1,024 executed inputs; what the model does not know adds a little
    shares = [c.share.value for c in budget.contributions]
    assert shares == pytest.approx([0.36, 0.64], abs=0.03)
    assert budget.scatter.value == pytest.approx(1.0, abs=0.05)
    assert budget.together.value == pytest.approx(0.0, abs=0.02)
    assert [c.parameters for c in budget.contributions] == [("x",), ("y",)]


def curved(design):
    return (design["x"] - 5) ** 2 + 5 * (design["y"] - 3)


def test_one_error_alone_causes_all_the_scatter_also_of_a_curved_function():
    for noise in ("measurement", "product"):
        opt = known(curved, {"x": unc.Normal(0.8)}, noise=noise)
        budget = tolerance_budget(opt, {"x": 5.0, "y": 3.0})
        rest = 1 - (budget.noise.value if budget.noise else 0.0)
        assert budget.contributions[0].share.value == pytest.approx(rest)
        assert budget.together == Likely(0.0, 0.0, 0.0)


def test_shares_of_a_curved_sum_are_the_closed_form():
    # Var (s z)² = 2 s⁴ = 8, and Var 5 y = 25 s² = 4
    opt = known(curved, {"x": unc.Normal(math.sqrt(2)), "y": unc.Normal(0.4)})
    budget = tolerance_budget(opt, {"x": 5.0, "y": 3.0})
    # the indices of 1,024 executed inputs: ± 0.01; the model extrapolates a little
    assert [c.share.value for c in budget.contributions] == pytest.approx([2 / 3, 1 / 3], abs=0.03)
    assert budget.together.value == pytest.approx(0.0, abs=0.01)


def test_a_large_share_and_a_small_one_are_estimated_equally_well():
    def f(x):
        return x[..., 0].square() + 0.2 * x[..., 1]

    found = []
    for seed in range(10):
        z = torch.special.ndtri(unc.base_draws(1024, 4, seed=seed)).unsqueeze(0)
        a, b = z[..., :2], z[..., 2:]
        a_i, b_i = (torch.stack([p[..., 0], q[..., 1]], -1) for p, q in ((b, a), (a, b)))
        pairs = ((a_i, b_i), (b_i, a_i))
        found.append([first_order_index(f(a), f(b), f(p), f(q)).item() for p, q in pairs])
    # Var z² = 2, and Var 0.2 z = 0.04
    for shares in found:
        assert shares == pytest.approx([2 / 2.04, 0.04 / 2.04], abs=0.002)


def test_halving_an_error_leaves_the_scatter_of_the_closed_form(budget):
    for c, share in zip(budget.contributions, (0.36, 0.64), strict=True):
        assert c.scatter_if_halved.value == pytest.approx(math.sqrt(1 - 0.75 * share), abs=0.02)
    assert budget.all_halved.scatter_if_halved.value == pytest.approx(0.5, abs=0.02)


def test_halving_an_error_brings_into_spec_what_the_closed_form_says(budget):
    assert budget.in_spec.value == pytest.approx(norm.cdf(1), abs=0.02)
    for c, share in zip(budget.contributions, (0.36, 0.64), strict=True):
        gain = norm.cdf(1 / math.sqrt(1 - 0.75 * share)) - norm.cdf(1)
        assert c.gain_if_halved.value == pytest.approx(gain, abs=0.01)
        assert c.is_clear


def test_no_share_in_spec_rises_above_all(budget):
    almost = replace(budget, in_spec=Likely(0.9999, 0.999, 1.0))
    assert almost.in_spec_if_halved(budget.all_halved) == 1.0
    assert "100% in spec instead of 99.99%" in budget_sentences(almost, "value", None)[0]


def test_what_errors_do_together_is_a_share_of_its_own():
    wide = {"x": unc.Normal(1.5), "y": unc.Normal(1.5)}
    opt = known(lambda d: (d["x"] - 5) * (d["y"] - 5), wide)
    budget = tolerance_budget(opt, {"x": 5.0, "y": 5.0})
    parts = [c.share.value for c in budget.contributions]
    assert budget.together.value > 0.8
    assert sum(parts) + budget.together.value == pytest.approx(1.0, abs=0.02)
    assert budget.in_spec is None


def test_noise_of_the_product_has_its_share():
    opt = known(noise="product")
    budget = tolerance_budget(opt, MIDDLE)
    total = sum(c.share.value for c in budget.contributions) + budget.together.value
    assert total + budget.noise.value == pytest.approx(1.0, abs=0.02)
    window = operating_window(opt, design=MIDDLE, measure=measures.InSpec(high=LIMIT))
    [said] = json.loads(json.dumps(Handover(window, (budget,)).to_dict()))["tolerance_budgets"]
    assert said["noise"]["value"] >= 0


def test_a_design_that_is_hit_exactly_has_nothing_to_share_out():
    budget = tolerance_budget(known(P=None), MIDDLE)
    assert (budget.contributions, budget.all_halved) == ((), None)
    assert budget.scatter.value == pytest.approx(0.0, abs=1e-9)


# -- refusals


def test_a_window_needs_limits_and_a_level():
    opt = known()
    with pytest.raises(ValueError, match="no limits to keep"):
        operating_window(opt)
    with pytest.raises(ValueError, match="level must be a number between 0 and 1"):
        operating_window(opt, 95.0)
    with pytest.raises(ValueError, match="Unknown outcome 'leak'"):
        tolerance_budget(opt, outcome="leak")
    assert operating_window(opt, 0.9, MIDDLE, measures.InSpec(high=LIMIT)).alone
    outcomes = {"a": airbo.Maximize(), "b": airbo.Minimize()}
    several = airbo.Optimizer({"x": (0.0, 1.0)}, outcomes=outcomes)
    several.tell({"x": 0.5}, {"a": 1.0, "b": 1.0})
    with pytest.raises(ValueError, match="the limits are theirs: leave measure out"):
        operating_window(several, 0.9, {"x": 0.5}, measures.InSpec(high=LIMIT))
    with pytest.raises(ValueError, match="no limits to keep"):
        operating_window(several, 0.9, {"x": 0.5})
