"""The report: what was found, how sure that is, and what it is based on."""

import base64
import datetime
import gzip
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from plotly.offline import get_plotlyjs

from airbo import words
from airbo.analysis import words as analysis
from airbo.lab.errors import StorageError
from airbo.lab.report import along, answer, limits, records, trust
from airbo.lab.report.findings import Findings
from airbo.lab.tables import write_whole
from airbo.measures.capability import CPK_IS
from airbo.observed import OK, STATUS
from airbo.optimizer import Optimizer
from airbo.outcomes import Bounds

if TYPE_CHECKING:
    from airbo.lab import Record

OF_DESIGN = ("front", "limits", "window", "budget", "environment")
OF_MODEL = ("trust", "importance", "along", "maps")
"""Keys of the sections that need a recommendation, in their order; see ``sections``."""


def write_report(
    optimizer: Optimizer,
    path: str | os.PathLike[str],
    *,
    title: str = "Report",
    units: Mapping[str, str | None] | None = None,
    date: datetime.date | str | None = None,
    numbers: Sequence[int] | None = None,
    record: "Record | None" = None,
    given: Mapping[str, Any] | None = None,
    plausible: Mapping[str, Bounds] | None = None,
) -> Path:
    """Write one HTML page that says what was found; it works offline and needs no other file.

    Args:
        optimizer: What to report on; it is not changed.
        path: The file to write. It is replaced only when the whole page is ready.
        title: The heading of the page.
        units: Units of the outcomes by name.
        date: What the page is dated; by default it has no date.
        numbers: What people call the experiments by, in the order in which they were told; by
            default they are counted from 1.
        record: What people recorded in a campaign: failures, notes and every change.
        given: What is known of the environment, by name: the report is about such a day.
        plausible: Between which values outcomes can lie, by name.

    Returns:
        The path.

    Raises:
        StorageError: If it cannot be written.
    """
    target = Path(path)
    if target.is_dir():
        raise StorageError(f"A report is a file, but {str(target)!r} is a folder.")
    if not target.parent.is_dir():
        raise StorageError(f"There is no folder {str(target.parent)!r} to write a report to.")
    findings = Findings(optimizer, units, numbers, given, plausible=plausible)
    found = sections(findings, record)
    write_whole(target, whole_page(optimizer, (html for _, html in found), title, date))
    return target


def sections(findings: Findings, record: "Record | None" = None) -> Iterator[tuple[str, str]]:
    """Yield key and HTML of each section of a report as soon as it is worked out.

    The answer is the first; a section that has nothing to say is left out.

    Args:
        findings: What is known.
        record: What people recorded in a campaign.
    """
    keys = ["answer"]
    keys += [] if findings.missing else [*OF_DESIGN, *OF_MODEL]
    keys += ["progress"] if len(findings.optimizer.observations) else []
    about: dict[str, tuple[Any, ...]] = {key: (findings,) for key in keys}
    about["experiments"] = findings, record
    if record is not None:
        about["history"] = (record,)
    about["settings"] = (findings,)
    for key, what in about.items():
        if html := section(key, *what):
            yield key, html


def section(key: str, *about: Any) -> str:
    """Return the HTML of one section; empty if it has nothing to say."""
    return str(getattr(_templates().get_template("sections.html").module, key)(*about)).strip()


def whole_page(
    optimizer: Optimizer,
    sections: Iterable[str],
    title: str,
    date: datetime.date | str | None = None,
) -> str:
    """Return the page of a report from the HTML of its sections."""
    status = optimizer.observations[STATUS]
    n_failed, n_pending = int((status != OK).sum()), len(optimizer.pending)
    said = [words.plural(len(status), "experiment")]
    said += [f"{n_failed} of them failed"] if n_failed else []
    said += [f"{n_pending} pending"] if n_pending else []
    said += [str(date)] if date is not None else []
    subtitle = " · ".join([*said, f"airbo {version('airbo')}"])
    body = Markup("\n".join(sections))  # noqa: S704 - the templates have escaped it
    return _templates().get_template("page.html").render(title=title, subtitle=subtitle, body=body)


@cache
def _templates() -> Environment:
    """Return the templates; everything that is put into them is escaped."""
    made = Environment(
        loader=PackageLoader("airbo.lab.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    for module in (words, analysis, answer, limits, along, trust, records):
        made.globals |= vars(module)
    made.globals |= {"json": _json, "static": _static, "plotly": _plotly, "CPK_IS": CPK_IS}
    return made


def _json(figure: Any) -> Markup:
    """Return a chart as JSON; no tag in it may end the script element."""
    return Markup(figure.to_json().replace("<", "\\u003c"))  # noqa: S704


@cache
def _static(name: str) -> Markup:
    return Markup((files(__package__) / "static" / name).read_text(encoding="utf-8"))  # noqa: S704


@cache
def _plotly() -> str:
    """Return Plotly, packed: a browser unpacks it in a moment."""
    return base64.b64encode(gzip.compress(get_plotlyjs().encode(), 9, mtime=0)).decode()
