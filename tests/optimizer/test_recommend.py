import math
import warnings

import pytest
import torch
from botorch.models import SingleTaskGP

import airbo
from airbo import Float, Optimizer, TooLittleDataWarning, measures
from airbo import uncertainty as unc
from tests.optimizer.common import LINE, MILL, cheap, hill, recommend, run


def parabola(design):
    return 5 - 3 * (design["x"] - 0.42) ** 2


def knowing(f=parabola, n=9, **settings):
    """An optimizer that was told f on a grid."""
    optimizer = cheap(**settings)
    for i in range(n):
        optimizer.tell({"x": i / (n - 1)}, f({"x": i / (n - 1)}))
    return optimizer


# -- policies


def test_the_best_observed_design_is_recommended_with_mean_and_deviation():
    best = knowing().recommend("observed")
    assert best.design == {"x": 0.375}
    assert best.mean == pytest.approx(parabola(best.design), abs=0.02)
    assert 0 < best.std < 0.1


def test_anywhere_recommends_a_design_that_was_not_observed():
    best = knowing().recommend(policy="anywhere")
    assert best.design["x"] == pytest.approx(0.42, abs=0.01)
    assert best.mean > knowing().recommend("observed").mean


def test_another_design_than_those_tried_has_to_be_clearly_better(monkeypatch):
    optimizer = knowing(uncertainty=unc.Normal(0.1))
    tried, other = (optimizer.recommend(policy) for policy in ("observed", "anywhere"))
    torch.manual_seed(0)
    Z = torch.tensor([[other.design["x"]], [tried.design["x"]]], dtype=torch.float64)
    draws = optimizer.model.posterior(Z).rsample(torch.Size([4096])).squeeze(-1)
    ahead = ((other.mean - tried.mean) / (draws[:, 0] - draws[:, 1]).std()).item()
    for clearly, best in ((0.8 * ahead, other), (1.2 * ahead, tried)):
        monkeypatch.setattr("airbo.optimizer.choice.CLEARLY", clearly)
        assert optimizer.recommend() == best


def test_only_tried_designs_are_recommended_where_experiments_failed_or_the_model_is_new():
    for optimizer in (knowing(), knowing(n_initial=9)):
        if optimizer.n_initial < 9:
            optimizer.tell({"x": 0.45}, None)
        assert optimizer.recommend() == optimizer.recommend("observed")


def test_the_posterior_mean_decides_not_a_lucky_value():
    optimizer = cheap()
    for x, values in [(0.2, [0.0, 0.1, -0.1]), (0.8, [1.0, 1.1, 0.9, 1.0]), (0.5, [1.3, 0.1, 0.1])]:
        for value in values:
            optimizer.tell({"x": x}, value)
    assert recommend(optimizer, policy="observed").design == {"x": 0.8}


@pytest.mark.usefixtures("as_without_shape_checks")
def test_an_unknown_policy_is_refused():
    with pytest.raises(ValueError, match="policy must be 'observed' or 'anywhere', got 'best'"):
        knowing().recommend("best")


@pytest.mark.parametrize("failures", [0, 2])
def test_without_any_value_there_is_nothing_to_recommend(failures):
    optimizer = Optimizer(LINE)
    run(optimizer, failures, f=lambda design: None)
    for look in (optimizer.recommend, lambda: optimizer.model, lambda: optimizer.predict([])):
        with pytest.raises(ValueError, match="no experiment measured it"):
            look()


def test_a_model_that_knows_too_little_says_so():
    optimizer = cheap()
    optimizer.tell({"x": 0.5}, 1.0)
    with pytest.warns(TooLittleDataWarning, match=r"After 1 observation.*cannot tell"):
        optimizer.recommend()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        knowing().recommend()


def test_equal_values_do_not_tell_designs_apart():
    with pytest.warns(TooLittleDataWarning):
        knowing(f=lambda design: 3.0).recommend()


