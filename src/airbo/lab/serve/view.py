"""What the pages show of an experiment and of the campaign, in words and numbers for people."""

import functools
import gzip
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from airbo import words
from airbo.lab import Experiment, Settings
from airbo.lab.events import new_key
from airbo.lab.serve.forms import (
    design_fields,
    executed_fields,
    note_fields,
    set_fields,
    value_fields,
    why_fields,
)

WIDTH, HEIGHT, EDGE = 600.0, 150.0, 10.0
"""The small chart of all values, in its own units."""


def environment() -> Environment:
    """Return the templates; everything that is put into them is escaped."""
    made = Environment(
        loader=PackageLoader("airbo.lab.serve"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.tests["has"] = lambda numbers, number: number in numbers
    made.globals |= {
        "clock": clock,
        "new_key": new_key,
        "rows": design_rows,
        "result": words.result,
        "value_fields": value_fields,
        "executed_fields": executed_fields,
        "design_fields": design_fields,
        "note_fields": note_fields,
        "set_fields": set_fields,
        "why_fields": why_fields,
        "asset": asset,
        "dots": dots,
        "measured": measured,
        "with_unit": words.with_unit,
    }
    return made


def asset(name: str) -> str:
    """Return the address of a file; it changes with the file, so that browsers can keep it."""
    return f"/static/{asset_bytes(name)[0]}/{name}"


@functools.cache
def asset_bytes(name: str) -> tuple[str, bytes, bytes]:
    """Return the digest of a file of the package, or of Plotly; its bytes; and these packed."""
    own = files("airbo.lab.serve") / "static" / name
    place = files("plotly") / "package_data" / "plotly.min.js" if name == "plotly.js" else own
    content = place.read_bytes()
    return hashlib.sha256(content).hexdigest()[:12], content, gzip.compress(content, 6)


def design_rows(settings: Settings, design: Any) -> list[tuple[str, str, str]]:
    """Return name, value and unit of each parameter."""
    return [
        (name, words.value(p, design[name]).removesuffix(settings.unit(name)).strip(), unit)
        for name, p in settings.space.parameters.items()
        for unit in [settings.unit(name)]
    ]


@dataclass(frozen=True)
class Quantity:
    """One of the outcomes that experiments measure."""

    name: str
    unit: str
    wanted: str
    """What is good, in words."""

    def of(self, e: Experiment) -> float | None:
        """Return what an experiment measured of it."""
        return e.outcomes.get(self.name)

    def words(self, e: Experiment) -> str:
        """Write it with its unit; nothing if it was not measured."""
        value = self.of(e)
        return "" if value is None else words.with_unit(value, self.unit)

    def bare(self, e: Experiment) -> str:
        """Write it without its unit."""
        value = self.of(e)
        return "" if value is None else words.number(value, 5)


def measured(settings: Settings) -> list[Quantity]:
    """Return what experiments measure."""
    return [
        Quantity(name, settings.units[name] or "", want.better)
        for name, want in settings.outcomes.items()
    ]


def clock(moment: datetime | None) -> str:
    """Write a time of today, or a day and a time; as the clock on the wall shows it."""
    if moment is None:
        return ""
    moment = moment.astimezone()
    if moment.date() == datetime.now().date():
        return moment.strftime("%H:%M")
    return f"{moment.day} {moment.strftime('%b %H:%M')}"


@dataclass(frozen=True)
class Dot:
    """An experiment in the small chart."""

    number: int
    text: str
    x: float
    y: float
    failed: bool


def dots(what: Quantity, experiments: Sequence[Experiment]) -> list[Dot]:
    """Place all values in the order of the experiments; failed ones stand on the lower edge."""
    done = [e for e in experiments if e.outcome == "failed" or what.of(e) is not None]
    known = [value for e in done if (value := what.of(e)) is not None]
    low, high = min(known, default=0.0), max(known, default=0.0)
    span = high - low or 1.0
    step = (WIDTH - 2 * EDGE) / max(1, len(done) - 1)
    return [
        Dot(
            e.number,
            f"{e.number}: {what.words(e) or e.outcome}",
            EDGE + i * step,
            HEIGHT - EDGE - (HEIGHT - 2 * EDGE) * ((value - low) / span)
            if value is not None
            else HEIGHT - EDGE / 2,
            value is None,
        )
        for i, e in enumerate(done)
        for value in [what.of(e)]
    ]
