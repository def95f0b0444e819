import itertools
from collections import Counter

import numpy as np
import pytest
import torch
from botorch.acquisition import UpperConfidenceBound
from torch.quasirandom import SobolEngine

from airbo import Float, Integer, Optimizer, Space
from airbo import uncertainty as unc
from airbo.seeds import stream_seed
from airbo.space.cube import Cube
from tests.optimizer.common import LINE, MILL, SQUARE, cheap, distance, hill, run


def test_ask_gives_one_design_and_ask_n_a_list_of_them():
    optimizer = Optimizer(MILL)
    assert set(optimizer.ask()) == set(MILL)
    assert len(optimizer.ask(3)) == 3
    assert len(optimizer.pending) == 4


def test_designs_have_the_types_of_the_parameters_and_belong_to_the_space():
    for design in Optimizer(MILL).ask(8):
        Space(MILL).check(design)
        assert [type(v) for v in design.values()] == [float, float, int, str]


def test_changing_a_design_that_was_given_does_not_change_what_is_pending():
    optimizer = Optimizer(LINE)
    design = optimizer.ask()
    optimizer.pending[0]["x"] = design["x"] = -5.0
    assert 0 <= optimizer.pending[0]["x"] <= 1


@pytest.mark.parametrize(("d", "expected"), [(1, 5), (3, 8), (12, 20)])
def test_the_number_of_initial_designs_follows_the_dimension(d, expected):
    assert Optimizer({f"x{i}": (0, 1) for i in range(d)}).n_initial == expected


def test_initial_designs_are_a_scrambled_sobol_sequence():
    designs = Optimizer(SQUARE, seed=7).ask(6)
    points = SobolEngine(2, scramble=True, seed=stream_seed(7, "initial designs")).draw(
        6, dtype=torch.float64
    )
    torch.testing.assert_close(Cube(Space(SQUARE)).columns(designs), points)


def test_log_parameters_are_spread_evenly_over_their_logarithm():
    designs = Optimizer({"d": Float(1e-3, 1e3, log=True)}, n_initial=64).ask(64)
    assert 28 <= sum(d["d"] < 1 for d in designs) <= 36


def test_after_the_initial_designs_the_model_chooses():
    optimizer = cheap(n_initial=3)
    run(optimizer, 5, f=lambda d: -((d["x"] - 0.4) ** 2))
    sobol = SobolEngine(1, scramble=True, seed=0).draw(6, dtype=torch.float64)[-1].item()
    assert optimizer.ask()["x"] != pytest.approx(sobol, abs=1e-3)


def test_told_designs_count_as_initial_ones():
    optimizer = cheap(n_initial=2)
    for x in (0.1, 0.9):
        optimizer.tell({"x": x}, x)
    assert optimizer.ask() != cheap(n_initial=2).ask()


@pytest.mark.parametrize("settings", [{}, {"acquisition": "ei"}], ids=["ucb", "ei"])
def test_pending_designs_are_accounted_for(settings):
    told = [({"x": x}, hill({"x": x})) for x in (0.05, 0.35, 0.65, 0.95)]
    alone, busy = (cheap(n_initial=2, **settings) for _ in range(2))
    for optimizer in (alone, busy):
        for design, value in told:
            optimizer.tell(design, value)
    first = busy.ask()
    assert first == alone.ask()
    assert distance(first, busy.ask()) > 0.02


def test_a_batch_after_the_initial_designs_has_no_two_equal_designs():
    optimizer = cheap()
    run(optimizer, 4)
    batch = optimizer.ask(5)
    assert min(distance(a, b) for a, b in itertools.combinations(batch, 2)) > 1e-6


def test_a_batch_in_a_mixed_space_has_no_two_equal_designs():
    optimizer = cheap(MILL)
    run(optimizer, 3)
    batch = optimizer.ask(3)
    assert min(distance(a, b) for a, b in itertools.combinations(batch, 2)) > 1e-6


@pytest.mark.parametrize("n_told", [0, 2], ids=["initial", "model"])
def test_in_a_tiny_space_every_design_is_pending_before_one_is_asked_for_again(n_told):
    optimizer = cheap({"n": Integer(1, 2), "t": ["A", "B", "C"]}, n_initial=2)
    run(optimizer, n_told)
    batch = optimizer.ask(8)
    assert len({tuple(d.values()) for d in batch[:6]}) == 6