def test_changing_a_recommended_design_changes_nothing():
    optimizer = knowing()
    before = optimizer.to_json()
    optimizer.recommend().design["x"] = 7.0
    assert optimizer.to_json() == before


def test_designs_can_be_predicted_as_a_table():
    table = knowing().predict([{"x": 0.1}, {"x": 0.42}])
    assert [*table] == ["x", "mean", "std"]
    assert table["mean"].tolist() == pytest.approx(
        [parabola({"x": x}) for x in table["x"]], abs=0.02
    )


# -- direction


def test_minimizing_f_asks_for_the_same_designs_as_maximizing_minus_f():
    down, up = cheap(direction="minimize"), cheap(direction="maximize")
    assert run(down, 6, f=hill) == run(up, 6, f=lambda design: -hill(design))
    low, high = recommend(down), recommend(up)
    assert low.design == high.design
    assert (low.mean, low.std) == (-high.mean, high.std)


def test_values_are_shown_in_the_direction_of_the_user():
    optimizer = knowing(f=lambda design: -parabola(design), direction="minimize")
    assert optimizer.observations["value"].max() < 0
    assert optimizer.recommend().mean == pytest.approx(-5, abs=0.1)


# -- experiments and use under different uncertainty


def two_peaks(design):
    """A tall narrow peak at 0.2 and a low wide one at 0.7."""
    x = design["x"]
    return math.exp(-(((x - 0.2) / 0.04) ** 2)) + 0.7 * math.exp(-(((x - 0.7) / 0.2) ** 2))


@pytest.mark.parametrize(
    ("surrogate", "policy"), [("default", "observed"), ("erbf", "observed"), ("erbf", "anywhere")]
)
def test_the_recommendation_follows_the_uncertainty_of_use(surrogate, policy):
    settings = {"surrogate": surrogate, "n": 31}
    exact = knowing(two_peaks, **settings)
    robust = knowing(two_peaks, deployment=unc.Normal(0.05), **settings)
    assert recommend(exact, policy=policy).design["x"] == pytest.approx(0.2, abs=0.02)
    assert recommend(robust, policy=policy).design["x"] == pytest.approx(0.7, abs=0.05)


def test_the_acquisition_follows_the_uncertainty_of_use():
    exact = knowing(two_peaks, n=31, surrogate="erbf", acquisition=airbo.acquisition.UCB(0.0))
    robust = knowing(two_peaks, n=31, surrogate="erbf", acquisition=airbo.acquisition.UCB(0.0),
                     deployment={"x": unc.Normal(0.05)})  # fmt: skip
    assert exact.ask()["x"] == pytest.approx(0.2, abs=0.03)
    assert robust.ask()["x"] == pytest.approx(0.7, abs=0.07)


def test_deployment_is_that_of_the_experiments_unless_given():
    assert Optimizer(LINE, unc.Normal(0.1)).deployment == unc.Normal(0.1)
    assert Optimizer(LINE, deployment=unc.Normal(0.1)).uncertainty == unc.Exact()


# -- surrogates


@pytest.mark.parametrize(
    "surrogate", ["default", "expectation", "mmd", "ugp", "skl", "erbf", "nominal"]
)
def test_every_surrogate_optimizes(surrogate):
    optimizer = knowing(uncertainty=unc.Normal(0.05), surrogate=surrogate, n=5)
    optimizer.ask()
    assert recommend(optimizer, policy="observed").design == {"x": 0.5}


@pytest.mark.parametrize(
    "factory",
    [SingleTaskGP, lambda X, Y, uncertainty, bounds: SingleTaskGP(X, Y), airbo.models.NominalGP],
    ids=["class", "function", "airbo"],
)
def test_a_factory_makes_the_surrogate(factory):
    optimizer = knowing(uncertainty=unc.Normal(0.05), surrogate=factory, n=5)
    optimizer.ask(2)
    assert recommend(optimizer, policy="observed").design == {"x": 0.5}


