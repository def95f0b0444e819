"""Rerun the measurements of README and docs: ``python -m experiments NAME``."""

import signal
import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from experiments.figures.readme import draw_benchmark
from experiments.harness import pages, runner
from experiments.harness.experiment import Experiment, Task
from experiments.harness.places import IMAGES, RESULTS
from experiments.harness.store import DamagedResultsError, Store, UnknownCodeError
from experiments.registry import KNOWN, PAPERS
from experiments.subjects.truths import write as write_truths

app = typer.Typer(add_completion=False, no_args_is_help=True, help=__doc__)
console = Console()

Results = Annotated[Path, typer.Option(help="Folder of the results.")]
Repeats = Annotated[
    int | None, typer.Option(min=1, help="How many repeats; by default as in the plan.")
]
Jobs = Annotated[int, typer.Option(min=1, help="Processes, one thread each.")]
Only = Annotated[
    list[str] | None,
    typer.Option(help="Run only the method of this name, or this case; may be given twice."),
]
Images = Annotated[Path, typer.Option(help="Folder of the pictures.")]


@app.command("list")
def list_experiments(results: Results = RESULTS) -> None:
    """List the experiments, how many of their runs are finished, and what they cost."""
    table = Table("name", "in the paper", "what", "runs done", "hours spent", "hours to go")
    for experiment in KNOWN.values():
        tasks = experiment.tasks(experiment.repeats)
        done, spent, left = Store(results).hours(tasks)
        to_go = "?" if left is None else f"{left:.1f}"
        about = (experiment.name, experiment.paper, experiment.title)
        table.add_row(*about, f"{done}/{len(tasks)}", f"{spent:.1f}", to_go)
    console.print(table)


def _run(
    experiment: Experiment,
    repeats: int | None,
    jobs: int,
    only: list[str] | None,
    results: Path,
) -> None:
    """Run what has no result yet; pack what is finished, also after Ctrl-C."""
    signal.signal(signal.SIGTERM, _as_ctrl_c)
    store = Store(results)
    tasks = _only(only, experiment.tasks(repeats or experiment.repeats))
    console.print(f"[bold]{experiment.name}[/bold]: {experiment.title}")
    try:
        failed = runner.run(experiment, tasks, store, jobs)
    except KeyboardInterrupt:
        kept = sum(map(store.has, tasks))
        _pack(store, experiment.name)
        console.print(f"Stopped; {kept} of {len(tasks)} runs are kept. The same command goes on.")
        raise typer.Exit(130) from None
    _pack(store, experiment.name)
    for outcome in failed:
        console.print(f"[red]failed:[/red] {runner.describe(outcome.task)}")
    if failed:
        raise typer.Exit(1)


def _pack(store: Store, name: str | None) -> None:
    try:
        done = store.pack(name)
    except UnknownCodeError as error:
        console.print(str(error), markup=False, soft_wrap=True)
        return
    for packed, (n_added, n_all) in done.items():
        console.print(f"{packed}: {n_added} runs added, {n_all} in all")


def _plot(experiment: Experiment, repeats: int | None, results: Path, images: Path) -> None:
    """Draw the pictures and write the tables of the results so far."""
    store = Store(results)
    tasks = experiment.tasks(repeats or experiment.repeats)
    found = store.results(tasks)
    if not found:
        console.print(
            f"{experiment.name}: no results in {results}; "
            f"make some with `python -m experiments {experiment.name}`."
        )
        raise typer.Exit(1)
    missing = len(tasks) - len(found.each)
    note = f"\n{missing} of {len(tasks)} runs are missing.\n" if missing else ""
    text = (
        f"# {experiment.title}\n\n{experiment.summary(found)}\n{note}\n"
        f"Commits: {', '.join(store.commits(tasks))}. "
        f"Made by `python -m experiments {experiment.name}`.\n"
    )
    path = results / f"{experiment.name}.md"
    path.write_text(text, encoding="utf-8")
    console.print(text, markup=False, soft_wrap=True)
    for picture in experiment.plot(found, images):
        console.print(f"wrote {picture}", soft_wrap=True)
    if results == RESULTS:
        for name, (page, excerpt) in experiment.excerpts(found).items():
            pages.insert(name, excerpt, page)
            console.print(f"put {name} into {page}", soft_wrap=True)


def _add_command(name: str, text: str, members: list[Experiment]) -> None:
    """Add a command that runs experiments and shows what they found."""

    def command(
        repeats: Repeats = None,
        jobs: Jobs = 1,
        only: Only = None,
        results: Results = RESULTS,
        images: Images = IMAGES / "paper",
    ) -> None:
        for experiment in members:
            _run(experiment, repeats, jobs, only, results)
            _plot(experiment, repeats, results, images)

    app.command(name, help=text)(command)


for _experiment in KNOWN.values():
    _add_command(_experiment.name, f"{_experiment.title} ({_experiment.paper}).", [_experiment])
_add_command("all", "All figures and tables of the paper.", list(PAPERS.values()))


@app.command()
def plot(
    name: Annotated[str, typer.Argument(help="An experiment of `list`, or `readme`.")],
    repeats: Repeats = None,
    results: Results = RESULTS,
    images: Images = IMAGES / "paper",
) -> None:
    """Draw the pictures and write the tables of the results so far; run nothing."""
    if name == "readme":
        found = Store(results).results(KNOWN["benchmark"].tasks(KNOWN["benchmark"].repeats))
        if not found:
            console.print("The picture of the README needs `python -m experiments benchmark`.")
            raise typer.Exit(1)
        console.print(f"wrote {draw_benchmark(found, images)}", soft_wrap=True)
        return
    if name not in KNOWN:
        console.print(f"There is no experiment {name!r}; there are {', '.join(KNOWN)}.")
        raise typer.Exit(2)
    _plot(KNOWN[name], repeats, results, images)


@app.command()
def truths(
    names: Annotated[list[str] | None, typer.Argument(help="Cases; all by default.")] = None,
) -> None:
    """Work out the best designs of cases again and write ``subjects/truths.json``."""
    for name, truth in write_truths(names).items():
        console.print(f"{name}: {truth['value']:.6g}", highlight=False)


@app.command()
def pack(results: Results = RESULTS) -> None:
    """Fold finished runs from the spool into one packed file per experiment."""
    _pack(Store(results), None)


def main() -> None:
    """Run a command; name the file if one is damaged."""
    try:
        app()
    except DamagedResultsError as error:
        console.print(str(error), markup=False, soft_wrap=True)
        sys.exit(1)


def _as_ctrl_c(*_: object) -> None:
    """End as with Ctrl-C, so that the processes of the repeats end too."""
    raise KeyboardInterrupt


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


if __name__ == "__main__":
    main()
