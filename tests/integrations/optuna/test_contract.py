"""Optuna's own contract for samplers."""

import pytest
from optuna.testing.pytest_samplers import (
    BasicSamplerTestCase,
    MultiObjectiveSamplerTestCase,
    RelativeSamplerTestCase,
)

from airbo.integrations.optuna import AIRBOSampler
from airbo.optimizer import search
from tests.integrations.optuna.common import unfitted


@pytest.fixture(autouse=True)
def rough_search(monkeypatch):
    """Take the best of a few random designs: the contract asks hundreds of times."""

    def best_of_pool(function, space, start):
        return search.best_of(function, search.spread_designs(space)[:32])

    monkeypatch.setattr(search, "_search", best_of_pool)


@pytest.mark.usefixtures("as_without_shape_checks")  # for speed
class TestAIRBOSampler(
    BasicSamplerTestCase, RelativeSamplerTestCase, MultiObjectiveSamplerTestCase
):
    @pytest.fixture
    def sampler(self):
        return lambda: AIRBOSampler(surrogate=unfitted, n_startup_trials=0, seed=0)
