"""The charts show what the optimizer says."""

import numpy as np
import pytest
import torch

import airbo
from airbo import measures
from airbo import uncertainty as unc
from airbo.lab.report import (
    Slice,
    map_figure,
    parameter_figure,
    progress_figure,
)
from airbo.lab.report.along import pairs_by_influence
from airbo.lab.report.style import ticks
from tests.lab.report.common import hostile, milling, one, optimizer, outcome, ten


@pytest.fixture(scope="module")
def found():
    opt = milling(n=9, failed=[2], surrogate="ugp")
    opt.ask()
    return outcome(opt)


def traces(figure):
    return {trace.name: trace for trace in figure.data if trace.name}


def test_expected_values_are_those_of_the_optimizer(found):
    rng = np.random.default_rng(0)
    F = found.findings.cube.round(torch.from_numpy(rng.random((37, 4))))
    designs = found.findings.cube.to_designs(found.findings.cube.unfold(F))
    ours = found.expected(found.findings.cube.columns(designs))
    theirs = found.findings.optimizer.predict(designs)
    np.testing.assert_allclose(ours.mean, theirs["mean"], rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(ours.std, theirs["std"], rtol=1e-4)


def test_less_is_more_turned_over():
    up = outcome(one(n=5))
    down = outcome(flipped(up.findings.optimizer))
    assert down.findings.best.design == up.findings.best.design
    assert down.findings.best.mean == pytest.approx(-up.findings.best.mean)
    a, b = Slice(up, "x"), Slice(down, "x")
    np.testing.assert_allclose(a.expected.mean, -b.expected.mean, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(a.nominal.mean, -b.nominal.mean, rtol=1e-6, atol=1e-9)


def flipped(opt):
    other = airbo.Optimizer(opt.space, opt.uncertainty, direction="minimize")
    table = opt.observations
    other.tell(table.assign(value=-table["value"]))
    return other


def test_every_slice_goes_through_the_recommendation(found):
    for name in found.findings.space.names:
        along = Slice(found, name)
        at = along.values == found.findings.center[0, found.findings.space.names.index(name)].item()
        assert along.expected.mean[at] == pytest.approx(found.findings.best.mean)
        assert along.expected.std[at] == pytest.approx(found.findings.best.std, rel=1e-4)


def test_axes_have_units_and_scales(found):
    figures = {name: parameter_figure(Slice(found, name)) for name in found.findings.space.names}
    bottom = figures["depth"].layout.xaxis2
    assert (bottom.type, bottom.title.text) == ("log", "depth (mm)")
    assert figures["speed"].layout.xaxis2.title.text == "speed (m/min)"
    assert figures["speed"].layout.xaxis2.type == "linear"
    assert figures["tool"].layout.xaxis.type == "category"


def test_whole_numbers_and_choices_are_points_with_bars(found, fine):
    figure = parameter_figure(Slice(found, "passes"))
    shown = [trace for trace in figure.data if trace.name == "expected in use"]
    assert {trace.mode for trace in shown} == {"markers"}
    assert sorted(x for trace in shown for x in trace.x) == [1, 2, 3, 4, 5]
    tool = traces(parameter_figure(Slice(found, "tool")))["expected in use"]
    assert (tool.mode, list(tool.x)) == ("markers", ["A", "B &amp; C"])
    assert (np.array(tool.error_y.array) > 0).all()


def test_all_observations_stand_on_every_slice_the_nearest_ones_darkest(found):
    for name in found.findings.space.names:
        observed = traces(parameter_figure(Slice(found, name)))["observed"]
        table = found.findings.optimizer.observations.dropna(subset="value")
        assert list(observed.y) == pytest.approx(list(table["value"]))
        at_best = int(
            np.argmax(
                [
                    all(row[n] == found.findings.best.design[n] for n in found.findings.space.names)
                    for row in table.to_dict("records")
                ]
            )
        )
        assert observed.marker.opacity[at_best] == pytest.approx(1) == max(observed.marker.opacity)


def test_many_whole_numbers_are_thinned_out_and_stay_whole(fine):
    findings = outcome(optimizer({"n": airbo.Integer(1, 1000)}, n=4))
    values = Slice(findings, "n").values
    assert len(values) <= 32
    assert (values == values.round()).all()


def test_the_density_lies_where_the_design_lands(found):
    landed = traces(parameter_figure(Slice(found, "speed")))["where the recommended design lands"]
    x, y = np.array(landed.x), np.array(landed.y)
    edges, shares = x[::2], y[1:-1:2]
    centers = (edges[1:] + edges[:-1]) / 2
    assert shares.sum() == pytest.approx(1, abs=0.01)
    mean = (shares * centers).sum() / shares.sum()
    assert mean == pytest.approx(found.findings.best.design["speed"], abs=0.1)
    assert (shares * (centers - mean) ** 2).sum() ** 0.5 == pytest.approx(8.0, rel=0.03)


def test_what_is_hit_exactly_has_no_density(found):
    assert "where the recommended design lands" not in traces(
        parameter_figure(Slice(found, "tool"))
    )


def test_nominal_view_is_that_of_a_model_under_exact_use():
    opt = one(n=6, surrogate="ugp")
    along = Slice(outcome(opt), "x")
    X, model = torch.from_numpy(along.values).unsqueeze(-1), opt.model
    with torch.no_grad():
        posterior = model.posterior(X, uncertainty=unc.Exact())
    np.testing.assert_allclose(along.nominal.mean, posterior.mean.squeeze(-1), rtol=1e-5)
    assert not np.allclose(along.nominal.mean, along.expected.mean, rtol=1e-2)


def test_observations_and_failures_are_counted(found):
    shown = traces(progress_figure(found))
    assert len(shown["observed"].x) == 8
    assert list(shown["failed"].x) == [3]


def test_experiments_stand_at_the_numbers_that_people_call_them_by():
    opt = one(n=4, failed=[1], surrogate="ugp")
    numbers = [0, 3, 4, 17]  # others are pending or left out
    known = outcome(opt, numbers=numbers)
    shown = traces(progress_figure(known))
    assert list(shown["observed"].x) == [0, 4, 17]
    assert list(shown["failed"].x) == [3]
    observed = traces(parameter_figure(Slice(known, "x")))["observed"]
    assert [text.split(":")[0] for text in observed.hovertext] == [
        "experiment 0",
        "experiment 4",
        "experiment 17",
    ]
    with pytest.raises(ValueError, match="4 experiments, but 2 numbers"):
        outcome(opt, numbers=[1, 2])


def test_all_pairs_of_numbers_and_the_most_influential_first():
    opt = optimizer(
        {"a": (0.0, 1.0), "b": (0.0, 1.0), "c": (0.0, 1.0), "t": ["x", "y"]},
        n=12,
        f=lambda design: 3 * design["c"] + design["b"] + 0.01 * design["a"],
        surrogate="nominal",
    )
    findings = outcome(opt)
    pairs = pairs_by_influence([Slice(findings, name) for name in "abct"])
    assert pairs == [("b", "c"), ("a", "c"), ("a", "b")]


def test_the_surface_is_the_expected_value(found, fine):
    surface = map_figure(found, "speed", "depth").data[0]
    rng = np.random.default_rng(1)
    rows, columns = rng.integers(49, size=(2, 30))
    x, y = np.array(surface.x), np.array(surface.y)
    X = found.findings.along({"speed": x[columns], "depth": y[rows]})
    expected = found.expected(X).mean
    error = np.abs(np.array(surface.z)[rows, columns] - expected)
    assert error.max() < 0.01 * np.ptp(surface.z)


def test_designs_tried_failed_pending_and_recommended_are_marked(found):
    shown = traces(map_figure(found, "speed", "depth"))
    counts = {name: len(trace.x) for name, trace in shown.items()}
    marked = {"tried": 8, "failed": 1, "pending": 1, "recommended": 1}
    assert counts == {**marked, "where it lands": 200}
    assert shown["recommended"].x[0] == found.findings.best.design["speed"]


def test_bright_is_good_in_both_directions():
    for direction in ("maximize", "minimize"):
        opt = optimizer(
            {"a": (0.0, 1.0), "b": (0.0, 1.0)}, n=2, direction=direction, surrogate="nominal"
        )
        assert map_figure(outcome(opt), "a", "b").data[0].reversescale == (direction == "minimize")


def test_names_are_text_in_charts():
    findings = outcome(hostile())
    for name in findings.findings.space.names:
        assert "<" not in parameter_figure(Slice(findings, name)).to_json()
    assert "<" not in map_figure(findings, findings.findings.space.names[0], "c").to_json()


def test_limits_are_drawn_and_values_beyond_them_stand_out():
    opt = airbo.Optimizer(
        {"a": (0.0, 1.0), "b": (0.0, 1.0)},
        {"a": unc.Normal(0.05)},
        outcomes={"Ra": airbo.Maximize(measures.InSpec(0.4, 0.6))},
        surrogate="ugp",
    )
    for a, b in ((0.1, 0.2), (0.5, 0.5), (0.9, 0.1), (0.6, 0.9)):
        opt.tell({"a": a, "b": b}, {"Ra": a})
    known = outcome(opt)
    progress = progress_figure(known)
    shown = traces(progress)
    assert list(shown["in spec"].y) == [0.5, 0.6]
    assert list(shown["out of spec"].y) == [0.1, 0.9]
    assert [line.y0 for line in progress.layout.shapes] == [0.4, 0.6]
    assert [s.y0 for s in parameter_figure(Slice(known, "a")).layout.shapes] == [0.4, 0.6]


def test_a_map_shows_what_the_limits_forbid(fine):
    opt = airbo.Optimizer(
        {"a": (0.0, 1.0), "b": (0.0, 1.0)},
        {"a": unc.Normal(0.01)},
        outcomes={"Ra": airbo.Maximize(measures.InSpec(0.25, 0.75))},
        surrogate="ugp",
        n_initial=20,
    )
    for _ in range(20):
        design = opt.ask()
        opt.tell(design, {"Ra": design["a"]})
    known = outcome(opt)
    figure = map_figure(known, "a", "b")
    lines = [t for t in figure.data if t.type == "contour"][1:]
    assert [t.contours.start for t in lines] == [0.5, 0.8, 0.95]
    hatched = traces(figure)["out of spec too often"]
    X = known.findings.along({"a": np.array([0.5, 0.1, 0.9]), "b": np.array([0.5, 0.5, 0.5])})
    assert (known.findings.in_spec(X) > 0.9).tolist() == [True, False, False]
    assert not [x for x in hatched.x if 0.35 < x < 0.65]
    assert {x > 0.5 for x in hatched.x} == {True, False}
    box, window = traces(figure)["operating window"], known.findings.handover.window
    assert (min(box.x), max(box.x)) == tuple(window.jointly["a"])
    assert (min(box.y), max(box.y)) == tuple(window.jointly["b"])


def test_logarithmic_axes_have_round_numbers():
    assert ticks(0.1, 2.0) == [0.1, 0.2, 0.5, 1.0, 2.0]
    assert ticks(3e-6, 2e4) == [1e-5, 1e-4, 1e-3, 1e-2, 0.1, 1.0, 10.0, 100.0, 1e3, 1e4]


def test_unknown_parameters_are_named():
    findings = outcome(ten(n=2, surrogate="nominal"))
    with pytest.raises(ValueError, match="Unknown parameter 'x11'; did you mean 'x1'"):
        findings.findings.parameter("x11")
