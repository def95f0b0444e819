"""The state of an optimizer as JSON: versioned, and free of code."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, is_dataclass
from typing import Any

from airbo.acquisition import OWN
from airbo.optimizer.record import Observation
from airbo.outcomes import outcomes_from_dict, outcomes_to_dict
from airbo.space import Design, Space
from airbo.uncertainty import InputUncertainty, from_dict
from airbo.uncertainty.in_cube import NamedUncertainty, by_columns

VERSION = 2
IN_CODE = "given in code"


@dataclass(frozen=True)
class State:
    """Everything that an optimizer knows, and how it was set up."""

    settings: Mapping[str, Any]
    """The arguments of the optimizer, by name."""
    observations: Sequence[Observation]
    pending: Sequence[Design]
    """Designs that were asked for and not told yet."""
    n_asked: int
    """How often a design was asked for."""

    def to_json(self) -> str:
        """Write the state; settings that are code are marked, not saved."""
        settings = {name: _described(value) for name, value in self.settings.items()}
        data = {
            "airbo_optimizer": VERSION,
            **settings,
            "n_asked": self.n_asked,
            "pending": [*self.pending],
            "observations": [_described_observation(o) for o in self.observations],
        }
        return json.dumps(data, indent=1)

    @classmethod
    def from_json(
        cls, text: str, given: Mapping[str, Any], uncertainties: Mapping[int, NamedUncertainty]
    ) -> "State":
        """Read a state.

        Args:
            text: What ``to_json`` returned.
            given: Settings that replace the saved ones; required for those that are code.
            uncertainties: The same for uncertainties of single observations, by row.
        """
        data = _versioned(text)
        with damage_reported():
            settings = {name: _setting(name, data[name], given) for name in _READERS}
            observations = [
                _observation(settings["space"], row, fields, uncertainties)
                for row, fields in enumerate(data["observations"])
            ]
            pending = [dict(design) for design in data["pending"]]
            return cls(settings, observations, pending, data["n_asked"])


@contextmanager
def damage_reported() -> Iterator[None]:
    """Report every error from a damaged state as one ``ValueError``."""
    try:
        yield
    except (LookupError, TypeError, AttributeError, RuntimeError, ArithmeticError) as error:
        raise ValueError(f"The state of this optimizer is damaged: {error!r}.") from error


def _versioned(text: str) -> dict[str, Any]:
    try:
        data = json.loads(text)
    except (ValueError, RecursionError, TypeError) as error:
        raise ValueError(f"This is not the state of an optimizer: {error}.") from None
    if not isinstance(data, dict) or "airbo_optimizer" not in data:
        raise ValueError("This is not the state of an optimizer.")
    if data["airbo_optimizer"] != VERSION:
        raise ValueError(
            f"This state has version {data['airbo_optimizer']}; this airbo reads version {VERSION}."
        )
    return data


def _described(value: Any) -> Any:
    if isinstance(value, Space):
        return value.to_dict()
    if isinstance(value, dict):
        return outcomes_to_dict(value)
    if isinstance(value, InputUncertainty):
        try:
            return value.to_dict()
        except TypeError:  # it holds a callable
            return IN_CODE
    if is_dataclass(value) and type(value) in _ACQUISITIONS.values():
        return {"kind": type(value).__name__, **asdict(value)}  # type: ignore[arg-type]
    return IN_CODE if callable(value) else value


def _described_observation(o: Observation) -> dict[str, Any]:
    data: dict[str, Any] = {"design": o.design, "outcomes": dict(o.outcomes)}
    if o.infeasible:
        data["infeasible"] = True
    if o.executed:
        data["executed"] = dict(o.executed)
    if o.uncertainty is not None:
        data["uncertainty"] = _described(o.uncertainty)
    return data


def _setting(name: str, saved: Any, given: Mapping[str, Any]) -> Any:
    if name in given:
        return given[name]
    if saved == IN_CODE:
        raise ValueError(
            f"The {name} of this optimizer is code and was not saved: "
            f"give it as from_json(text, {name}=...)."
        )
    return _READERS[name](saved)


def _observation(
    space: Space, row: int, fields: Mapping[str, Any], uncertainties: Mapping[int, NamedUncertainty]
) -> Observation:
    saved = fields.get("uncertainty")
    if row in uncertainties:
        given = uncertainties[row]
    elif saved == IN_CODE:
        raise ValueError(
            f"The uncertainty of observation {row} is code and was not saved: "
            f"give it as from_json(text, uncertainties={{{row}: ...}})."
        )
    else:
        given = _uncertainty(saved)
    uncertainty = None if given is None else by_columns(space, given)
    executed = dict(fields.get("executed", {}))
    design, outcomes = dict(fields["design"]), dict(fields["outcomes"])
    return Observation(design, outcomes, executed, uncertainty, fields.get("infeasible", False))


def _uncertainty(saved: Any) -> InputUncertainty | None:
    return None if saved is None else from_dict(saved)


def _acquisition(saved: Any) -> Any:
    if isinstance(saved, str):
        return saved
    fields = dict(saved)
    return _ACQUISITIONS[fields.pop("kind")](**fields)


def _as_it_is(saved: Any) -> Any:
    return saved


_ACQUISITIONS: dict[str, type] = {kind.__name__: kind for kind in OWN}

_READERS: dict[str, Callable[[Any], Any]] = {
    "space": Space.from_dict,
    "uncertainty": _uncertainty,
    "deployment": _uncertainty,
    "surrogate": _as_it_is,
    "acquisition": _acquisition,
    "seed": _as_it_is,
    "n_initial": _as_it_is,
    "initial": _as_it_is,
    "noise": _as_it_is,
    "outcomes": outcomes_from_dict,
}
