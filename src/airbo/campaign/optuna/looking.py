"""A read-only view of a study for tools such as Optuna's dashboard: its trials as they count."""

import copy
from collections.abc import Container
from typing import Any

from optuna.storages import BaseStorage
from optuna.study import Study, StudyDirection
from optuna.study._frozen import FrozenStudy
from optuna.trial import FrozenTrial, TrialState

from airbo.campaign.optuna.counting import Counted


class AsItCounts(BaseStorage):
    """One study, with its trials as they count, under the numbers that people use; read-only."""

    def __init__(self, study: Study) -> None:
        """Show a study."""
        self._study = study
        self._storage = study._storage

    def get_all_trials(
        self,
        study_id: int,
        deepcopy: bool = True,
        states: Container[TrialState] | None = None,
    ) -> list[FrozenTrial]:
        """Return the trials that a model may use, and those that failed or are pending."""
        counted = Counted.of(self._study)
        shown = [_numbered(trial, counted) for trial in counted.told]
        found = [t for t in shown if states is None or t.state in states]
        return sorted(found, key=lambda trial: trial.number)

    def get_trial(self, trial_id: int) -> FrozenTrial:
        """Return one trial."""
        found = [t for t in self.get_all_trials(0) if t._trial_id == trial_id]
        if not found:
            raise KeyError(f"No trial with the id {trial_id} counts.")
        return found[0]

    def get_all_studies(self) -> list[FrozenStudy]:
        """Return the one study."""
        own = self._study._study_id
        return [s for s in self._storage.get_all_studies() if s._study_id == own]

    def get_study_id_from_name(self, study_name: str) -> int:
        """Ask the storage."""
        return self._storage.get_study_id_from_name(study_name)

    def get_study_name_from_id(self, study_id: int) -> str:
        """Ask the storage."""
        return self._storage.get_study_name_from_id(study_id)

    def get_study_directions(self, study_id: int) -> list[StudyDirection]:
        """Ask the storage."""
        return self._storage.get_study_directions(study_id)

    def get_study_user_attrs(self, study_id: int) -> dict[str, Any]:
        """Ask the storage."""
        return self._storage.get_study_user_attrs(study_id)

    def get_study_system_attrs(self, study_id: int) -> dict[str, Any]:
        """Ask the storage."""
        return self._storage.get_study_system_attrs(study_id)

    def _refuse(self, *args: Any, **kwargs: Any) -> Any:
        """Refuse every change."""
        raise PermissionError("This storage is read-only.")

    create_new_study = delete_study = create_new_trial = _refuse
    set_study_user_attr = set_study_system_attr = set_trial_param = _refuse
    set_trial_state_values = set_trial_intermediate_value = _refuse
    set_trial_user_attr = set_trial_system_attr = _refuse


def _numbered(trial: FrozenTrial, counted: Counted) -> FrozenTrial:
    """Return a trial under the number that people use."""
    shown = copy.copy(trial)
    shown.number = counted.number(trial.number)
    return shown
