"""Settings and fixtures of all tests."""

import gc
import importlib.util

import jaxtyping
import pytest
import torch
from botorch.acquisition.multi_objective import logei
from hypothesis import settings

from tests import postgres

# The same examples in every run, and no deadline: the first call of a torch function is slow.
settings.register_profile("airbo", derandomize=True, deadline=None, max_examples=50)
settings.load_profile("airbo")

torch.set_num_threads(1)


def of_modules_and_classes(jaxtyped):
    """Check the shapes of functions that are made once.

    The import hook decorates every `def`. One inside another function would be compiled anew in
    each call, which took a third of the time of all tests.
    """

    def decorated(*, typechecker):
        checked = jaxtyped(typechecker=typechecker)
        return lambda made: made if "<locals>" in made.__qualname__ else checked(made)

    return decorated


jaxtyping.jaxtyped = of_modules_and_classes(jaxtyping.jaxtyped)
# BoTorch would compile a kernel for its hypervolume acquisitions, for a minute: it has another one
logei._load_attempted = True


def pytest_collection_finish():
    """Let the garbage collector pass over modules and test items, which stay to the end."""
    gc.collect()
    gc.freeze()


def pytest_runtest_setup(item):
    """Skip what needs a package that is not installed, and say where it is."""
    wanted = [name for marker in item.iter_markers("needs") for name in marker.args]
    if missing := [name for name in wanted if importlib.util.find_spec(name) is None]:
        pytest.skip(f"needs {', '.join(missing)}: `make slow` installs it and runs this test")


NUMERICS = {"contracts", "embeddings", "kernels", "measures", "models", "theory", "uncertainty"}
"""Folders whose tests check the shapes of all tensors; elsewhere that takes a third of the time."""


@pytest.fixture(autouse=True)
def _shapes_are_checked_near_the_numerics(request):
    folders = request.path.relative_to(request.config.rootpath).parts
    jaxtyping.config.update("jaxtyping_disable", NUMERICS.isdisjoint(folders))


@pytest.fixture
def as_without_shape_checks(_shapes_are_checked_near_the_numerics):
    """Run as users do, so that our own messages appear and not those of the test run."""
    jaxtyping.config.update("jaxtyping_disable", True)


@pytest.fixture
def quick_search(monkeypatch):
    """Search with few starts: for tests of what is promised, not of how good it is."""
    from airbo.optimizer import search, within

    starts = {"N_RESTARTS": 2, "N_RAW": 32, "N_RESTARTS_MEASURED": 2, "N_RAW_MEASURED": 64}
    replace_all(monkeypatch, {search: starts, within: {"N_CLIMBS": 2, "N_DRAWN": 16}})


@pytest.fixture
def few_draws(monkeypatch):
    """Look at few designs and futures, with few draws, where a test is about what is shown."""
    from airbo.analysis import budget, outlook, window
    from airbo.measures.posterior import Effort
    from airbo.optimizer import choice, goal, search

    rough, fine = Effort(8, 16, smooth=True), Effort(64, 128)
    shares = {"FOR_SHARES": Effort(64, 256)}
    inside = {"N_VALUES": 5, "N_HALVINGS": 2, "N_INSIDE": 2, "N_CONFIRMED": 4}
    few = {
        search: {"SEARCH": rough},
        choice: {"RECOMMEND": rough, "FINE": fine},
        goal: {"FINE": fine, **shares},
        window: {"EFFORT_OF_WINDOW": Effort(16, 32), **shares, **inside},
        budget: {"N_EXECUTED": 128},
        outlook: {"N_FUTURES": 16, "N_TRUTHS": 256},
    }
    replace_all(monkeypatch, few)


def replace_all(monkeypatch, settings):
    """Replace settings of modules."""
    for module, own in settings.items():
        for name, value in own.items():
            monkeypatch.setattr(module, name, value)


@pytest.fixture(scope="session")
def postgres_url():
    """The URL of a PostgreSQL server, which is started when the first test needs it."""
    reason = postgres.missing()
    if reason:
        pytest.skip(reason)
    with postgres.server() as url:
        yield url