@pytest.mark.parametrize("space", [LINE, {"t": ["A", "B", "C", "D"]}], ids=["line", "choices"])
def test_a_failed_design_is_not_proposed_again_at_once(space):
    optimizer = cheap(space, n_initial=2)
    run(optimizer, 4)
    failed = optimizer.ask()
    optimizer.tell(failed, None)
    assert distance(optimizer.ask(), failed) > 0.005


def test_a_failed_design_may_come_back_when_other_values_have_come_in():
    optimizer = cheap({"t": ["A", "B", "C"]}, n_initial=3)
    run(optimizer, 6)
    optimizer.tell({"t": "B"}, None)
    assert run(optimizer, 1)[0] != {"t": "B"}
    assert optimizer.record.recently_failed == []
    assert {"t": "B"} in run(optimizer, 4)


def test_a_design_that_fails_again_and_again_is_left_alone_longer_and_longer():
    optimizer = cheap({"t": ["A", "B", "C"]}, n_initial=3)
    run(optimizer, 6)
    designs = run(optimizer, 12, f=lambda d: None if d["t"] == "B" else hill(d))
    chosen = [i for i, d in enumerate(designs) if d["t"] == "B"]
    gaps = np.diff(chosen)
    assert len(chosen) >= 2
    # after its k-th failure it waits for k values
    assert (gaps > 1 + np.arange(len(gaps))).all()


def test_failed_experiments_alone_lead_to_further_initial_designs():
    optimizer = cheap()
    designs = run(optimizer, 12, f=lambda design: None)
    assert len({d["x"] for d in designs}) == 12


def test_a_design_that_nobody_will_answer_can_be_forgotten():
    optimizer = Optimizer(LINE)
    design = optimizer.ask()
    optimizer.forget(design)
    assert optimizer.pending == []
    with pytest.raises(ValueError, match="is not pending"):
        optimizer.forget(design)


@pytest.mark.parametrize("n", [0, -1, 2.5, "2", True], ids=repr)
@pytest.mark.usefixtures("as_without_shape_checks")
def test_a_number_of_designs_that_is_none_is_refused(n):
    optimizer = Optimizer(LINE)
    before = optimizer.to_json()
    with pytest.raises(ValueError, match="n must be a whole number >= 1"):
        optimizer.ask(n)
    assert optimizer.to_json() == before


@pytest.mark.usefixtures("as_without_shape_checks")
def test_numpy_integers_are_numbers_of_designs_and_seeds():
    assert Optimizer(LINE, seed=np.int64(3)).ask(np.int32(2)) == Optimizer(LINE, seed=3).ask(2)


@pytest.mark.usefixtures("as_without_shape_checks")
def test_hundreds_of_designs_may_be_pending():
    optimizer = cheap()
    designs = optimizer.ask(300)
    assert len({d["x"] for d in designs}) == 300
    for x in (0.2, 0.8):
        optimizer.tell({"x": x}, x)
    assert optimizer.ask() not in designs
    assert len(optimizer.pending) == 301


def test_only_categories_can_be_optimized():
    optimizer = cheap({"a": ["A", "B"], "b": ["A", "B", "C"]}, n_initial=3)
    designs = run(optimizer, 8)
    assert {"a": "B", "b": "B"} in designs


def test_many_choices_are_searched_without_listing_them_all():
    optimizer = cheap({name: ["A", "B", "C", "D", "E"] for name in "abcdef"})
    counts = [list(design.values()).count("B") for design in run(optimizer, 7)]
    assert max(counts[3:]) > max(counts[:3])  # what is worth something is found by the model


@pytest.mark.parametrize("surrogate", ["mmd", "nominal"])
def test_in_twelve_dimensions_the_model_chooses_too(surrogate):
    space = {f"x{i}": (0, 1) for i in range(12)}
    optimizer = cheap(space, unc.Normal(0.05), surrogate=surrogate)
    chosen = run(optimizer, 4)[-1]
    Space(space).check(chosen)
    assert chosen != cheap(space).ask(4)[-1]  # the next initial design


