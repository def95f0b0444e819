"""What programs read: experiments, status and answers as plain values, the same from every door.

``airbo ... --json`` prints them, and the JSON interface of ``airbo serve`` sends them.
"""

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from airbo import measures
from airbo.lab.file import Settings
from airbo.lab.record import Experiment, Status
from airbo.measures import InSpec, Measure, Target
from airbo.words import result

if TYPE_CHECKING:
    from airbo.analysis import Outlook
    from airbo.lab.advice import Answer
    from airbo.lab.campaign import Told
    from airbo.optimizer import Recommendation


def experiment_data(settings: Settings, e: Experiment) -> dict[str, Any]:
    """Describe an experiment."""
    return {
        "trial": e.number,
        "design": dict(e.design),
        "outcome": e.outcome,
        "value": e.outcomes.get(settings.value_name),
        **({"outcomes": dict(e.outcomes)} if e.outcomes else {}),
        **({"infeasible": True} if e.infeasible else {}),
        **({"noise": dict(e.noise)} if e.noise else {}),
        "executed": dict(e.executed),
        **({"given": dict(e.given)} if e.given else {}),
        "asked": e.asked,
        "reason": e.reason,
        "told": e.told,
        "by": e.by,
        "excluded": e.excluded,
        "notes": list(e.notes),
    }


def told_data(settings: Settings, told: Sequence["Told"]) -> list[dict[str, Any]]:
    """Describe what telling did."""
    return [
        {**experiment_data(settings, t.experiment), "done": t.done, "changes": list(t.changes)}
        for t in told
    ]


def told_words(settings: Settings, told: "Told") -> str:
    """Say what telling did, in a sentence."""
    e, came = told.experiment, result(told.experiment, settings.units)
    return {
        "told": f"Experiment {e.number}: {came}.",
        "already told": f"Experiment {e.number} was reported before: {came}. Nothing changed.",
        "corrected": f"Experiment {e.number} is corrected: {', '.join(told.changes)}.",
        "added": f"Added as experiment {e.number}: {came}.",
    }[told.done]


def status_data(settings: Settings, now: Status) -> dict[str, Any]:
    """Describe where a campaign stands."""
    return {
        "name": settings.name,
        "ok": now.n_ok,
        "failed": now.n_failed,
        "given_up": now.n_given_up,
        "excluded": now.n_excluded,
        "pending": [experiment_data(settings, e) for e in now.pending],
        "waiting": [{"trial": e.number, "missing": names} for e, names in now.waiting],
        "best_observed": None if now.best is None else experiment_data(settings, now.best),
    }


def recommended_data(best: "Recommendation") -> dict[str, Any]:
    """Describe a design, and what to expect of it."""
    found = {name: asdict(estimate) for name, estimate in best.outcomes.items()}
    return {"design": best.design, "outcomes": found, "holds": best.holds, "reason": best.reason}


def answer_data(settings: Settings, answer: "Answer") -> dict[str, Any]:
    """Describe which design to use, and what goes with it."""
    best = answer.best
    data = recommended_data(best)
    data["caution"] = answer.caution
    if answer.given:
        data["given"] = dict(answer.given)
    if answer.is_about_one_value:
        data |= {
            "mean": best.mean,
            "std": best.std,
            "unit": unit_of_measure(settings.measure, settings.value_unit),
            "measure": measures.to_text(settings.measure),
        }
        if answer.outlook is not None:
            data["outlook"] = _outlook_data(answer.outlook)
        if best.capability is not None:
            data["capability"] = asdict(best.capability)
    return {**data, **answer.handover.to_dict()}


def _outlook_data(outlook: "Outlook") -> dict[str, Any]:
    """Describe what further experiments can bring."""
    found = ("tolerance", "probability", "n_values", "spread", "n_confirmations")
    return {
        "gains": {str(n): gain for n, gain in outlook.gains.items()},
        **{name: getattr(outlook, name) for name in found},
        "luckiest": None if outlook.luckiest is None else asdict(outlook.luckiest),
    }


def unit_of_measure(measure: Measure, unit: str | None) -> str | None:
    """Return the unit of what counts: a share has none, a squared distance the square.

    >>> unit_of_measure(InSpec(0, 1), "mm"), unit_of_measure(Target(1.0), "mm")
    (None, 'mm²')
    """
    if isinstance(measure, InSpec):
        return None
    return f"{unit}²" if unit and isinstance(measure, Target) else unit
