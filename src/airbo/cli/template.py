"""The text of a new campaign file."""

import json
from dataclasses import dataclass, field


@dataclass(frozen=True)
class NewParameter:
    """A parameter as the user describes it, not checked yet."""

    name: str
    low: str = ""
    high: str = ""
    unit: str = ""
    choices: tuple[str, ...] = ()
    is_integer: bool = False
    uncertainty: str = ""
    """Its inline table, or nothing if it is hit exactly."""


@dataclass(frozen=True)
class NewCampaign:
    """What a new file says."""

    name: str
    direction: str
    value_name: str
    value_unit: str
    parameters: list[NewParameter] = field(default_factory=list)
    storage: str = ""


def text_of(campaign: NewCampaign) -> str:
    """Write a file with comments that say what else is possible."""
    value = f"name = {quoted(campaign.value_name)}"
    if campaign.value_unit:
        value += f", unit = {quoted(campaign.value_unit)}"
    storage = f"storage = {quoted(campaign.storage)}" if campaign.storage else _STORAGE
    parts = [
        _HEAD.format(name=quoted(campaign.name), direction=quoted(campaign.direction), value=value),
        storage,
        _OPTIONS,
        *map(_parameter, campaign.parameters),
        _TAIL,
    ]
    return "\n".join(parts)


def _parameter(parameter: NewParameter) -> str:
    lines = [f"[parameters.{_key(parameter.name)}]"]
    if parameter.choices:
        lines.append(f"choices = [{', '.join(map(quoted, parameter.choices))}]")
    else:
        kind = ['type = "integer"'] if parameter.is_integer else []
        unit = [f"unit = {quoted(parameter.unit)}"] if parameter.unit else []
        lines += [*kind, f"low = {parameter.low}", f"high = {parameter.high}", *unit]
        lines.append(
            f"uncertainty = {parameter.uncertainty}"
            if parameter.uncertainty
            else '# uncertainty = { kind = "normal", std = 1.0 }    # now it is hit exactly'
        )
    return "\n".join([*lines, ""])


def quoted(text: str) -> str:
    """Write a text as TOML does; its basic strings are JSON's."""
    return json.dumps(text, ensure_ascii=False)


def _key(name: str) -> str:
    is_bare = name.isascii() and name.replace("_", "").replace("-", "").isalnum()
    return name if is_bare else quoted(name)


_HEAD = """\
# A campaign of airbo: which parameters there are, and how badly each is hit.
# `airbo check` says what it understands of this file; `airbo ask` begins.

name = {name}
direction = {direction}               # "maximize" or "minimize" the value
value = {{ {value} }}    # what an experiment measures
"""

_STORAGE = """\
# Where the experiments are kept. By default an SQLite file beside this one. For several machines:
# storage = "postgresql://user@host/database"     # the password is best left to PGPASSWORD"""

_OPTIONS = """\

# seed = 0                   # fixes all choices
# n_initial = 8              # designs spread over the space before the model chooses
# give_up_after_hours = 72   # a design that nobody answers for so long is no longer waited for
# surrogate = "default"      # or "expectation" (the same), "mmd", "ugp", "skl", "erbf", "nominal"
# acquisition = "ucb-random" # or "ucb", "ucb-theory", "ei"

# Parameters. Also possible: log = true, step = 0.5, type = "integer", choices = ["A", "B"].
# An uncertainty is in the unit of its parameter. Kinds: exact, normal (std), uniform (low, high),
# beta (a, b, loc, scale), chi-squared (df, loc, scale), gaussian-mixture (means, covs, weights),
# empirical (file = "log.csv": logged deviations), piecewise, scipy, torch; for two, ring (radius).
"""

_TAIL = """\
# Parameters that are missed together, and how the recommended design will be hit in use:
# [[uncertainty]]
# parameters = ["x", "y"]
# kind = "normal"
# cov = [[0.04, 0.01], [0.01, 0.09]]
#
# [[deployment]]
# parameters = ["x"]
# kind = "uniform"
# low = -0.5
# high = 0.5
"""
