"""Measure speed, memory, accuracy: ``python -m experiments.speed``; ``--quick``: in a minute."""

import argparse
import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import matplotlib
import torch
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TimeElapsedColumn

from experiments.harness import record
from experiments.harness.places import RESULTS
from experiments.speed import (
    accuracy,
    asking,
    curves,
    everyday,
    fitting,
    growth,
    measured_ask,
    memory,
    plot,
    posterior,
)
from experiments.speed.excerpt import excerpt, insert
from experiments.speed.report import page
from experiments.speed.targets import PUBLISHED_SETTING, ratios

SECTIONS: dict[str, Callable[[bool, Progress], Any]] = {
    "additive": posterior.additive,
    "per parameter": posterior.per_parameter,
    "relative": posterior.relative,
    "samples": posterior.samples,
    "varying": posterior.varying,
    "itself": posterior.itself,
    "estimators": posterior.estimators,
    "errors": accuracy.measure,
    "fits": fitting.measure,
    "fits per parameter": fitting.per_parameter,
    "asks": asking.measure,
    "everyday": everyday.measure,
    "measures": measured_ask.measure,
    "memory": memory.measure,
    "growth": growth.measure,
    "curves": curves.measure,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer settings and rounds")
    parser.add_argument(
        "--report", action="store_true", help="make page and pictures of what is stored"
    )
    parser.add_argument(
        "--only",
        nargs="+",
        metavar="SECTION",
        choices=SECTIONS,
        help="measure these again and keep the other stored numbers",
    )
    options = parser.parse_args()
    torch.set_num_threads(1)
    matplotlib.use("agg")
    name = "quick" if options.quick else "speed"
    path = RESULTS / f"{name}.json"
    where, known = record.provenance(), {}
    if options.report or options.only:
        known = json.loads(path.read_text(encoding="utf-8"))
        where = known["provenance"]
    if not options.report:
        sections = options.only or [*SECTIONS]
        if options.only:
            where["again"] = where.get("again", {}) | dict.fromkeys(
                sections, record.provenance()["commit"]
            )
        known = {**known, "provenance": where, **measure(sections, options.quick)}
        text = json.dumps(known, indent=1, ensure_ascii=False)
        path.write_text(f"{text}\n", encoding="utf-8")
    publish(name, known)


def progress() -> Progress:
    return Progress(SpinnerColumn(), *Progress.get_default_columns(), TimeElapsedColumn())


def measure(sections: Iterable[str], quick: bool) -> dict[str, Any]:
    with progress() as bar:
        results = {name: SECTIONS[name](quick, bar) for name in sections}
    return json.loads(json.dumps(results))  # as it will be read


def publish(name: str, stored: Mapping[str, Any]) -> None:
    """Write the page and the pictures beside the numbers, and the targets into the docs."""
    path = RESULTS / f"{name}.md"
    text = page(stored, stored["provenance"], quick=name == "quick")
    path.write_text(text, encoding="utf-8")
    plot.time_against_size(stored["curves"], path.with_suffix(".png"))
    draw_errors(stored, path.with_name(f"{name}_errors.png"))
    if name != "quick":
        insert(excerpt(stored, stored["provenance"]))
    console = Console()
    console.print(text, markup=False, soft_wrap=True)
    console.print(f"Stored in {path.parent.name}/{name}.json, .md and .png", markup=False)


def draw_errors(results: Mapping[str, Any], path: Path) -> None:
    """Plot the worst error of two cases against the time of the same case."""
    panels = {}
    for case in ("beta", "ring + normal"):
        label = PUBLISHED_SETTING.replace("beta", case)
        costs = ratios(results["estimators"][label])
        settings = [e for place, e in results["errors"].items() if place.startswith(f"{case}, ")]
        errors = {m: max(e[m] for e in settings) for m in costs if m in settings[0]}
        panels[f"{label}, 512 designs"] = (errors, costs)
    plot.error_against_cost(panels, path)


if __name__ == "__main__":
    main()
