"""What a report rests on: parameters, how they are hit, and the settings of the optimizer."""

from airbo import __version__, words
from airbo.optimizer.record import EXECUTED_COLUMN
from airbo.optimizer.surrogate import SURROGATES
from airbo.report.findings import Findings
from airbo.report.page import Page


def add_settings(page: Page, findings: Findings) -> None:
    """Add parameters, how they are hit, and how the optimizer was set up."""
    page.section("Settings")
    optimizer, space = findings.optimizer, findings.space
    differs = optimizer.deployment != optimizer.uncertainty
    header = ["parameter", "values", "how it is hit" + (" in the experiments" if differs else "")]
    header += ["how it is hit in use"] if differs else []
    header += ["lands, 95 of 100 times"] if len(findings.known) else []
    rows = []
    for name, parameter in space.parameters.items():
        row = [name, words.choices(parameter), words.hit(space, optimizer.uncertainty, name)]
        row += [words.hit(space, optimizer.deployment, name)] if differs else []
        row += [_lands(findings, name)] if len(findings.known) else []
        rows.append(row)
    page.table(header, rows)
    page.table(["setting", ""], _setting_rows(findings))


def _lands(findings: Findings, name: str) -> str:
    if name not in findings.uncertain:
        return "on the design"
    low, high = map(words.number, findings.executed_interval(name))
    return words.with_unit(f"{low} to {high}", words.unit_of(findings.parameter(name)))


def _setting_rows(findings: Findings) -> list[list[str]]:
    optimizer, table = findings.optimizer, findings.optimizer.observations
    measured = [column for column in table.columns if column.startswith(EXECUTED_COLUMN)]
    n_measured = int(table[measured].notna().any(axis=1).sum()) if measured else 0
    rows = [
        ["values are to be", "large" if findings.sign > 0 else "small"],
        ["experiments", f"{len(table)}, {len(findings.known)} of them with a value"],
        ["pending", str(len(optimizer.pending))],
        ["surrogate", surrogate_name(findings)],
        ["acquisition", _code(optimizer.acquisition)],
        ["initial designs", f"{optimizer.n_initial}, {optimizer.initial}"],
        ["seed", str(optimizer.seed)],
        ["airbo", __version__],
    ]
    if n_measured:
        rows.insert(3, ["experiments with a measured executed input", str(n_measured)])
    if findings.n_outside:
        rows.insert(3, ["experiments outside the ranges", str(findings.n_outside)])
    return rows


def surrogate_name(findings: Findings) -> str:
    """Name the surrogate, and say which one the default is."""
    if findings.optimizer.surrogate != "default":
        return _code(findings.optimizer.surrogate)
    names = [n for n, s in SURROGATES.items() if s is SURROGATES["default"]]
    return f"default: {names[-1]}"


def _code(setting: object) -> str:
    if isinstance(setting, str):
        return setting
    return getattr(setting, "__name__", None) or repr(setting)
