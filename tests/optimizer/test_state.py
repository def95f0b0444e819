import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import torch

from airbo import Optimizer
from airbo import uncertainty as unc
from airbo.acquisition import UCB, RandomizedUCB, TheoryUCB
from tests.lab import processes
from tests.optimizer.common import LINE, MILL, SQUARE, cheap, hill, recommend, run

# -- reproducible


SETTINGS = [
    pytest.param(LINE, None, {"acquisition": "ei"}, id="ei"),
    pytest.param(MILL, {"speed": unc.Normal(2.0)}, {}, id="mixed"),
    pytest.param(LINE, unc.Normal(0.1), {"surrogate": "mmd"}, id="mmd", marks=pytest.mark.slow),
]


@pytest.mark.parametrize(("space", "P", "settings"), SETTINGS)
def test_the_same_seed_and_calls_give_the_same_designs_whatever_the_global_seeds_are(
    space, P, settings
):
    runs = []
    for global_seed in (1, 2):
        torch.manual_seed(global_seed)
        np.random.seed(global_seed)
        random.seed(global_seed)
        optimizer = cheap(space, P, **settings)
        runs.append((run(optimizer, 4), optimizer.ask(2), recommend(optimizer, policy="anywhere")))
    assert runs[0] == runs[1]


def test_other_seeds_give_other_designs():
    assert Optimizer(LINE, seed=0).ask() != Optimizer(LINE, seed=1).ask()


def test_a_seed_may_be_as_large_as_one_likes():
    first, again, other = (run(cheap(seed=seed), 4) for seed in (2**80, 2**80, 2**80 + 1))
    assert first == again
    assert first[0] != other[0]


@pytest.mark.parametrize(("space", "P", "settings"), SETTINGS)
@pytest.mark.usefixtures("as_without_shape_checks")  # these draw random numbers themselves
def test_global_random_states_are_left_as_they_were(space, P, settings):
    torch.manual_seed(5)
    np.random.seed(5)
    before = torch.get_rng_state(), np.random.get_state()[1].tolist(), random.getstate()
    optimizer = cheap(space, P, **settings)
    run(optimizer, 4)
    recommend(optimizer, policy="anywhere")
    after = torch.get_rng_state(), np.random.get_state()[1].tolist(), random.getstate()
    assert torch.equal(before[0], after[0])
    assert before[1:] == after[1:]


def test_looking_does_not_change_the_designs_that_follow():
    quiet, curious = (cheap(LINE, unc.Normal(0.1), surrogate="mmd", n_initial=4) for _ in range(2))
    for optimizer in (quiet, curious):
        run(optimizer, 4)
    recommend(curious)
    recommend(curious, policy="anywhere")
    curious.predict([{"x": 0.3}])
    X = torch.tensor([[0.3]], dtype=torch.float64)
    curious.model.posterior(X, uncertainty=unc.Uniform(-0.2, 0.3))
    with torch.no_grad():
        for parameter in curious.model.parameters():
            parameter.zero_()
    assert quiet.ask(2) == curious.ask(2)


# -- saved and restored


def calls(optimizer):
    """Do one thing after another to an optimizer that is handed on after each."""
    designs = {}
    yield "ask", lambda o: designs.update(a=o.ask())
    yield "ask(3)", lambda o: designs.update(zip("bcd", o.ask(3), strict=True))
    yield "tell", lambda o: o.tell(designs["c"], hill(designs["c"]))
    yield "tell failed", lambda o: o.tell(designs["a"], None)
    yield "tell elsewhere", lambda o: o.tell(designs["b"], 0.4, uncertainty=unc.Normal(0.3))
    yield "tell executed", lambda o: o.tell({"x": 0.5}, 0.6, executed={"x": 0.47})
    yield "ask again", lambda o: designs.update(e=o.ask())
    yield "recommend", lambda o: recommend(o)
    yield "ask(2)", lambda o: designs.update(zip("fg", o.ask(2), strict=True))
    yield "forget", lambda o: o.forget(designs["f"])
    yield "tell last", lambda o: o.tell(designs["e"], hill(designs["e"]))
    yield "ask last", lambda o: designs.update(h=o.ask())
    optimizer["designs"] = designs


