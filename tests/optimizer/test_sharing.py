"""Several optimizers that share the work, and copies of one."""

import copy
import pickle
import threading

import numpy as np
import pandas as pd
import pytest
import torch

from airbo import Float, Integer, Optimizer, Space
from airbo import uncertainty as unc
from airbo.optimizer.surrogate import SURROGATES, Surrogate
from airbo.seeds import reproducible
from tests.optimizer.common import LINE, SQUARE, cheap, hill, recommend, run


def test_a_design_that_is_expected_counts_as_one_that_was_asked_for():
    asked, expecting = cheap(SQUARE), cheap(SQUARE)
    for optimizer in (asked, expecting):
        run(optimizer, 4)
    expecting.expect(asked.ask())
    assert expecting.pending == asked.pending
    assert expecting.ask() == asked.ask()


def test_an_expected_design_is_told_or_forgotten_as_any_other():
    optimizer = cheap(LINE)
    optimizer.expect({"x": 0.25})
    optimizer.expect({"x": 0.75})
    optimizer.tell({"x": 0.25}, 1.0)
    optimizer.forget({"x": 0.75})
    assert optimizer.pending == []


def test_an_expected_design_belongs_to_the_space_unless_it_is_said_otherwise():
    optimizer = cheap(LINE)
    with pytest.raises(ValueError, match="between 0 and 1, got 2"):
        optimizer.expect({"x": 2.0})
    optimizer.expect({"x": 2.0}, allow_outside=True)
    restored = Optimizer.from_json(optimizer.to_json())
    assert restored.pending == optimizer.pending == [{"x": 2.0}]
    assert restored.ask() == optimizer.ask()
    restored.forget({"x": 2.0})


def test_optimizers_that_number_their_experiments_choose_what_one_alone_would():
    alone = cheap(SQUARE, n_initial=20)
    designs = alone.ask(6)
    for number, design in enumerate(designs):
        assert cheap(SQUARE, n_initial=20).ask(number=number) == design
    assert cheap(SQUARE, n_initial=20).ask(3, number=2) == designs[2:5]


def test_a_number_that_is_none_is_refused():
    with pytest.raises(ValueError, match="number must be a whole number >= 0, got -1"):
        cheap().ask(number=-1)


def test_a_copy_is_in_the_same_state_and_goes_its_own_way():
    optimizer = cheap(SQUARE)
    run(optimizer, 4)
    optimizer.ask()
    before = optimizer.to_json()
    twin = optimizer.copy()
    assert twin.to_json() == before
    twin.tell({"x": 0.5, "y": 0.5}, 50.0)
    twin.ask()
    assert optimizer.to_json() == before
    assert recommend(twin).design == {"x": 0.5, "y": 0.5} != recommend(optimizer).design


def test_copies_that_learn_different_things_have_different_models():
    first = cheap(LINE)
    run(first, 4)
    second = first.copy()
    first.tell({"x": 0.5}, 10.0)
    second.tell({"x": 0.5}, -10.0)
    for _ in range(2):
        means = [o.predict({"x": 0.5})["mean"].item() for o in (first, second)]
        assert means[0] > 1 > -1 > means[1]


def test_copies_do_not_fit_twice_what_one_of_them_has_fitted(monkeypatch):
    fits, fit = [], Surrogate.fit
    monkeypatch.setattr(Surrogate, "fit", lambda *args: fits.append(1) or fit(*args))
    optimizer = cheap(LINE)
    run(optimizer, 4)
    n = len(fits)
    twin = optimizer.copy()
    recommend(twin)
    recommend(optimizer)
    assert len(fits) == n + 1


def test_what_is_done_to_the_record_leaves_the_optimizer_alone():
    optimizer = cheap(LINE)
    run(optimizer, 3)
    before = optimizer.to_json()
    record = optimizer.record
    record.observations.clear()
    record.ask({"x": 0.5})
    assert optimizer.to_json() == before