def test_a_factory_gets_observations_in_the_unit_cube_and_their_uncertainties():
    seen = {}

    def factory(train_X, train_Y, uncertainty, bounds):
        seen.update(X=train_X, Y=train_Y, uncertainty=uncertainty, bounds=bounds)
        return SingleTaskGP(train_X, train_Y)

    optimizer = cheap({"x": (10, 30), "t": ["A", "B"]}, {"x": unc.Normal(2.0)},
                      surrogate=factory, direction="minimize")  # fmt: skip
    optimizer.tell({"x": 15, "t": "B"}, 3.0)
    optimizer.tell({"x": 25, "t": "A"}, 4.0)
    assert isinstance(optimizer.model, SingleTaskGP)
    torch.testing.assert_close(seen["X"][:, 0], torch.tensor([0.25, 0.75], dtype=torch.float64))
    assert seen["Y"].tolist() == [[-3.0], [-4.0]]
    assert seen["bounds"].tolist() == [[0.0] * 3, [1.0] * 3]
    std = seen["uncertainty"][0].covariance(seen["X"])[0, 0, 0].sqrt().item()
    assert std == pytest.approx(0.1)


@pytest.mark.usefixtures("as_without_shape_checks")
def test_a_factory_that_makes_no_model_is_refused():
    with pytest.raises(TypeError, match="must return a BoTorch GP, got None"):
        knowing(surrogate=lambda X, Y: None, n=3).recommend()


# -- uncertainty of logarithmic, integer and categorical parameters


@pytest.mark.parametrize(
    ("surrogate", "P"),
    [
        ("mmd", {("speed", "passes"): unc.Normal([2.0, 0.3])}),
        ("skl", {"speed": unc.Normal(2.0), "depth": unc.Beta(2.0, 3.0, scale=0.1)}),
    ],
)
@pytest.mark.usefixtures("as_without_shape_checks")
def test_log_integer_and_categorical_parameters_work_beside_uncertain_ones(surrogate, P):
    optimizer = cheap(MILL, P, surrogate=surrogate, n_initial=3)
    run(optimizer, 3)
    airbo.Space(MILL).check(optimizer.ask())
    airbo.Space(MILL).check(recommend(optimizer).design)


def test_a_logarithmic_parameter_that_could_land_at_zero_is_refused_with_a_way_out():
    space = {"x": (0, 1), "depth": Float(0.1, 2.0, log=True)}
    with pytest.raises(ValueError, match=r"'depth' is logarithmic.*-0\.\d+.*\.clipped\(low="):
        Optimizer(space, {"depth": unc.Normal(0.1)})
    with pytest.raises(ValueError, match=r"\.clipped\(low="):
        Optimizer(space, deployment={"depth": unc.Normal(0.1)})
    optimizer = cheap(space, {"depth": unc.Normal(0.1).clipped(low=0.01)}, surrogate="erbf")
    with pytest.raises(ValueError, match=r"\.clipped\(low="):
        optimizer.tell({"x": 0, "depth": 1.0}, 1.0, uncertainty={"depth": unc.Normal(0.1)})
    run(optimizer, 4)


def test_a_clipped_logarithmic_parameter_works_with_the_default_surrogate():
    optimizer = cheap({"depth": Float(0.1, 2.0, log=True)},
                      unc.Normal(0.1).clipped(low=0.01), surrogate="default")  # fmt: skip
    for depth in (0.1, 0.2, 0.4, 0.6, 1.0, 2.0):
        optimizer.tell({"depth": depth}, -abs(math.log(depth / 0.5)))
    assert 0.1 <= optimizer.ask()["depth"] <= 2.0
    assert recommend(optimizer, policy="observed").design["depth"] in (0.4, 0.6)


def test_an_uncertain_design_near_zero_outside_the_space_is_refused():
    optimizer = Optimizer({"depth": Float(0.1, 2.0, log=True)}, unc.Normal(0.01))
    before = optimizer.to_json()
    with pytest.raises(ValueError, match="'depth' is logarithmic"):
        optimizer.tell({"depth": 0.02}, 1.0, allow_outside=True)
    assert optimizer.to_json() == before


