"""The noise of single values, where somebody knows it."""

import json
import math

import pandas as pd
import pytest
import torch
from botorch.exceptions.errors import InputDataError
from botorch.models import SingleTaskGP

import airbo
from airbo import AtMost, Maximize, Optimizer
from airbo import uncertainty as unc

LINE = {"x": (0.0, 1.0)}
P = {"x": unc.Normal(0.05)}
DATA = [(0.1, 0.2, 0.01), (0.3, 1.1, 0.5), (0.5, 0.9, 0.01), (0.7, -0.4, 0.5), (0.9, 0.1, 0.02)]


def told(data=DATA, space=LINE, uncertainty=P, **settings):
    optimizer = Optimizer(space, uncertainty, **{"n_initial": 3} | settings)
    for x, value, noise in data:
        optimizer.tell({"x": x}, value, noise=noise)
    return optimizer


def predicted(optimizer, *xs):
    table = optimizer.predict([{"x": x} for x in xs])
    return [*table["mean"], *table["std"]]


def residual(optimizer, x, value):
    """How far the prediction at x is from the value that was observed there."""
    return abs(predicted(optimizer, x)[0] - value)


# -- what it means


def test_exact_values_are_met_and_noisy_ones_are_not():
    optimizer = told(uncertainty=None)
    for x, value, noise in DATA:
        assert residual(optimizer, x, value) < 3 * max(noise, 0.02)
    assert residual(optimizer, 0.1, 0.2) < 0.03
    assert residual(optimizer, 0.7, -0.4) > 0.05


def test_known_noise_is_what_the_model_is_built_with():
    model = told(direction="minimize").model
    stds = model.outcome_transform.stdvs.item()
    known = model.train_inputs[4].flatten()
    expected = torch.tensor([noise / stds for _, _, noise in DATA]).double() ** 2
    torch.testing.assert_close(known, expected)
    assert not any(n.endswith("raw_noise") for n, p in model.named_parameters() if p.requires_grad)


def test_a_mean_of_replicates_with_its_own_noise_is_the_replicates():
    """Four values of noise s at one design tell what their mean with noise s/2 tells."""
    values, rest = [0.8, 1.0, 1.1, 0.7], [(0.1, 0.2, 0.3), (0.9, 0.4, 0.3)]
    # the same standardization: all other hyper-parameters are then fitted to the same likelihood
    four = Optimizer(LINE, surrogate=_without_standardization, n_initial=3)
    one = Optimizer(LINE, surrogate=_without_standardization, n_initial=3)
    for x, value, noise in rest:
        four.tell({"x": x}, value, noise=noise)
        one.tell({"x": x}, value, noise=noise)
    for value in values:
        four.tell({"x": 0.5}, value, noise=0.3)
    one.tell({"x": 0.5}, 0.9, noise=0.15)
    assert predicted(four, 0.3, 0.5) == pytest.approx(predicted(one, 0.3, 0.5), abs=1e-3)


def _without_standardization(train_X, train_Y, bounds, train_Yvar=None, fold_replicates=False):
    return airbo.models.UGP(
        train_X,
        train_Y,
        bounds=bounds,
        train_Yvar=train_Yvar,
        fold_replicates=fold_replicates,
        outcome_transform=None,
    )


def test_the_order_of_telling_does_not_matter():
    assert predicted(told(), 0.2, 0.6) == pytest.approx(
        predicted(told(DATA[::-1]), 0.2, 0.6), abs=1e-4
    )


def test_unknown_noise_is_learned_beside_known_noise():
    mixed = [(x, value, noise if i % 2 else None) for i, (x, value, noise) in enumerate(DATA)]
    model = told(mixed).model
    assert (model.train_inputs[4].flatten() < 0).tolist() == [True, False, True, False, True]
    assert any(n.endswith("raw_noise") for n, p in model.named_parameters() if p.requires_grad)


def test_noise_that_differs_tenfold_is_better_known_than_learned():
    """Beside f(x) = sin 6x, values that are ten times as noisy as others mislead a model."""
    generator, wrong = torch.Generator().manual_seed(0), {}
    xs = torch.linspace(0, 1, 16).double()
    stds = torch.where(torch.arange(16) % 2 == 0, 0.05, 0.5).double()
    ys = (6 * xs).sin() + stds * torch.randn(16, generator=generator).double()
    for is_known in (True, False):
        data = zip(
            xs.tolist(), ys.tolist(), stds.tolist() if is_known else [None] * 16, strict=True
        )
        optimizer = told(data, uncertainty=None)
        grid = torch.linspace(0, 1, 41).double()
        means = predicted(optimizer, *grid.tolist())[:41]
        wrong[is_known] = (torch.tensor(means) - (6 * grid).sin()).square().mean().sqrt().item()
    assert wrong[True] < 0.6 * wrong[False]


# -- where it goes


def test_the_state_holds_it():
    optimizer = told()
    optimizer.tell({"x": 0.2}, 0.5)
    text = optimizer.to_json()
    saved = [o.get("noise") for o in json.loads(text)["observations"]]
    assert saved[-2:] == [{"value": 0.02}, None]
    restored = Optimizer.from_json(text)
    assert restored.to_json() == text
    assert restored.ask() == optimizer.ask()