@pytest.mark.parametrize("unit", [1e-9, 1e9])
def test_the_unit_of_a_parameter_does_not_change_the_designs(unit):
    plain = run(cheap({"x": (0, 1)}, unc.Normal(0.1), surrogate="erbf"), 5)
    scaled = cheap({"x": (0, unit)}, unc.Normal(0.1 * unit), surrogate="erbf")
    designs = run(scaled, 5, f=lambda d: hill({"x": d["x"] / unit}))
    assert [d["x"] / unit for d in designs] == pytest.approx([d["x"] for d in plain], abs=1e-4)


@pytest.mark.parametrize("unit", [1e9, 1e-9])
def test_the_unit_of_the_value_does_not_change_the_designs(unit):
    plain = run(cheap(), 5)
    scaled = run(cheap(), 5, f=lambda d: unit * hill(d))
    assert [d["x"] for d in scaled] == pytest.approx([d["x"] for d in plain], abs=1e-4)


def test_equal_values_are_no_trouble():
    designs = run(cheap(LINE, unc.Normal(0.1), surrogate="mmd"), 5, f=lambda design: 3.0)
    assert len({d["x"] for d in designs}) == 5


def test_under_an_uncertainty_wider_than_the_space_all_designs_are_alike():
    optimizer = cheap(LINE, unc.Normal(10.0), surrogate="mmd")
    designs = run(optimizer, 5)
    assert all(0 <= design["x"] <= 1 for design in designs)
    means = optimizer.predict([{"x": x} for x in (0.0, 0.5, 1.0)])["mean"]
    assert np.ptp(means) < 0.1 * np.ptp([hill(design) for design in designs])


def test_names_may_have_spaces_and_any_letters():
    space = {"größe in µm": (0, 1), "a b": (0, 1)}
    optimizer = cheap(space, {"größe in µm": unc.Normal(0.1)})
    run(optimizer, 4)
    assert Optimizer.from_json(optimizer.to_json()).ask() == optimizer.ask()


def test_an_own_botorch_acquisition_chooses():
    def factory(model):
        return UpperConfidenceBound(model, beta=4.0)  # the square of the paper's β

    own, named = cheap(acquisition=factory), cheap(acquisition="ucb")
    assert run(own, 5) == run(named, 5)
    assert own.ask(2) == named.ask(2)


@pytest.mark.parametrize("surrogate", ["nominal", "expectation", "mmd"])
def test_a_design_told_from_far_outside_does_not_end_the_search(surrogate):
    optimizer = cheap(LINE, surrogate=surrogate)
    run(optimizer, 4)
    optimizer.tell({"x": 1e300}, 1.0, allow_outside=True)
    optimizer.tell({"x": 0.5}, 1.0, executed={"x": -1e300})
    assert 0 <= optimizer.ask()["x"] <= 1


@pytest.mark.parametrize("others", [{}, {"y": (0.0, 1.0)}], ids=["alone", "with another"])
@pytest.mark.usefixtures("as_without_shape_checks")
def test_an_uncertainty_that_varies_is_not_asked_for_designs_outside_the_bounds(others):
    seen = []

    def fn(x):
        seen.extend([x.min().item(), x.max().item()])
        return unc.Normal(0.1 * x)  # has no meaning below 0

    optimizer = Optimizer({"x": (0.0, 10.0), **others}, {"x": unc.Varying(fn)}, n_initial=4)
    for _ in range(6):
        design = optimizer.ask()
        optimizer.tell(design, -((design["x"] - 3) ** 2))
    optimizer.recommend("anywhere")
    assert min(seen) >= 0
    assert max(seen) <= 10


@pytest.mark.parametrize("constraints", [(), ("a + b <= 1.5",)])
@pytest.mark.parametrize("k", [3, 4, 5])
def test_first_designs_try_every_choice_and_every_whole_number_equally_often(k, constraints):
    parameters = {"a": (0.0, 1.0), "b": (0.0, 1.0), "n": Integer(1, k), "tool": list("ABCDE"[:k])}
    optimizer = Optimizer(Space(parameters, constraints), seed=3, n_initial=4 * k)
    designs = optimizer.ask(4 * k)
    for name in ("n", "tool"):
        counts = Counter(design[name] for design in designs)
        assert len(counts) == k
        # points that miss a constraint leave gaps in the sequence
        assert max(counts.values()) - min(counts.values()) <= (3 if constraints else 2)
