"""Measure the surrogates: ``python -m benchmarks.run`` (all), ``--quick`` (a minute)."""

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TimeElapsedColumn

from benchmarks import record, table, timing
from benchmarks.accuracy import references
from benchmarks.cases import CASES
from benchmarks.methods import METHODS
from benchmarks.plot import error_against_cost

TIMED = ("beta", "ring + normal")
"""Cases whose posteriors are timed: one column and ten columns."""
N_PAIRS = {True: 2**15, False: 2**19}
N_ROUNDS = {True: 3, False: 7}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer rounds, coarser truth")
    quick = parser.parse_args().quick
    torch.set_num_threads(1)
    where = record.provenance()

    results = {"errors": measure_errors(quick), "seconds": measure_times(quick)}
    path = record.store("quick" if quick else "surrogates", where, results)
    text = report(results, where)
    path.with_suffix(".md").write_text(text, encoding="utf-8")
    draw(results, path.with_suffix(".png"))
    console = Console()
    console.print(text, markup=False, soft_wrap=True)
    console.print(f"Stored in {path.parent.name}/{path.stem}.json, .md and .png", markup=False)


def progress() -> Progress:
    return Progress(SpinnerColumn(), *Progress.get_default_columns(), TimeElapsedColumn())


def measure_errors(quick: bool) -> dict[str, dict[str, float]]:
    """Return the largest kernel error per method and column; and how well the truth is known."""
    methods = [m for m in METHODS if m.estimator is not None and not (quick and m.slow)]
    errors: dict[str, dict[str, float]] = {m.name: {} for m in methods} | {"truth ±": {}}
    with progress() as bar:
        task = bar.add_task("kernel errors", total=2 * len(CASES))
        for reference in references(CASES, N_PAIRS[quick], lambda: bar.advance(task)):
            column = f"{reference.case.name}, l {reference.lengthscale}"
            errors["truth ±"][column] = reference.doubt
            for method in methods:
                assert method.estimator is not None
                errors[method.name][column] = reference.error(method.estimator)
    return errors


def measure_times(quick: bool) -> dict[str, dict[str, float]]:
    """Return seconds per setting and method."""
    settings = [
        timing.Setting(case, n, joint)
        for case in CASES
        if case.name in TIMED
        for joint in (True, False)
        for n in (10, 50)
    ]
    seconds = {}
    with progress() as bar:
        task = bar.add_task("", total=len(settings))
        for setting in settings:
            seconds[setting.label] = timing.seconds(
                setting,
                timing.methods_for(setting, quick),
                N_ROUNDS[quick],
                lambda name, label=setting.label: bar.update(task, description=f"{label}: {name}"),
            )
            bar.advance(task)
    return seconds


def report(results: Mapping[str, Any], where: Mapping[str, Any]) -> str:
    """Put ratios and errors side by side, one row per method."""
    errors, seconds = results["errors"], results["seconds"]
    ratios = {label: timing.ratios(times) for label, times in seconds.items()}
    columns = list(errors["truth ±"])
    names = [m.name for m in METHODS if any(m.name in r for r in ratios.values())]
    rows = [
        [name]
        + [table.ratio(r.get(name)) for r in ratios.values()]
        + [table.error(errors.get(name, {}).get(c)) for c in columns]
        for name in [*names, "truth ±"]
    ]
    header = ["", *(f"time, {label}" for label in ratios), *(f"error, {c}" for c in columns)]
    return (
        "# Surrogates: cost and accuracy\n\n"
        "Time: processor time of the posterior mean and variance at 512 designs that were not seen "
        "before, as a multiple of BoTorch's SingleTaskGP on the same data; medians of "
        "interleaved rounds; – was left out because it takes minutes.\n"
        "Error: largest |exp(-MMD²) - truth| between eight designs, at the default length scale "
        "(0.3 √d) and at l = 0.05, in the unit cube.\n"
        "The last row says how well the truth is known.\n\n"
        f"{table.markdown(header, rows)}\n\n{record.describe(where)}\n"
    )


def draw(results: Mapping[str, Any], path: Path) -> None:
    """Plot the worse of the two errors of each timed case against the time of the same case."""
    panels = {}
    for name in TIMED:
        label = f"{name}, t-batch, n = 10"
        costs = timing.ratios(results["seconds"][label])
        errors = {
            method: max(error for column, error in by_column.items() if column.startswith(name))
            for method, by_column in results["errors"].items()
            if method in costs
        }
        panels[f"{label}, 512 designs"] = (errors, costs)
    error_against_cost(panels, path)


if __name__ == "__main__":
    main()
