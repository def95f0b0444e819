"""Which trials of a study count, and with which outcome.

Outcomes that belong together, or that replace others, are written in three steps: trials that hold
their outcome as an attribute, then one attribute of the study, the mark, that commits them, then
their state and value. The mark alone decides; a process may be killed between any two steps.
"""

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from optuna.study import Study
from optuna.trial import FrozenTrial, TrialState

from airbo.integrations.optuna.attributes import GAVE_UP

STAGED = "airbo:staged"
"""Trial attribute: key and token of the mark with which it counts, and its value."""
REPLACED = "airbo:replaced:"
"""Beginning of the mark of a correction, followed by the number of the trial that was corrected."""


@dataclass(frozen=True)
class Counted:
    """The trials of a study that count now, not to be changed."""

    trials: list[FrozenTrial]
    replacements: dict[int, int]
    """Numbers of trials that were corrected, and of those that count instead."""
    to_finish: list[FrozenTrial]
    """Rows that count and are still running: who wrote them has not finished, or was killed."""

    @classmethod
    def of(cls, study: Study) -> "Counted":
        """Read the trials; rows that are not committed are running, and then none."""
        # First the marks: every trial that one of them commits is there by then.
        marks = study._storage.get_study_user_attrs(study._study_id)
        trials = study._get_trials(deepcopy=False, use_cache=False)
        replacements = {
            int(key.removeprefix(REPLACED)): mark["trial"]
            for key, mark in marks.items()
            if key.startswith(REPLACED)
        }
        current = (t for t in trials if t.number not in replacements)
        found = (_as_it_counts(trial, marks) for trial in current)
        running = (t for t in trials if STAGED in t.user_attrs and not t.state.is_finished())
        to_finish = [trial for trial in running if is_committed(trial, marks)]
        return cls([trial for trial in found if trial is not None], replacements, to_finish)


def is_committed(trial: FrozenTrial, marks: Mapping[str, Any]) -> bool:
    """Say whether a row counts."""
    note = trial.user_attrs[STAGED]
    return bool(marks.get(note["key"], {}).get("token") == note["token"])


def _as_it_counts(trial: FrozenTrial, marks: Mapping[str, Any]) -> FrozenTrial | None:
    if STAGED not in trial.user_attrs:
        return trial
    if not is_committed(trial, marks):
        return None if trial.state.is_finished() else trial
    value = trial.user_attrs[STAGED]["value"]
    state = TrialState.FAIL if value is None else TrialState.COMPLETE
    if trial.state == state and GAVE_UP not in trial.user_attrs:
        return trial
    counted = copy.copy(trial)
    counted.state, counted.value = state, value
    counted.user_attrs = {k: v for k, v in trial.user_attrs.items() if k != GAVE_UP}
    return counted