@pytest.mark.parametrize(
    ("P", "settings"),
    [
        pytest.param(unc.Normal(0.1), {"surrogate": "mmd", "n_initial": 6}, marks=pytest.mark.slow),
        (
            unc.Beta(2.0, 3.0, scale=0.2),
            {
                "surrogate": "erbf",
                "acquisition": "ei",
                "deployment": unc.Normal(0.1),
                "direction": "minimize",
            },
        ),
        (unc.Normal(0.1), {"acquisition": UCB(beta=0.5), "seed": 4}),
    ],
    ids=["mmd", "ei", "settings"],
)
def test_an_optimizer_restored_after_every_call_goes_on_as_if_never_interrupted(P, settings):
    results = []
    for interrupted in (False, True):
        optimizer, out = cheap(LINE, P, **{"n_initial": 4} | settings), {}
        for _, call in calls(out):
            call(optimizer)
            if interrupted:
                text = optimizer.to_json()
                optimizer = Optimizer.from_json(text)
                assert optimizer.to_json() == text
        results.append((out["designs"], optimizer.to_json(), recommend(optimizer)))
    assert results[0] == results[1]


def test_a_mixed_space_survives_json():
    optimizer = cheap(MILL, {"speed": unc.Normal(2.0)})
    run(optimizer, 3)
    restored = Optimizer.from_json(optimizer.to_json())
    assert restored.space == optimizer.space
    assert restored.ask(2) == optimizer.ask(2)


def work(path, n, patience=0.0):
    """Go on with an optimization, which is saved after every change."""
    if path.exists():
        optimizer = Optimizer.from_json(path.read_text())
    else:
        optimizer = cheap({"x": (0, 1)}, unc.Normal(0.1), surrogate="erbf")

    def save():
        new = path.with_suffix(".new")
        new.write_text(optimizer.to_json())
        os.replace(new, path)

    while len(optimizer.observations) < n:
        design = optimizer.pending[0] if optimizer.pending else optimizer.ask()
        save()
        time.sleep(patience if len(optimizer.observations) == n // 2 else 0)  # the experiment
        optimizer.tell(design, hill(design))
        save()


SCRIPT = """
import sys
from pathlib import Path
import torch
from airbo.optimizer import search
from tests.optimizer.test_state import work

torch.set_num_threads(1)
search.N_RESTARTS, search.N_RAW = 2, 32
work(Path(sys.argv[1]), int(sys.argv[2]))
"""


def test_a_process_that_was_killed_goes_on_in_a_new_one_with_the_very_same_designs(tmp_path):
    n, path = 6, tmp_path / "state.json"
    child = processes.start(lambda: work(path, n, patience=600))
    while not (path.exists() and n_observations(path) == n // 2):
        time.sleep(0.05)
    processes.kill(child)
    assert processes.finish(child) == -signal.SIGKILL
    assert n_observations(path) == n // 2

    root = Path(__file__).parents[2]
    env = os.environ | {"PYTHONPATH": f"{root}{os.pathsep}{root / 'src'}", "OMP_NUM_THREADS": "1"}
    subprocess.run([sys.executable, "-c", SCRIPT, path, str(n)], env=env, cwd=root, check=True)
    uninterrupted = cheap({"x": (0, 1)}, unc.Normal(0.1), surrogate="erbf")
    run(uninterrupted, n)
    assert Optimizer.from_json(path.read_text()).to_json() == uninterrupted.to_json()


def n_observations(path):
    return len(json.loads(path.read_text())["observations"])


# -- what cannot be saved


def noise_that_grows(x):
    return unc.Normal(0.05 + 0.1 * x)


def test_code_is_asked_for_again():
    varying = unc.Varying(noise_that_grows)
    optimizer = cheap(LINE, varying)
    run(optimizer, 4)
    text = optimizer.to_json()
    with pytest.raises(ValueError, match=r"uncertainty .* is code .* from_json\(text, uncertainty"):
        Optimizer.from_json(text)
    assert Optimizer.from_json(text, uncertainty=varying).ask() == optimizer.ask()


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("surrogate", lambda X, Y: None),
        ("acquisition", lambda model: None),
        ("deployment", unc.Varying(noise_that_grows)),
    ],
)
def test_each_setting_that_is_code_is_named(name, code):
    text = cheap(**{name: code}).to_json()
    with pytest.raises(ValueError, match=rf"The {name} .* from_json\(text, {name}=\.\.\.\)"):
        Optimizer.from_json(text)
    assert getattr(Optimizer.from_json(text, **{name: code}), name) == code


