"""What the verbs of a campaign take: each field once, for the command line and for JSON.

A field has a name, a sentence and limits. The command line makes an option of it. The JSON
interface of ``airbo serve`` checks what is sent with it, and describes it as OpenAPI.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from airbo.space.parameters import Categorical, Integer

if TYPE_CHECKING:
    from airbo.lab.file import Settings

Kind = Literal["integer", "number", "boolean", "string", "inputs", "design", "numbers", "outcomes"]
"""``inputs``: values of parameters and environment by name; ``design``: of parameters alone;
``numbers``: of those inputs that are numbers; ``outcomes``: measured numbers by name."""

MOST_AT_ONCE = 20
"""Designs that one call, or one form, can ask for."""
Schema = dict[str, Any]
"""A description of a value, as JSON Schema."""


@dataclass(frozen=True)
class Field:
    """One thing that a verb takes."""

    says: str
    kind: Kind = "boolean"
    least: float | None = None
    most: float | None = None
    """Limits of a number, or of the length of a text."""

    def schema(self, settings: "Settings") -> Schema:
        """Describe it with the names, units and ranges of a campaign file."""
        if self.kind not in ("integer", "number", "boolean", "string"):
            known = self._outcomes(settings) if self.kind == "outcomes" else self._inputs(settings)
            return {"type": "object", "description": self.says, "properties": known,
                    "additionalProperties": False}  # fmt: skip
        ends = ("minLength", "maxLength") if self.kind == "string" else ("minimum", "maximum")
        limits = zip(ends, (self.least, self.most), strict=True)
        found = {name: limit for name, limit in limits if limit is not None}
        return {"type": self.kind, "description": self.says, **found}

    def _outcomes(self, settings: "Settings") -> dict[str, Schema]:
        return {name: {"type": "number"} for name in settings.outcomes}

    def _inputs(self, settings: "Settings") -> dict[str, Schema]:
        space = settings.space if self.kind == "design" else settings.space.whole
        known: dict[str, Schema] = {}
        for name, parameter in space.parameters.items():
            if isinstance(parameter, Categorical):
                if self.kind != "numbers":
                    known[name] = {"enum": list(parameter.choices)}
                continue
            kind = "integer" if isinstance(parameter, Integer) else "number"
            low, high = parameter.range
            known[name] = {"type": kind, "minimum": low, "maximum": high}
            if unit := settings.unit(name):
                known[name]["description"] = unit
        return known


FIELDS: Mapping[str, Field] = {
    # about an experiment
    "trial": Field("The number of the experiment.", "integer", 0),
    "design": Field("A whole design; with a trial, what you set otherwise.", "design"),
    "value": Field("What was measured, where the file has one value.", "number"),
    "outcomes": Field("What was measured, by name.", "outcomes"),
    "executed": Field("What was measured of inputs and environment: NAME=VALUE.", "numbers"),
    "noise": Field("The known standard deviation of a value; of outcomes: NAME=VALUE.", "outcomes"),
    "correct": Field("Replace the earlier report; the rest stays as it was."),
    "again": Field("Another run, although design and value, or the table, are the same."),
    "allow_outside": Field("Designs may lie outside the ranges."),
    "sure": Field("The numbers are right, even if they look wrong."),
    "note": Field("Something to remember about it.", "string", 1),
    "infeasible": Field("It failed because the design cannot be used."),
    "gave_up": Field("The experiment was not run and will not be."),
    "why": Field("The reason, as a note; of an exclusion, for the history.", "string", 1),
    # about designs
    "n": Field("How many designs.", "integer", 1, MOST_AT_ONCE),
    "given": Field("A value known for today, or a parameter to hold: NAME=VALUE.", "inputs"),
    "anywhere": Field("Recommend any design, or only one that was tried. Default: one that was "
                      "tried, unless another one is clearly better."),
    "tolerance": Field("A difference of values that does not matter to you.", "number", 0),
    "settings": Field("Settings; the others stay as recommended.", "inputs"),
    # about the call
    "key": Field("The same key twice counts once.", "string", 1, 100),
    "by": Field("Who signs the change.", "string", 0, 40),
}  # fmt: skip
