import math
import threading
from concurrent.futures import (
    BrokenExecutor,
    Executor,
    Future,
    ProcessPoolExecutor,
    ThreadPoolExecutor,
)
from types import SimpleNamespace

import pytest

import airbo
from airbo import ExperimentError
from airbo import uncertainty as unc
from airbo.acquisition import UCB
from airbo.measures import CVaR, Mean

LINE = {"x": (0.0, 1.0)}
QUICK = {"surrogate": "nominal", "n_initial": 3}


pytestmark = pytest.mark.usefixtures("quick_search")


def parabola(design):
    return -((design["x"] - 0.3) ** 2)


def stopping(f, step, error):
    """f, with an exception in place of one value."""
    count = iter(range(1000))

    def stopped(design):
        if next(count) == step:
            raise error
        return f(design)

    return stopped


def test_maximize_finds_the_largest_and_minimize_the_smallest_expected_value():
    up = airbo.maximize(parabola, LINE, unc.Normal(0.01), budget=8, progress=False, **QUICK)
    down = airbo.minimize(lambda d: -parabola(d), LINE, unc.Normal(0.01), budget=8, **QUICK)
    assert up.design["x"] == pytest.approx(0.3, abs=0.05)
    assert up.mean == pytest.approx(0.0, abs=0.05)
    assert up.std < 0.1
    assert len(up.observations) == 8
    assert down.design == up.design
    assert down.mean == -up.mean


def peak_and_plateau(x):
    """A peak at 0.2 with the better mean over ± 0.1, and a plateau at 0.7 with the better tail."""
    return 2 * math.exp(-0.5 * ((x - 0.2) / 0.06) ** 2) + math.exp(-0.5 * ((x - 0.7) / 0.15) ** 2)


@pytest.mark.parametrize("go", [airbo.maximize, airbo.minimize])
@pytest.mark.parametrize(("measure", "best"), [(Mean(), 0.2), (CVaR(0.9), 0.7)], ids=repr)
def test_a_measure_decides_what_is_asked_and_what_is_recommended(go, measure, best):
    sign = 1 if go is airbo.maximize else -1
    used = {"deployment": {"x": unc.Uniform(-0.1, 0.1)}, "measure": measure, "acquisition": UCB(0)}
    found = go(
        lambda d: sign * peak_and_plateau(d["x"]), LINE, budget=16, n_initial=15, progress=False,
        **used,
    )  # fmt: skip
    assert found.design["x"] == pytest.approx(best, abs=0.05)
    assert found.observations["x"].iloc[-1] == pytest.approx(best, abs=0.15)


def test_the_optimizer_of_a_result_goes_on():
    result = airbo.maximize(parabola, LINE, budget=5, seed=3, progress=False, **QUICK)
    other = airbo.Optimizer(LINE, seed=3, **QUICK)
    for _ in range(5):
        design = other.ask()
        other.tell(design, parabola(design))
    assert result.optimizer.ask() == other.ask()


def test_what_f_does_to_its_design_is_its_own_business():
    def careless(design):
        return parabola({"x": design.pop("x")})

    result = airbo.maximize(careless, LINE, budget=4, progress=False, **QUICK)
    assert result.observations["x"].notna().all()


def test_settings_are_those_of_the_optimizer():
    Q = unc.Normal(0.1)
    result = airbo.maximize(parabola, LINE, budget=4, progress=False, deployment=Q, **QUICK)
    assert result.optimizer.deployment == Q
    with pytest.raises(TypeError, match="sead"):
        airbo.maximize(parabola, LINE, budget=4, sead=3)


def test_the_callback_sees_every_experiment():
    seen = []
    airbo.maximize(parabola, LINE, budget=4, progress=False, **QUICK,
                   callback=lambda optimizer: seen.append(len(optimizer.observations)))  # fmt: skip
    assert seen == [1, 2, 3, 4]


def test_failed_experiments_are_part_of_the_record():
    result = airbo.maximize(lambda d: None if d["x"] > 0.8 else d["x"], LINE, budget=6,
                            progress=False, **QUICK)  # fmt: skip
    assert set(result.observations["status"]) == {"ok", "failed"}
    assert result.design["x"] <= 0.8


def test_the_progress_bar_prints_one_line_where_there_is_no_terminal(capfd):
    airbo.maximize(parabola, LINE, budget=5, **QUICK)
    out, err = capfd.readouterr()
    assert out == ""
    assert len(err.strip().splitlines()) <= 1


