"""Rerun the measurements of README and docs; ``benchmark`` and ``choose`` are the main ones."""

import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import torch
import typer
from rich.console import Console
from rich.table import Table

from experiments.benchmark import costs as costs_of_runs
from experiments.benchmark.plan import (
    CANDIDATES,
    CHOOSING,
    FIRST_LOOK,
    TOO_SLOW,
    WITHOUT_SLIPS,
)
from experiments.benchmark.report import close_enough
from experiments.benchmark.runs import BENCHMARK, CHOOSE, SLIP, Choice
from experiments.harness import pages, runner
from experiments.harness.experiment import Experiment, Task
from experiments.harness.places import IMAGES, RESULTS
from experiments.harness.store import DamagedResultsError, Store, UnknownCodeError
from experiments.paper.optimizations import PAPER
from experiments.registry import EXPERIMENTS, KNOWN, find
from experiments.subjects.truths import write as write_truths

app = typer.Typer(add_completion=False, no_args_is_help=True, help=__doc__)
console = Console()

Name = Annotated[str, typer.Argument(help="An experiment of `list`, or `all`.")]
Results = Annotated[Path, typer.Option(help="Folder of the results.")]
Repeats = Annotated[
    int | None, typer.Option(min=1, help="How many repeats; by default as in the paper.")
]
Quick = Annotated[bool, typer.Option("--quick", help="A small version that touches everything.")]
Jobs = Annotated[int, typer.Option(min=1, help="Processes, one thread each.")]
Only = Annotated[
    list[str] | None,
    typer.Option(help="Run only the method of this name, or this case; may be given twice."),
]
Estimate = Annotated[
    bool, typer.Option("--estimate", help="Say what the missing runs will cost, and end.")
]
Images = Annotated[Path, typer.Option(help="Folder of the pictures.")]


@app.command("list")
def list_experiments(results: Results = RESULTS) -> None:
    """List the experiments and how many of their repeats are finished."""
    table = Table("name", "in the paper", "what", "repeats done")
    for experiment in KNOWN.values():
        tasks = experiment.tasks(experiment.repeats)
        done = sum(map(Store(results).has, tasks))
        table.add_row(experiment.name, experiment.paper, experiment.title, f"{done}/{len(tasks)}")
    console.print(table)


@app.command()
def run(
    name: Name,
    repeats: Repeats = None,
    jobs: Jobs = 1,
    only: Only = None,
    quick: Quick = False,
    results: Results = RESULTS,
) -> None:
    """Run what has no result yet. You may stop a run at any moment and continue it later."""
    for experiment in _chosen(name):
        _run(experiment, repeats, jobs, only, quick, results)


def _run(
    experiment: Experiment,
    repeats: int | None,
    jobs: int,
    only: list[str] | None,
    quick: bool,
    results: Path,
) -> None:
    signal.signal(signal.SIGTERM, _as_ctrl_c)
    store = Store(results)
    tasks = _only(only, experiment.tasks(_repeats(experiment, repeats, quick), quick))
    console.print(f"[bold]{experiment.name}[/bold]: {experiment.title}")
    try:
        failed = runner.run(experiment, tasks, store, jobs)
    except KeyboardInterrupt:
        kept = sum(map(store.has, tasks))
        console.print(
            f"Stopped; {kept} of {len(tasks)} repeats are kept. The same command goes on."
        )
        raise typer.Exit(130) from None
    for outcome in failed:
        console.print(f"[red]failed:[/red] {runner.describe(outcome.task)}")
    if failed:
        raise typer.Exit(1)


@app.command()
def plot(
    name: Name,
    repeats: Repeats = None,
    quick: Quick = False,
    results: Results = RESULTS,
    images: Images = IMAGES / "paper",
) -> None:
    """Draw the pictures and write the tables of the results so far."""
    for experiment in _chosen(name):
        _plot(experiment, repeats, quick, results, images)


def _plot(
    experiment: Experiment, repeats: int | None, quick: bool, results: Path, images: Path
) -> None:
    store = Store(results)
    tasks = experiment.tasks(_repeats(experiment, repeats, quick), quick)
    found = store.results(tasks)
    if not found:
        console.print(
            f"{experiment.name}: no results in {results}; "
            f"make some with `python -m experiments run {experiment.name}`."
        )
        raise typer.Exit(1)
    missing = len(tasks) - len(found.each)
    note = f"\n{missing} of {len(tasks)} repeats are missing.\n" if missing else ""
    text = (
        f"# {experiment.title}\n\n{experiment.summary(found)}\n{note}\n"
        f"Commits: {', '.join(store.commits(tasks))}. "
        f"Made by `python -m experiments run {experiment.name}`.\n"
    )
    path = results / f"{experiment.name}.md"
    path.write_text(text, encoding="utf-8")
    console.print(text, markup=False, soft_wrap=True)
    for picture in experiment.plot(found, images):
        console.print(f"wrote {picture}", soft_wrap=True)
    if results == RESULTS and not quick:
        for name, (page, excerpt) in experiment.excerpts(found).items():
            pages.insert(name, excerpt, page)
            console.print(f"put {name} into {page}", soft_wrap=True)