# -- settings


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"direction": "up"}, "direction must be 'maximize' or 'minimize', got 'up'"),
        ({"surrogate": "mdm"}, "surrogate must be one of 'default', 'expectation'"),
        ({"surrogate": ["mmd"]}, "surrogate must be one of"),
        ({"acquisition": "ubc"}, "acquisition must be one of 'default'"),
        ({"acquisition": None}, "acquisition must be one of 'default'"),
        ({"acquisition": airbo.acquisition.UCB}, r"pass an object, such as UCB\(beta=2.0\)"),
        ({"seed": -1}, "seed must be a whole number >= 0, got -1"),
        ({"seed": 1.5}, "seed must be a whole number"),
        ({"n_initial": 0}, "n_initial must be a whole number >= 1"),
        ({"space": [1, 2]}, "made from a dict of parameters"),
        ({"space": {"value": (0, 1)}}, "cannot be called 'value'"),
        ({"space": {"x": (0, 1), "executed_x": (0, 1)}}, "cannot be called 'executed_x'"),
        ({"uncertainty": 0.1}, "must be an airbo.uncertainty, a dict of them"),
        ({"uncertainty": {"x": 0.1}}, "uncertainty of 'x' must be an airbo.uncertainty"),
        ({"uncertainty": {"z": unc.Normal(0.1)}}, "unknown parameter 'z'"),
        ({"uncertainty": unc.Normal([0.1, 0.2])}, "2 columns, got 1"),
        ({"deployment": {"z": unc.Normal(0.1)}}, "unknown parameter 'z'"),
        ({"space": {"t": ["A", "B"]}, "uncertainty": unc.Normal(0.1)}, "'t' is categorical"),
        ({"space": {"t": ["A", "B"]}, "deployment": {"t": unc.Normal(0.1)}}, "'t' is categorical"),
    ],
)
@pytest.mark.usefixtures("as_without_shape_checks")
def test_settings_that_make_no_sense_are_refused_at_birth(settings, message):
    with pytest.raises((ValueError, TypeError), match=message):
        Optimizer(**({"space": LINE} | settings))


# -- anywhere


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("measure", [measures.Mean(), measures.InSpec(4.6, 4.9)], ids=repr)
def test_no_tried_design_is_better_by_the_model_than_the_best_anywhere(measure, seed):
    noise = torch.randn(12, generator=torch.Generator().manual_seed(seed)).tolist()
    optimizer = Optimizer(LINE, unc.Normal(0.08), measure=measure, seed=seed)
    for i, z in enumerate(noise):
        x = (0.37 * (i + 1) + 0.1 * seed) % 1
        optimizer.tell({"x": x}, parabola({"x": x}) + 0.1 * z)
    best, tried = (recommend(optimizer, policy=policy) for policy in ("anywhere", "observed"))
    assert best.mean >= tried.mean
    assert best.mean >= optimizer.predict(optimizer.observations[["x"]])["mean"].max() - 1e-9


@pytest.mark.parametrize("seed", range(3))
def test_no_tried_design_that_keeps_the_limits_is_better_than_the_best_anywhere(seed):
    wanted = {"gain": airbo.Maximize(), "heat": airbo.AtMost(0.7, probability=0.9)}
    optimizer = Optimizer(LINE, unc.Normal(0.03), outcomes=wanted, seed=seed)
    for i in range(12):
        x = (0.37 * (i + 1) + 0.1 * seed) % 1
        optimizer.tell({"x": x}, {"gain": parabola({"x": 1 - x}), "heat": x**2 + 0.2 * (i % 2)})
    best, tried = (recommend(optimizer, policy=policy) for policy in ("anywhere", "observed"))
    assert best.holds >= 0.9 or best.holds >= tried.holds
    assert tried.holds < 0.9 or best.mean >= tried.mean