def test_what_is_done_to_the_model_of_a_copy_leaves_the_others_alone():
    optimizer = cheap(LINE)
    run(optimizer, 4)
    shown, twin = optimizer.model, optimizer.copy().model
    twin.likelihood.noise = 10.0
    assert shown.likelihood.noise.item() != pytest.approx(10.0)


def test_threads_do_not_disturb_each_others_random_numbers():
    drawn = {}

    def draw(seed):
        for step in range(50):
            with reproducible(seed, "ask", step):
                numbers = (torch.rand(3).tolist(), np.random.rand(3).tolist())
            drawn.setdefault((seed, step), []).append(numbers)

    threads = [threading.Thread(target=draw, args=(seed,)) for seed in (1, 1, 2, 2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(first == second for first, second in drawn.values())
    assert len({str(pair[0]) for pair in drawn.values()}) == 100


GRIDS = Space(
    {
        "x": Float(0.0, 1.0, step=0.01),
        "n": Integer(1, 1_000_000, log=True),
        "m": Integer(0, 10**9),
        "k": Integer(2, 8, step=2),
    }
)


def test_long_grids_are_searched_without_listing_them():
    optimizer = cheap(GRIDS)
    designs = run(optimizer, 5, hill)
    for design in designs:
        assert round(design["x"] * 100) / 100 == design["x"]
        assert design["k"] in (2, 4, 6, 8)
    assert len({tuple(d.values()) for d in designs}) == 5


# -- copies by pickle, and threads


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda o: pickle.loads(pickle.dumps(o))])
@pytest.mark.parametrize(
    "surrogate",
    ["expectation", "nominal", *(pytest.param(s, marks=pytest.mark.slow) for s in ("mmd", "ugp"))],
)
def test_a_used_optimizer_can_be_copied_and_goes_on_as_the_original(copied, surrogate):
    optimizer = Optimizer(
        SQUARE, {"x": unc.Normal(0.1), "y": unc.Beta(2, 5, scale=0.2)}, surrogate=surrogate
    )
    run(optimizer, 7)
    optimizer.ask()
    optimizer.predict({"x": 0.5, "y": 0.5})
    back = copied(optimizer)
    assert back.pending == optimizer.pending
    assert back.ask() == optimizer.ask()
    pd.testing.assert_frame_equal(back.observations, optimizer.observations)


@pytest.mark.parametrize("n_initial", [1000, 4], ids=["initial", "model"])
def test_threads_that_share_an_optimizer_get_different_designs(n_initial):
    optimizer = cheap(SQUARE, n_initial=n_initial)
    run(optimizer, 4)
    asked, lock = [], threading.Lock()

    def work():
        for _ in range(2):
            design = optimizer.ask()
            with lock:
                asked.append(design)
            optimizer.tell(design, hill(design))
            optimizer.predict(design)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(asked) == 8
    assert len({tuple(design.items()) for design in asked}) == 8
    assert len(optimizer.observations) == 12
    assert optimizer.pending == []


# -- replicates


@pytest.mark.parametrize("surrogate", ["expectation", "mmd", "nominal"])
def test_replicates_are_folded(surrogate):
    optimizer = cheap(SQUARE, surrogate=surrogate)
    for design in cheap(SQUARE).ask(4) * 3:
        optimizer.tell(design, hill(design) + 0.1 * len(optimizer.observations))
    assert optimizer.model.train_inputs[0].shape == (4, 2)
    whole = cheap(
        SQUARE,
        surrogate=lambda X, Y, uncertainty, deployment, bounds: SURROGATES[surrogate](
            X, Y, uncertainty, bounds, deployment=deployment
        ),
    )
    whole.tell(optimizer.observations)
    assert whole.model.train_inputs[0].shape == (12, 2)
    designs = cheap(SQUARE).ask(6)
    np.testing.assert_allclose(
        optimizer.predict(designs)[["mean", "std"]],
        whole.predict(designs)[["mean", "std"]],
        rtol=0.02,
    )
