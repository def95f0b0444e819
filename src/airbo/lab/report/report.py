"""The report: what was found, how sure that is, and what it is based on."""

import datetime
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airbo import words
from airbo.lab.report.along import Slice, along_section, maps_section
from airbo.lab.report.answer import answer_section, front_section
from airbo.lab.report.environment import environment_section
from airbo.lab.report.findings import Findings
from airbo.lab.report.limits import budget_section, limits_section, window_section
from airbo.lab.report.page import Section, page
from airbo.lab.report.records import (
    experiments_section,
    history_section,
    progress_section,
    settings_section,
)
from airbo.lab.report.trust import importance_section, trust_section
from airbo.observed import OK, STATUS
from airbo.optimizer import Optimizer

if TYPE_CHECKING:
    from airbo.lab import Record


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

    Returns:
        The path.
    """
    target = Path(path)
    if target.is_dir():
        raise IsADirectoryError(f"A report is a file, but {str(target)!r} is a folder")
    if not target.parent.is_dir():
        raise FileNotFoundError(f"There is no folder {str(target.parent)!r} to write a report to.")
    shown = sections(Findings(optimizer, units, numbers, given), record)
    _replace(target, whole_page(optimizer, (section.html() for section in shown), title, date))
    return target


def whole_page(
    optimizer: Optimizer,
    sections: Iterable[str],
    title: str,
    date: datetime.date | str | None = None,
) -> str:
    """Return the page of a report from the HTML of its sections."""
    return page(title, _subtitle(optimizer, date), sections)


def sections(findings: Findings, record: "Record | None" = None) -> Iterator[Section]:
    """Return the sections of a report, each as soon as it is worked out, the answer first.

    Args:
        findings: What is known.
        record: What people recorded in a campaign.
    """
    yield answer_section(findings)
    if not findings.missing:
        yield from _some(
            front_section(findings),
            limits_section(findings),
            window_section(findings),
            budget_section(findings),
            environment_section(findings),
        )
        yield trust_section(findings)
        yield from _some(importance_section(findings))
        slices = [Slice(o, name) for o in findings.parts for name in findings.space.names]
        yield along_section(findings, slices)
        yield from _some(maps_section(findings, slices))
    if len(findings.optimizer.observations):
        yield progress_section(findings)
    yield from _some(experiments_section(findings, record))
    if record is not None:
        yield from _some(history_section(record))
    yield settings_section(findings)


def _some(*sections: Section | None) -> Iterator[Section]:
    return (section for section in sections if section is not None)


def _subtitle(optimizer: Optimizer, date: datetime.date | str | None) -> str:
    status = optimizer.observations[STATUS]
    n_failed, n_pending = int((status != OK).sum()), len(optimizer.pending)
    parts = [words.plural(len(status), "experiment")]
    parts += [f"{n_failed} of them failed"] if n_failed else []
    parts += [f"{n_pending} pending"] if n_pending else []
    parts += [str(date)] if date is not None else []
    return " · ".join([*parts, f"airbo {version('airbo')}"])


def _replace(target: Path, text: str) -> None:
    draft = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        with draft.open("w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())  # else a power cut may leave an empty page under the new name
        draft.replace(target)
    finally:
        draft.unlink(missing_ok=True)
