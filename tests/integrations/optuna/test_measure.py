"""A study that is decided by a measure."""

import pytest

from airbo import uncertainty as unc
from airbo.acquisition import UCB
from airbo.integrations.optuna import recommend, robust_trial
from airbo.measures import CVaR
from tests.integrations.optuna.common import LINE, quick, run, study_of
from tests.test_run import peak_and_plateau


@pytest.mark.parametrize("direction", ["maximize", "minimize"])
@pytest.mark.parametrize(("measure", "best"), [(None, 0.2), (CVaR(0.9), 0.7)], ids=repr)
def test_a_measure_decides_what_a_study_tries_and_what_it_answers(direction, measure, best):
    sign = 1 if direction == "maximize" else -1
    used = {"deployment": {"x": unc.Uniform(-0.1, 0.1)}, "measure": measure, "search_space": LINE}
    used |= {"surrogate": "default", "acquisition": UCB(0), "n_startup_trials": 15}
    study = study_of(quick(**used), direction)
    last = run(study, 16, LINE, lambda params: sign * peak_and_plateau(params["x"]))[-1]
    assert last["x"] == pytest.approx(best, abs=0.15)
    assert recommend(study).design["x"] == pytest.approx(best, abs=0.05)
    assert robust_trial(study).params["x"] == pytest.approx(best, abs=0.1)


def test_a_constraint_cannot_be_kept_more_often_than_can_be_estimated():
    with pytest.raises(ValueError, match=r"constraint_probability must not exceed 0\.999"):
        quick(constraint_probability=0.9999)
