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
    DESIGN_FIELD,
    design_fields,
    environment_fields,
    executed_fields,
    given_fields,
    missing_fields,
    note_fields,
    set_fields,
    value_fields,
    why_fields,
)
from airbo.lab.serve.profile import Curve, Profile
from airbo.outcomes import Want
from airbo.space.parameters import Categorical

WIDTH, HEIGHT, EDGE = 400.0, 140.0, 8.0
"""The small chart of values, in its own units."""
MOST_DOTS = 200
"""Values that the small chart shows: the latest ones."""
STATIC = {
    "serve.css": ("airbo.lab", "serve/static/serve.css", "text/css"),
    "serve.js": ("airbo.lab", "serve/static/serve.js", "text/javascript"),
    "icon.svg": ("airbo.lab", "serve/static/icon.svg", "image/svg+xml"),
    "sections.css": ("airbo.lab", "report/static/sections.css", "text/css"),
    "charts.js": ("airbo.lab", "report/static/charts.js", "text/javascript"),
    "plotly.js": ("plotly", "package_data/plotly.min.js", "text/javascript"),
}
"""Files that pages load: package, place in it and kind; ``airbo.lab.report`` would load PyTorch."""


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
        "environment_fields": environment_fields,
        "executed_fields": executed_fields,
        "given_fields": given_fields,
        "design_fields": design_fields,
        "note_fields": note_fields,
        "missing_fields": missing_fields,
        "set_fields": set_fields,
        "why_fields": why_fields,
        "asset": asset,
        "small_chart": small_chart,
        "profile_charts": profile_charts,
        "slider": slider,
        "measured": measured,
        "label": words.label,
        "with_unit": words.with_unit,
    }
    return made


def asset(name: str) -> str:
    """Return the address of a file; it changes with the file, so that browsers can keep it."""
    return f"/static/{asset_bytes(name)[0]}/{name}"


@functools.cache
def asset_bytes(name: str) -> tuple[str, bytes, bytes]:
    """Return the digest of a file of the package, or of Plotly; its bytes; and these packed."""
    content = (files(STATIC[name][0]) / STATIC[name][1]).read_bytes()
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
    want: Want

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
    return [Quantity(n, settings.units[n] or "", want) for n, want in settings.outcomes.items()]


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
    kind: str
    """``in`` spec, ``out`` of it, or ``failed``."""


@dataclass(frozen=True)
class SmallChart:
    """The latest values of one outcome, in the order of the experiments."""

    caption: str
    low: str
    high: str
    dots: Sequence[Dot]
    limits: Sequence[tuple[float, str]]
    """Height and words of each limit that is in sight."""


def small_chart(what: Quantity, experiments: Sequence[Experiment]) -> SmallChart | None:
    """Place values in the order of the experiments; failed ones stand on the lower edge."""
    done = [e for e in experiments if e.outcome == "failed" or what.of(e) is not None]
    done = done[-MOST_DOTS:]
    known = [value for e in done if (value := what.of(e)) is not None]
    if len(done) < 2 or not known:
        return None
    bounds = [bound for bound in what.want.bounds if bound is not None]
    low, high = min(known + bounds), max(known + bounds)
    step = (WIDTH - 2 * EDGE) / (len(done) - 1)

    def height(value: float) -> float:
        return HEIGHT - EDGE - (HEIGHT - 2 * EDGE) * ((value - low) / (high - low or 1.0))

    dots = []
    for i, e in enumerate(done):
        value, text = what.of(e), f"{e.number}: {what.words(e) or e.outcome}"
        y = HEIGHT - EDGE / 2 if value is None else height(value)
        is_out = value is not None and bounds and what.want.merit(value) < 0
        kind = "failed" if value is None else "out" if is_out else "in"
        dots.append(Dot(e.number, text, EDGE + i * step, y, kind))
    is_any_out = any(dot.kind == "out" for dot in dots)
    legend = f" (dashed{'; squares are outside' if is_any_out else ''})" if bounds else ""
    return SmallChart(
        f"{what.name} of experiments {done[0].number} to {done[-1].number}: "
        f"{what.want.better(what.unit)}{legend}.",
        words.with_unit(low, what.unit),
        words.with_unit(high, what.unit),
        dots,
        [(height(bound), words.with_unit(bound, what.unit)) for bound in bounds],
    )


@dataclass(frozen=True)
class Slider:
    """How a slider moves one parameter of a profile."""

    name: str
    """Of the field that it fills in."""
    value: str
    low: float
    high: float
    is_log: bool
    is_whole: bool


def slider(settings: Settings, profile: Profile, name: str) -> Slider | None:
    """Return the slider of a parameter; None for a choice."""
    around = dict(zip(settings.space.environment, settings.space.typical, strict=True))
    parameter = settings.space.whole.parameters[name]
    value = {**around, **profile.design}[name]
    if isinstance(parameter, Categorical):
        return None
    is_whole = isinstance(value, int)
    return Slider(DESIGN_FIELD + name, repr(value), *parameter.range, parameter.log, is_whole)


@dataclass(frozen=True)
class CurveChart:
    """A curve of a profile in its own units: 200 wide and 100 high."""

    curve: Curve
    band: str
    line: str
    bars: Sequence[tuple[float, float, float, float]]
    """Of each choice: where it stands, the ends of its interval, and its expected value."""
    x: float
    limits: Sequence[float]
    low: str
    high: str


def profile_charts(profile: Profile, outcome: str) -> list[CurveChart]:
    """Place all curves of an outcome on one scale, so that they can be compared."""
    own = [curve for curve in profile.curves if curve.outcome == outcome]
    low = min(min(curve.low) for curve in own)
    high = max(max(curve.high) for curve in own)

    def height(value: float) -> float:
        return 96 - 92 * (value - low) / (high - low or 1.0)

    def across(curve: Curve, position: float) -> float:
        return 15 + 170 * position if curve.is_choice else 200 * position

    def path(curve: Curve, values: Sequence[float]) -> list[str]:
        pairs = zip(curve.positions, values, strict=True)
        return [f"{across(curve, x):.1f},{height(y):.1f}" for x, y in pairs]

    def bars(curve: Curve) -> list[tuple[float, float, float, float]]:
        rows = zip(curve.positions, curve.low, curve.high, curve.mean, strict=True)
        return [(across(curve, x), height(a), height(b), height(m)) for x, a, b, m in rows]

    return [
        CurveChart(
            curve,
            " ".join([*path(curve, curve.high), *reversed(path(curve, curve.low))]),
            " ".join(path(curve, curve.mean)),
            bars(curve) if curve.is_choice else [],
            across(curve, curve.here),
            [height(limit) for limit in curve.limits if low <= limit <= high],
            words.number(low, 3),
            words.number(high, 3),
        )
        for curve in own
    ]