def test_code_of_one_observation_is_asked_for_by_its_row():
    varying = unc.Varying(noise_that_grows)
    optimizer = cheap(LINE, unc.Normal(0.1))
    optimizer.tell({"x": 0.5}, 1.0)
    optimizer.tell({"x": 0.5}, 1.0, uncertainty={"x": varying})
    text = optimizer.to_json()
    with pytest.raises(ValueError, match=r"observation 1 is code .*uncertainties=\{1: \.\.\.\}"):
        Optimizer.from_json(text)
    assert Optimizer.from_json(text, uncertainties={1: {"x": varying}}).to_json() == text


@pytest.mark.parametrize(
    "acquisition", ["ei", UCB(beta=0.3), RandomizedUCB(2.0), TheoryUCB(b=2.0, delta=0.2)], ids=str
)
def test_acquisitions_of_airbo_are_saved_with_their_settings(acquisition):
    text = cheap(acquisition=acquisition).to_json()
    assert Optimizer.from_json(text).acquisition == acquisition


# -- broken states


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "{}", "null", '{"airbo": 1}', None, b"\xff\xfe\xfd"]
)
@pytest.mark.usefixtures("as_without_shape_checks")
def test_what_is_not_a_state_is_refused(text):
    with pytest.raises(ValueError, match="not the state of an optimizer"):
        Optimizer.from_json(text)


def test_a_state_of_another_version_is_refused():
    state = json.loads(Optimizer(LINE).to_json())
    with pytest.raises(ValueError, match="version 999; this airbo reads version 2"):
        Optimizer.from_json(json.dumps(state | {"airbo_optimizer": 999}))


STATE = {
    **json.loads(Optimizer(SQUARE).to_json()),
    "observations": [{"design": {"x": 0.1, "y": 0.2}, "outcomes": {"value": 1.0}}],
    "pending": [{"design": {"x": 0.3, "y": 0.4}, "outcomes": {}}],
    "n_asked": 1,
}


@pytest.mark.parametrize("name", [name for name in STATE if name != "airbo_optimizer"])
@pytest.mark.usefixtures("as_without_shape_checks")
def test_a_state_with_a_missing_or_senseless_part_is_refused(name):
    without = {key: value for key, value in STATE.items() if key != name}
    with pytest.raises(ValueError, match=name):
        Optimizer.from_json(json.dumps(without))
    with pytest.raises(ValueError, match=r".+"):
        Optimizer.from_json(json.dumps(STATE | {name: 17.5}))


@pytest.mark.parametrize(
    "observation",
    [
        {"design": {"x": 0.1, "y": 0.2}, "outcomes": {"value": float("inf")}},
        {"design": {"x": 0.1}, "outcomes": {"value": 1.0}},
        {"design": {"x": 0.1, "y": "a"}, "outcomes": {"value": 1.0}},
        {"design": {"x": 0.1, "y": 0.2}, "outcomes": {"value": "a"}},
        {"design": {"x": 0.1, "y": 0.2}},
        {
            "design": {"x": 0.1, "y": 0.2},
            "outcomes": {"value": 1.0},
            "uncertainty": {"kind": "os.system"},
        },
    ],
)
@pytest.mark.usefixtures("as_without_shape_checks")
def test_a_state_with_a_senseless_observation_is_refused(observation):
    Optimizer.from_json(json.dumps(STATE))
    with pytest.raises((ValueError, TypeError), match=r"y|outcome|value|kind"):
        Optimizer.from_json(json.dumps(STATE | {"observations": [observation]}))
