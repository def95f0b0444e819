"""User attributes of trials: executed inputs, uncertainties and abandoned experiments."""

import json
import math
from collections.abc import Collection, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from optuna.distributions import CategoricalDistribution
from optuna.trial import FrozenTrial

from airbo.uncertainty import from_dict
from airbo.words import nearest

if TYPE_CHECKING:
    from airbo.uncertainty import InputUncertainty
    from airbo.uncertainty.in_cube import ByName

DESIGN = "airbo:design"
"""System attribute: the design of a trial, set as soon as it is chosen."""
STAMP = "airbo:stamp"
"""Who reported a trial of a campaign and when; see :class:`airbo.campaign.history.Stamp`."""
EXECUTED = "executed"
"""Measured parameters of the executed input, by name."""
UNCERTAINTY = "airbo:uncertainty"
"""The uncertainty of this trial, if it differs from the sampler's; see describe_uncertainty."""
OUTCOMES = "outcomes"
"""Measured outcomes by name, where a trial has more than the values of its objectives."""
UNITS = "airbo:units"
"""Units in which a campaign was told the outcomes, by name; that of Optuna's value is ``value``."""
INFEASIBLE_DESIGN = "airbo:infeasible"
"""A failed trial failed because its design cannot be used."""
FIXED = "fixed_params"
"""System attribute in which Optuna keeps the parameters of enqueued trials."""
GAVE_UP = "airbo:gave_up"
"""The experiment was not run and will not be, so the failed trial says nothing about its design."""


def describe_uncertainty(uncertainty: "ByName | None") -> list[dict[str, Any]]:
    """Write an uncertainty by name in a form that fits into JSON, and so into a user attribute."""
    return [
        {"parameters": list(group(names)), "uncertainty": u.to_dict()}
        for names, u in (uncertainty or {}).items()
    ]


def read_uncertainty(description: Any) -> "dict[str | tuple[str, ...], InputUncertainty]":
    """Return the uncertainty by name that :func:`describe_uncertainty` described."""
    try:
        return dict(_understood(json.dumps(description)))
    except (TypeError, KeyError) as error:
        raise ValueError(
            "An uncertainty by name must be a list of dicts with 'parameters' and 'uncertainty', "
            f"got {description!r}."
        ) from error


@lru_cache(maxsize=32)
def _understood(text: str) -> "dict[str | tuple[str, ...], InputUncertainty]":
    """Read a description; thousands of trials may have the same one."""
    return {tuple(row["parameters"]): from_dict(row["uncertainty"]) for row in json.loads(text)}


def check_by_name(what: str, given: Any) -> "ByName":
    """Return an uncertainty by name; raise ``TypeError`` if it is not one."""
    from airbo.uncertainty import InputUncertainty

    if not isinstance(given, Mapping):
        raise TypeError(
            f"{what} must be a dict from names of parameters, or tuples of names, to "
            f"uncertainties, got {given!r}."
        )
    for names, uncertainty in given.items():
        is_group = isinstance(names, tuple) and all(isinstance(name, str) for name in names)
        if not (isinstance(names, str) or (is_group and names)):
            raise TypeError(f"{what}: expected a name or a tuple of names, got {names!r}.")
        if not isinstance(uncertainty, InputUncertainty):
            raise TypeError(
                f"The {what} of {names!r} must be an airbo.uncertainty, got {uncertainty!r}."
            )
    return dict(given)


def within(uncertainty: "ByName", names: Collection[str]) -> "ByName":
    """Keep the uncertainties of the named parameters only.

    Raises:
        ValueError: If ``names`` holds a part of a group.
    """
    for own in map(group, uncertainty):
        missing = [name for name in own if name not in names]
        if missing and len(missing) < len(own):
            raise ValueError(
                f"The parameters {list(own)} have a joint uncertainty, but the model cannot choose "
                f"{missing} together with the others: either it has only one value, or not every "
                "complete trial has it with the same range."
            )
    return {own: u for own, u in uncertainty.items() if group(own)[0] in names}


def group(names: str | tuple[str, ...]) -> tuple[str, ...]:
    """Return the names of a group of parameters, which may be a single one."""
    return (names,) if isinstance(names, str) else tuple(names)


def uncertainty_of(trial: FrozenTrial, names: Collection[str]) -> "ByName | None":
    """Return the uncertainty of some parameters of a trial; None: that of the sampler."""
    description = trial.user_attrs.get(UNCERTAINTY)
    if description is None:
        return None
    try:
        return within(read_uncertainty(description), names)
    except ValueError as error:
        raise ValueError(f"User attribute {UNCERTAINTY!r}: {error}") from error


def executed_of(trial: FrozenTrial) -> dict[str, Any]:
    """Return the measured parameters of the executed input; None, NaN and inf are left out.

    Raises:
        ValueError: If it is not a dict from names of the trial's parameters to numbers.
    """
    measured = trial.user_attrs.get(EXECUTED, {})
    if not isinstance(measured, Mapping):
        raise ValueError(_refusal(f"expected a dict of numbers by name, got {measured!r}"))
    for name, value in measured.items():
        if name not in trial.params:
            there = list(trial.params)
            raise ValueError(_refusal(f"unknown parameter {name!r}; there are {there}"))
        if isinstance(trial.distributions[name], CategoricalDistribution) or value is None:
            continue
        if not _is_number(value):
            raise ValueError(_refusal(f"{name!r} must be a number, got {value!r}"))
    return {name: value for name, value in measured.items() if _is_measured(value)}


def outcomes_of(trial: FrozenTrial) -> dict[str, float]:
    """Return the measured outcomes by name; what is not a number is left out."""
    found = trial.user_attrs.get(OUTCOMES)
    named = found if isinstance(found, Mapping) else {}
    return {name: value for name, value in named.items() if _is_number(value)}


def odd_outcomes(trial: FrozenTrial, known: Collection[str]) -> dict[str, str]:
    """Say by name what of the outcomes that a user set cannot be used."""
    found = trial.user_attrs.get(OUTCOMES, {})
    if STAMP in trial.user_attrs:  # a campaign checks them, and may have had other names
        return {}
    if not isinstance(found, Mapping):
        return {"": f"expected a dict of numbers by name, got {found!r}."}
    unknown = {n: f"unknown outcome {n!r}{nearest(n, known)}" for n in found if n not in known}
    odd = {n: v for n, v in found.items() if v is not None and not _is_number(v)}
    return {n: f"{n!r} must be a number, got {v!r}." for n, v in odd.items()} | unknown


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_measured(value: Any) -> bool:
    return value is not None and not (isinstance(value, float) and not math.isfinite(value))


def _refusal(what: str) -> str:
    return f"User attribute {EXECUTED!r}: {what}."