def test_no_progress_bar_prints_nothing(capfd):
    airbo.maximize(parabola, LINE, budget=4, progress=False, **QUICK)
    assert capfd.readouterr() == ("", "")


def test_on_a_terminal_the_bar_counts_experiments_and_changes_no_design(capfd, monkeypatch):
    silent = airbo.maximize(parabola, LINE, budget=5, progress=False, **QUICK)
    monkeypatch.setenv("FORCE_COLOR", "1")
    shown = airbo.maximize(parabola, LINE, budget=5, **QUICK)
    err = capfd.readouterr().err
    assert "5/5" in err
    assert shown.observations.equals(silent.observations)


def test_ctrl_c_returns_what_there_is():
    f = stopping(parabola, 4, KeyboardInterrupt())
    result = airbo.maximize(f, LINE, budget=50, progress=False, **QUICK)
    assert len(result.observations) == 4
    assert len(result.optimizer.pending) == 1
    assert result.design == result.optimizer.recommend().design


@pytest.mark.parametrize("f", [parabola, lambda design: None], ids=["at once", "after failures"])
def test_ctrl_c_before_any_value_is_ctrl_c(f):
    step = 0 if f is parabola else 2
    with pytest.raises(KeyboardInterrupt):
        airbo.maximize(stopping(f, step, KeyboardInterrupt()), LINE, budget=9, **QUICK)


def test_an_exception_in_f_names_the_design_and_loses_nothing():
    f = stopping(parabola, 3, OSError("the laser is off."))
    with pytest.raises(ExperimentError, match=r"raised OSError: the laser is off\. 3 obs") as info:
        airbo.maximize(f, LINE, budget=9, progress=False, **QUICK)
    error = info.value
    assert isinstance(error.__cause__, OSError)
    assert str(error.design["x"]) in str(error)
    assert error.optimizer.pending == [error.design]
    assert len(error.optimizer.observations) == 3
    error.optimizer.tell(error.design, parabola(error.design))
    error.optimizer.ask()


@pytest.mark.parametrize("value", [math.inf, "3", True], ids=repr)
def test_a_value_that_makes_no_sense_is_an_error_of_f(value):
    with pytest.raises(ExperimentError, match="The value must be") as info:
        airbo.maximize(lambda design: value, LINE, budget=9, progress=False, **QUICK)
    assert len(info.value.optimizer.pending) == 1


def test_an_exception_while_choosing_loses_nothing():
    def broken(train_X, train_Y):
        raise ArithmeticError("no model today")

    with pytest.raises(ExperimentError, match=r"Choosing .* no model today\. 3 obs") as info:
        airbo.maximize(parabola, LINE, budget=9, progress=False, **QUICK | {"surrogate": broken})
    assert len(info.value.optimizer.observations) == 3


def test_only_failed_experiments_are_an_error_that_keeps_them():
    with pytest.raises(ExperimentError, match=r"No experiment measured 'value'\. 4 obs") as info:
        airbo.maximize(lambda design: None, LINE, budget=4, progress=False, **QUICK)
    assert len(info.value.optimizer.observations) == 4


@pytest.mark.parametrize("budget", [0, -3, 2.5, "9", True, None], ids=repr)
@pytest.mark.usefixtures("as_without_shape_checks")
def test_a_budget_that_is_no_number_of_experiments_is_refused(budget):
    with pytest.raises(ValueError, match="budget must be a whole number >= 1"):
        airbo.maximize(parabola, LINE, budget=budget)


SEVERAL = {"strength": airbo.Maximize(), "leak": airbo.AtMost(0.5)}


def test_an_outcome_that_was_never_measured_is_named_and_nothing_is_lost():
    with pytest.raises(ExperimentError, match="No experiment measured 'leak'") as caught:
        airbo.maximize(lambda d: {"strength": d["x"]}, LINE, budget=3, outcomes=SEVERAL)
    assert len(caught.value.optimizer.observations) == 3


def test_the_first_objective_is_what_the_function_is_called():
    with pytest.raises(ValueError, match=r"minimize: the first objective is 'strength'.* maximize"):
        airbo.minimize(parabola, LINE, budget=3, outcomes=SEVERAL)


# -- side by side