def test_tables_hold_it():
    optimizer = told()
    optimizer.tell({"x": 0.2}, 0.5)
    table = optimizer.observations
    assert table["noise_value"].tolist()[:2] == [0.01, 0.5]
    assert math.isnan(table["noise_value"].iloc[-1])
    again = Optimizer(LINE, P, n_initial=3)
    again.tell(table)
    assert again.to_json() == optimizer.to_json()


def test_lists_have_one_for_all_or_one_each():
    designs, values = [{"x": x} for x, *_ in DATA], [value for _, value, _ in DATA]
    each = Optimizer(LINE, P, n_initial=3)
    each.tell(designs, values, noise=[noise for *_, noise in DATA])
    assert each.to_json() == told().to_json()
    same = Optimizer(LINE, P, n_initial=3)
    same.tell(designs, values, noise=0.1)
    assert same.observations["noise_value"].tolist() == [0.1] * 5


def test_outcomes_have_their_own():
    outcomes = {"strength": Maximize(), "cost": AtMost(2.0, 0.9)}
    optimizer = Optimizer(LINE, P, outcomes=outcomes, n_initial=3)
    for x, value, noise in DATA:
        optimizer.tell({"x": x}, {"strength": value, "cost": 1 + x}, noise={"strength": noise})
    strength, cost = (optimizer.outcome_model(name).model for name in outcomes)
    assert len(strength.train_inputs) == 5
    assert len(cost.train_inputs) == 1
    assert optimizer.record.of("strength").known[0].value_noise == 0.01
    assert Optimizer.from_json(optimizer.to_json()).observations.equals(optimizer.observations)


def test_a_refit_follows_a_change_of_noise_alone():
    optimizer, other = told(), told([*DATA[:-1], (0.9, 0.1, 0.7)])
    assert predicted(optimizer, 0.9) != pytest.approx(predicted(other, 0.9), rel=0.01)
    twin = told(DATA[:-1])
    twin.recommend(policy="observed")
    twin.tell({"x": 0.9}, 0.1, noise=0.02)
    assert predicted(twin, 0.9) == pytest.approx(predicted(optimizer, 0.9), rel=1e-6)


@pytest.mark.parametrize("surrogate", ["mmd", "ugp", "skl", "erbf", "nominal", SingleTaskGP])
def test_every_surrogate_knows_it(surrogate):
    without = [(x, y, None) for x, y, _ in DATA]
    known, learned = (told(data, surrogate=surrogate) for data in (DATA, without))
    assert predicted(known, 0.1, 0.7) != pytest.approx(predicted(learned, 0.1, 0.7), rel=1e-3)
    known.ask()


# -- refusals


@pytest.mark.parametrize(
    ("report", "error", "message"),
    [
        (({"x": 0.5}, 1.0, -0.1), ValueError, r"noise is a standard deviation and must be >= 0"),
        (({"x": 0.5}, 1.0, "little"), TypeError, r"noise: .* number >= 0, got 'little'"),
        (({"x": 0.5}, 1.0, math.inf), ValueError, r"noise: .*finite"),
        (({"x": 0.5}, 1.0, {"vale": 0.1}), ValueError, r"noise: 'vale' was not measured"),
        (({"x": 0.5}, None, {"value": 0.1}), ValueError, r"noise: 'value' was not measured"),
        (([{"x": 0.5}] * 2, [1.0, 2.0], [0.1]), ValueError, "as many noise as designs, 2"),
        (
            (pd.DataFrame({"x": [0.5], "value": [1.0]}), "value", 0.1),
            ValueError,
            "columns .* noise_<outcome>",
        ),
    ],
)
@pytest.mark.usefixtures("as_without_shape_checks")
def test_noise_that_makes_no_sense_is_refused(report, error, message):
    optimizer = told()
    before = optimizer.to_json()
    design, value, noise = report
    with pytest.raises(error, match=message):
        optimizer.tell(design, value, noise=noise)
    assert optimizer.to_json() == before


def test_several_outcomes_need_names():
    optimizer = Optimizer(LINE, outcomes={"a": Maximize(), "b": AtMost(1.0)})
    with pytest.raises(TypeError, match="noise: expected a dict with a number by outcome"):
        optimizer.tell({"x": 0.5}, {"a": 1.0, "b": 0.5}, noise=0.1)


def test_a_surrogate_that_cannot_take_it_refuses():
    def plain(train_X, train_Y):
        return SingleTaskGP(train_X, train_Y)

    with pytest.raises(ValueError, match="no argument train_Yvar"):
        Optimizer(LINE, surrogate=plain).tell({"x": 0.5}, 1.0, noise=0.1)
    some = [(x, y, None if x > 0.8 else noise) for x, y, noise in DATA]
    with pytest.raises(InputDataError, match="contains NaN"):  # BoTorch's needs all or none
        predicted(told(some, surrogate=SingleTaskGP), 0.5)
