"""The state of an optimizer as JSON: versioned, and free of code."""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any

from airbo.acquisition import OWN
from airbo.observed import INFEASIBLE, OK
from airbo.optimizer.reading import Row
from airbo.optimizer.record import History, Observation
from airbo.outcomes import outcomes_from_dict, outcomes_to_dict
from airbo.space import Space
from airbo.uncertainty import InputUncertainty, from_dict
from airbo.uncertainty.in_cube import NamedUncertainty

VERSION = 2
IN_CODE = "given in code"


@dataclass(frozen=True)
class Saved:
    """What a text holds: how an optimizer was set up, and its record."""

    settings: Mapping[str, Any]
    """The arguments of the optimizer, by name."""
    rows: Sequence[tuple[Row, NamedUncertainty]]
    """Experiments in the order in which they were told, each with its own uncertainty, if any."""
    pending: Sequence[Mapping[str, Any]]
    n_asked: int


def to_json(settings: Mapping[str, Any], history: History) -> str:
    """Write settings and record; settings that are code are marked, not saved."""
    data = {
        "airbo_optimizer": VERSION,
        **{name: _described(value) for name, value in settings.items()},
        "outcomes": outcomes_to_dict(settings["outcomes"]),
        "n_asked": history.n_asked,
        "pending": [_described_observation(o) for o in history.pending],
        "observations": [_described_observation(o) for o in history.observations],
    }
    return json.dumps(data, indent=1)


def from_json(
    text: str, given: Mapping[str, Any], uncertainties: Mapping[int, NamedUncertainty]
) -> Saved:
    """Read a state.

    Args:
        text: What ``to_json`` returned.
        given: Settings that replace the saved ones; required for those that are code.
        uncertainties: The same for uncertainties of single observations, by row.
    """
    data = _versioned(text)
    with damage_reported():
        settings = {name: _setting(name, data[name], given) for name in _READERS}
        rows = [_row(i, fields, uncertainties) for i, fields in enumerate(data["observations"])]
        return Saved(settings, rows, [*data["pending"]], data["n_asked"])


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
    """Return what JSON can hold; of what is code, that it is."""
    if isinstance(value, Space):
        return value.to_dict()
    if isinstance(value, InputUncertainty):
        try:
            return value.to_dict()
        except TypeError:  # it holds a callable
            return IN_CODE
    if type(value) in OWN:
        return {"kind": type(value).__name__, **asdict(value)}
    return IN_CODE if callable(value) else value


def _described_observation(o: Observation) -> dict[str, Any]:
    """Return what is known of an experiment; what is empty or false stays out."""
    return {"outcomes": {}} | {name: _described(v) for name, v in vars(o).items() if v}


def _setting(name: str, saved: Any, given: Mapping[str, Any]) -> Any:
    # what is passed counts; what is code has to be passed
    if name in given:
        return given[name]
    if saved == IN_CODE:
        raise ValueError(
            f"The {name} of this optimizer is code and was not saved: "
            f"give it as from_json(text, {name}=...)."
        )
    read = _READERS[name]
    return saved if read is None else read(saved)


def _row(
    i: int, fields: Mapping[str, Any], uncertainties: Mapping[int, NamedUncertainty]
) -> tuple[Row, NamedUncertainty]:
    # a design without outcomes has failed, or cannot be used
    saved = fields.get("uncertainty")
    if saved == IN_CODE and i not in uncertainties:
        raise ValueError(
            f"The uncertainty of observation {i} is code and was not saved: "
            f"give it as from_json(text, uncertainties={{{i}: ...}})."
        )
    uncertainty = uncertainties[i] if i in uncertainties else _uncertainty(saved)
    status = INFEASIBLE if fields.get("infeasible", False) else OK
    outcomes, executed = dict(fields["outcomes"]) or None, dict(fields.get("executed", {}))
    noise = dict(fields.get("noise", {}))
    return Row("", fields["design"], outcomes, executed, noise, status), uncertainty


def _uncertainty(saved: Any) -> InputUncertainty | None:
    return None if saved is None else from_dict(saved)


def _space(saved: Any) -> Space:
    # laws of the environment are uncertainties, of which a space knows nothing
    rows = saved["parameters"]
    laws = [{"law": from_dict(row["law"])} if "law" in row else {} for row in rows]
    parameters = [row | law for row, law in zip(rows, laws, strict=True)]
    return Space.from_dict({**saved, "parameters": parameters})


def _acquisition(saved: Any) -> Any:
    if isinstance(saved, str):
        return saved
    fields, kinds = dict(saved), {kind.__name__: kind for kind in OWN}
    return kinds[fields.pop("kind")](**fields)


_READERS: dict[str, Any] = {
    "space": _space,
    "uncertainty": _uncertainty,
    "deployment": _uncertainty,
    "surrogate": None,
    "acquisition": _acquisition,
    "seed": None,
    "n_initial": None,
    "noise": None,
    "outcomes": outcomes_from_dict,
}
"""What a setting is read with; None: it is plain."""