class InTurn(Executor):
    """Workers whose experiments end when a test says so: the last one that began ends first."""

    _max_workers = 3

    def __init__(self):
        self.begun, self.most = [], 0

    def submit(self, f, /, *args):
        future = Future()
        self.begun.append((future, f, args))
        self.most = max(self.most, len(self.begun))
        if len(self.begun) == 3:
            self.end()
        return future

    def end(self):
        future, f, args = self.begun.pop()
        future.set_result(f(*args))


def test_as_many_experiments_run_as_there_are_workers_and_all_of_the_budget_is_used():
    workers = InTurn()
    result = airbo.maximize(parabola, LINE, budget=9, progress=False, executor=workers,
                            callback=lambda _: workers.end() if workers.begun else None,
                            **QUICK)  # fmt: skip
    assert workers.most == 3
    assert len(result.observations) == 9
    assert result.optimizer.pending == []


class Mpi(InTurn):
    """Says how many workers there are as mpi4py does."""

    _max_workers, num_workers = None, 3


class Dask(InTurn):
    """Says it as Dask does: the threads of each worker."""

    _max_workers, _client = None, SimpleNamespace(nthreads=lambda: {"tcp://a": 1, "tcp://b": 2})


@pytest.mark.parametrize("kind", [Mpi, Dask])
def test_executors_of_other_libraries_get_an_experiment_for_each_worker(kind):
    workers = kind()
    airbo.maximize(parabola, LINE, budget=6, progress=False, executor=workers,
                   callback=lambda _: workers.end() if workers.begun else None,
                   **QUICK)  # fmt: skip
    assert workers.most == 3


def test_a_worker_that_dies_leaves_what_was_observed():
    class Dying(Executor):
        _max_workers, n = 1, 0

        def submit(self, f, /, *args):
            self.n += 1
            if self.n == 4:
                raise BrokenExecutor("a child process terminated")
            future = Future()
            future.set_result(f(*args))
            return future

    with pytest.raises(ExperimentError, match=r"Starting the experiment at .* BrokenExec") as info:
        airbo.maximize(parabola, LINE, budget=9, progress=False, executor=Dying(), **QUICK)
    assert len(info.value.optimizer.observations) == 3
    assert info.value.design in info.value.optimizer.pending


def test_what_is_no_executor_is_refused():
    with pytest.raises(TypeError, match=r"executor must be one of concurrent\.futures, got 4"):
        airbo.maximize(parabola, LINE, budget=9, executor=4)


def test_the_same_order_of_results_gives_the_same_designs():
    def designs():
        workers = InTurn()
        settings = {"executor": workers, "progress": False, **QUICK}
        settings["callback"] = lambda _: workers.end() if workers.begun else None
        return airbo.maximize(parabola, LINE, budget=9, **settings).observations["x"].tolist()

    assert designs() == designs()


@pytest.mark.parametrize("pool", [ThreadPoolExecutor, ProcessPoolExecutor])
def test_one_worker_gives_what_no_executor_gives(pool):
    alone = airbo.maximize(parabola, LINE, budget=5, progress=False, **QUICK)
    with pool(1) as executor:
        pooled = airbo.maximize(
            parabola, LINE, budget=5, progress=False, executor=executor, **QUICK
        )
    assert pooled.observations.equals(alone.observations)


def test_a_failing_experiment_beside_others_keeps_what_was_observed():
    f = stopping(parabola, 3, OSError("off"))
    with ThreadPoolExecutor(2) as executor, pytest.raises(ExperimentError, match="OSError") as info:
        airbo.maximize(f, LINE, budget=20, progress=False, executor=executor, **QUICK)
    optimizer = info.value.optimizer
    assert len(optimizer.observations) >= 2
    assert info.value.design in optimizer.pending


def test_ctrl_c_while_others_run_returns_what_there_is():
    lock, go = threading.Lock(), threading.Event()
    values = iter(range(100))

    def slow(design):
        with lock:
            n = next(values)
        if n == 5:
            go.wait(10)
        return parabola(design)

    def stop(optimizer):
        if len(optimizer.observations) == 6:
            raise KeyboardInterrupt

    with ThreadPoolExecutor(2) as executor:
        result = airbo.maximize(slow, LINE, budget=20, progress=False, executor=executor,
                                callback=stop, **QUICK)  # fmt: skip
        assert len(result.observations) >= 6
        assert len(result.optimizer.pending) >= 1
        go.set()
