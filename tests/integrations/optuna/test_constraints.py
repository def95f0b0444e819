"""Constraints of a search space: every trial that the sampler chooses meets them."""

import pytest
from optuna.samplers import RandomSampler

from airbo import Float, Integer, Space
from airbo.integrations.optuna import distributions_of
from tests.integrations.optuna.common import quick, run, study_of

SPACE = Space(
    {"x": (0.0, 1.0), "y": Float(0.0, 1.0, step=0.1), "n": Integer(0, 5)},
    constraints=["x + y <= 1", "n <= 5 * x"],
)


@pytest.mark.usefixtures("as_without_shape_checks")
def test_every_trial_meets_the_constraints():
    study = study_of(quick(search_space=SPACE))
    for params in run(study, 5, distributions_of(SPACE)):
        SPACE.check(params)


@pytest.mark.usefixtures("as_without_shape_checks")
def test_what_is_enqueued_stays_and_the_rest_follows():
    study = study_of(quick(search_space=SPACE))
    study.enqueue_trial({"n": 5})
    [params] = run(study, 1, distributions_of(SPACE))
    assert params["n"] == 5
    assert SPACE.meets(params)


def test_an_independent_sampler_cannot_meet_constraints():
    with pytest.raises(ValueError, match="cannot meet the constraints of the search space"):
        quick(search_space=SPACE, independent_sampler=RandomSampler())
