"""Templates of the pages, the files that they load, and what they need of time and numbers."""

import functools
import gzip
import hashlib
from collections.abc import Sequence
from datetime import datetime
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from airbo import words
from airbo.lab import Experiment
from airbo.lab.events import new_key
from airbo.outcomes import Want

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
    made.globals |= vars(words) | {
        "as_typed": lambda number: "" if number is None else repr(number),
        "asset": asset,
        "clock": clock,
        "new_key": new_key,
        "small_chart": small_chart,
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


def clock(moment: datetime | None) -> str:
    """Write a time of today, or a day and a time; as the clock on the wall shows it."""
    if moment is None:
        return ""
    moment = moment.astimezone()
    if moment.date() == datetime.now().date():
        return moment.strftime("%H:%M")
    return f"{moment.day} {moment.strftime('%b %H:%M')}"


def small_chart(experiments: Sequence[Experiment], name: str, want: Want) -> Any:
    """Place the latest values of an outcome over the numbers of the experiments.

    Failed ones stand on the lower edge.

    Returns:
        The lowest and the highest number in sight; for each experiment itself, ``in`` spec, ``out``
        of it or ``failed``, and where it stands; height and value of each limit; whether any value
        is out of spec. None where there is nothing to compare.
    """
    done = [e for e in experiments if e.outcome == "failed" or name in e.outcomes][-MOST_DOTS:]
    known = [e.outcomes[name] for e in done if name in e.outcomes]
    if len(done) < 2 or not known:
        return None
    bounds = [bound for bound in want.bounds if bound is not None]
    low, high = min(known + bounds), max(known + bounds)
    first = done[0].number
    step = (WIDTH - 2 * EDGE) / (done[-1].number - first)

    def height(value: float) -> float:
        return HEIGHT - EDGE - (HEIGHT - 2 * EDGE) * ((value - low) / (high - low or 1.0))

    dots = []
    for e in done:
        value = e.outcomes.get(name)
        is_out = value is not None and bounds and want.merit(value) < 0
        kind = "failed" if value is None else "out" if is_out else "in"
        y = HEIGHT - EDGE / 2 if value is None else height(value)
        dots.append((e, kind, EDGE + (e.number - first) * step, y))
    lines = [(height(bound), bound) for bound in bounds]
    return low, high, dots, lines, any(kind == "out" for _, kind, *_ in dots)
