"""What is said about an experiment, checked before anything is written."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from airbo.campaign.errors import CampaignError
from airbo.campaign.experiments import Experiment
from airbo.coordinates import NamedUncertainty
from airbo.integrations.optuna import EXECUTED, UNCERTAINTY, describe_uncertainty
from airbo.observed import check_value
from airbo.parameters import Categorical
from airbo.space import Design, Space

SAME = 1e-5
"""Designs that differ by less, in ranges of their parameters, differ by what printing rounds."""


@dataclass(frozen=True)
class Report:
    """What is said about an experiment."""

    value: float | None
    """None if it failed."""
    executed: Mapping[str, Any]
    uncertainty: Any
    """What it was made under, by name; None: as the file says."""

    @classmethod
    def checked(
        cls,
        space: Space,
        value: Any,
        executed: Mapping[str, Any] | None,
        uncertainty: NamedUncertainty,
    ) -> "Report":
        """Refuse values that are no numbers and measured choices."""
        for name in executed or {}:
            if isinstance(space.parameters.get(name), Categorical):
                raise CampaignError(f"executed: {name!r} is a choice, which is always hit exactly.")
        if uncertainty is not None and not isinstance(uncertainty, Mapping):
            raise CampaignError("The uncertainty of an experiment is given by parameter name.")
        try:
            return cls(check_value(value), dict(executed or {}), uncertainty)
        except (ValueError, TypeError) as error:
            raise CampaignError(str(error)) from None

    def attributes(self, under: Any) -> dict[str, Any]:
        """Return the attributes of the trial that holds this report.

        Args:
            under: Description of what the experiment was made under, where the report says nothing.
        """
        own = under if self.uncertainty is None else describe_uncertainty(self.uncertainty)
        executed = {EXECUTED: dict(self.executed)} if self.executed else {}
        return {UNCERTAINTY: own, **executed}

    def agrees(self, experiment: Experiment, fully: bool = False) -> bool:
        """Say whether an experiment has this outcome already.

        Args:
            experiment: What was told before.
            fully: Whether a report that names no measured input says that there is none; otherwise
                it says nothing about it.
        """
        said = self.uncertainty is None or _same(
            describe_uncertainty(self.uncertainty), experiment.uncertainty
        )
        own, known = dict(self.executed), dict(experiment.executed)
        measured = own == known or _same(own, known)
        silent = not self.executed and not fully
        return experiment.value == self.value and said and (measured or silent)


def _same(description: Any, other: Any) -> bool:
    """Say whether two descriptions are the same once they are written as JSON."""
    return json.dumps(description, sort_keys=True) == json.dumps(other, sort_keys=True)


def described(experiment: Experiment) -> str:
    """Say what came of an experiment."""
    return "it failed" if experiment.value is None else f"its value is {experiment.value!r}"


def same_design(space: Space, a: Design, b: Design) -> bool:
    """Say whether two designs are the same but for what printing rounds off."""
    return space.distance(a, b) < SAME