def _choose(
    experiment: Choice,
    repeats: int | None,
    jobs: int,
    only: list[str] | None,
    quick: bool,
    results: Path,
) -> None:
    """Run a first look at all candidates, and more repeats of those that are close."""
    look = min(FIRST_LOOK, repeats or FIRST_LOOK)
    fast = [method for method in CANDIDATES if method not in TOO_SLOW]
    for cases, methods in ((WITHOUT_SLIPS, CANDIDATES), (CHOOSING, fast)):
        _run(experiment.only(cases, methods), look, jobs, only, quick, results)
    found = Store(results).results(experiment.tasks(look, quick))
    kept = fast if only else close_enough(found, fast)
    _run(experiment.only(CHOOSING, kept), repeats, jobs, only, quick, results)


def _add_command(experiment: Experiment, text: str, run: Callable[..., None] = _run) -> None:
    def command(
        repeats: Repeats = None,
        jobs: Jobs = 1,
        only: Only = None,
        quick: Quick = False,
        estimate: Estimate = False,
        results: Results = RESULTS,
        images: Images = IMAGES / "paper",
    ) -> None:
        if estimate:
            _estimate(experiment, repeats, only, quick, results)
            return
        run(experiment, repeats, jobs, only, quick, results)
        _plot(experiment, repeats, quick, results, images)

    app.command(experiment.name, help=text)(command)


_add_command(
    CHOOSE, "Compare the candidates for the default by the rule of benchmark/plan.py.", _choose
)
_add_command(BENCHMARK, "Compare airbo with what others use today.")
_add_command(SLIP, "Measure what slips cost, in the score of the study with these landscapes.")
_add_command(PAPER, "Rerun the paper's five optimizations and say which of its claims hold.")


def _estimate(
    experiment: Experiment, repeats: int | None, only: list[str] | None, quick: bool, results: Path
) -> None:
    tasks = _only(only, experiment.tasks(_repeats(experiment, repeats, quick), quick))
    missing = [task for task in tasks if not Store(results).has(task)]
    console.print(costs_of_runs.estimate(missing), markup=False, soft_wrap=True)


@app.command()
def costs(
    name: Annotated[str, typer.Argument(help="choose, benchmark, slip or paper.")],
    only: Only = None,
) -> None:
    """Measure what runs cost: ``--estimate`` of the other commands uses it."""
    known = {e.name: e for e in (CHOOSE, BENCHMARK, SLIP, PAPER)}
    if name not in known:
        console.print(f"There are costs of {', '.join(known)}, not of {name!r}.", markup=False)
        raise typer.Exit(2)
    torch.set_num_threads(1)
    experiment = known[name]
    tasks = _only(only, experiment.tasks(1))
    for case, method, cost in costs_of_runs.measure(tasks, dict(experiment.methods)):
        console.print(f"{case}: {method}: {cost:.2g} s", markup=False, highlight=False)


@app.command()
def truths(
    names: Annotated[list[str] | None, typer.Argument(help="Cases; all by default.")] = None,
) -> None:
    """Work out the best designs of cases again and write ``subjects/truths.json``."""
    for name, truth in write_truths(names).items():
        console.print(f"{name}: {truth['value']:.6g}", highlight=False)


@app.command()
def pack(results: Results = RESULTS) -> None:
    """Fold finished repeats from the spool into one packed file per experiment."""
    done = Store(results).pack()
    for name, (n_added, n_all) in done.items():
        console.print(f"{name}: {n_added} repeats added, {n_all} in all")
    if not done:
        console.print("The spool is empty: there is nothing to pack.")


def main() -> None:
    """Run a command; name the file if one is damaged."""
    try:
        app()
    except (DamagedResultsError, UnknownCodeError) as error:
        console.print(str(error), markup=False, soft_wrap=True)
        sys.exit(1)


def _as_ctrl_c(*_: object) -> None:
    """End as with Ctrl-C, so that the processes of the repeats end too."""
    raise KeyboardInterrupt


def _chosen(name: str) -> list[Experiment]:
    if name == "all":
        return list(EXPERIMENTS.values())
    try:
        return [find(name)]
    except ValueError as error:
        console.print(str(error), markup=False)
        raise typer.Exit(2) from None


def _only(names: list[str] | None, tasks: list[Task]) -> list[Task]:
    """Leave out the tasks of other methods, and those of other cases."""
    labels = {_method(t) for t in tasks}
    cases = {t.config.get("case", t.experiment) for t in tasks}
    for name in names or ():
        if name not in labels | cases:
            known = ", ".join(sorted(labels | cases))
            console.print(f"There is no method or case {name!r}; there are {known}.", markup=False)
            raise typer.Exit(2)
    wanted = set(names or ())
    methods, chosen = wanted & labels or labels, wanted & cases or cases
    return [
        t for t in tasks if _method(t) in methods and t.config.get("case", t.experiment) in chosen
    ]


def _method(task: Task) -> str:
    return str(task.config.get("method", task.label))


def _repeats(experiment: Experiment, given: int | None, quick: bool) -> int:
    if given is not None:
        return given
    return min(2, experiment.repeats) if quick else experiment.repeats


if __name__ == "__main__":
    main()
