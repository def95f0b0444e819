"""Find the robust optimum of the double-peak problem, with and without knowing P_x.

    python examples/demo.py

runs the default surrogate and a plain Gaussian process from the same initial designs, and ends
with a table and a picture.
"""

import argparse
import time
import warnings
from dataclasses import dataclass
from pathlib import Path

import torch
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from airbo.optimizer import Optimizer, TooLittleDataWarning
from airbo.problems import DoublePeak
from airbo.space import Space

LABELS = {"default": "airbo, knows P", "nominal": "plain GP on designs"}
COLORS = {"default": "#0072B2", "nominal": "#555555"}


@dataclass(frozen=True)
class Run:
    """A finished optimization and the quality of its answer."""

    surrogate: str
    optimizer: Optimizer
    design: float
    expected: float
    regret: float
    seconds: float


def optimize(problem: DoublePeak, surrogate: str, budget: int, seed: int, bar: Progress) -> Run:
    """Run one surrogate; the same seed gives the same initial designs and the same draws."""
    optimizer = Optimizer(
        Space({"x": (0.0, 1.0)}), problem.uncertainty, surrogate=surrogate, seed=seed, n_initial=10
    )
    draws = torch.Generator().manual_seed(seed)
    task = bar.add_task(LABELS[surrogate], total=budget)
    start = time.perf_counter()
    for _ in range(budget):
        design = optimizer.ask()
        X = torch.tensor([[design["x"]]], dtype=torch.float64)
        optimizer.tell(design, problem.observe(X, draws).item())
        bar.advance(task)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TooLittleDataWarning)
        x = optimizer.recommend().design["x"]
    X = torch.tensor([[x]], dtype=torch.float64)
    seconds = time.perf_counter() - start
    return Run(
        surrogate, optimizer, x, problem.expected(X).item(), problem.regret(X).item(), seconds
    )


def summary(problem: DoublePeak, runs: list[Run]) -> Table:
    """Tabulate the answers and the truth."""
    best = problem.robust_optimum
    table = Table(title="Double peak under beta(0.4, 0.2) of width 0.1: what each surrogate found")
    for column in ("surrogate", "design found", "expected value there", "robust regret", "seconds"):
        table.add_column(column, justify="left" if column == "surrogate" else "right")
    for run in runs:
        numbers = (run.design, run.expected, run.regret)
        table.add_row(LABELS[run.surrogate], *(f"{v:.4f}" for v in numbers), f"{run.seconds:.0f}")
    table.add_row("true robust optimum", f"{best.design.item():.4f}", f"{best.value:.4f}", "0", "")
    return table


def picture(problem: DoublePeak, runs: list[Run], path: Path) -> None:
    """Draw function, expectation, posterior, designs tried and the answers."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    X = torch.linspace(0, 1, 400, dtype=torch.float64).unsqueeze(-1)
    x = X.squeeze(-1).numpy()
    figure, axes = plt.subplots(1, len(runs), figsize=(12, 4.6), sharey=True, layout="constrained")
    for axis, run in zip(axes, runs, strict=True):
        color = COLORS[run.surrogate]
        predicted = run.optimizer.predict([{"x": v} for v in x.tolist()])
        mean, std = predicted["mean"].to_numpy(), predicted["std"].to_numpy()
        axis.plot(x, problem(X), color="0.75", lw=1, label="f, set exactly")
        axis.plot(x, problem.expected(X), "k--", lw=1.5, label="E f(x'), what we want")
        axis.fill_between(x, mean - 2 * std, mean + 2 * std, color=color, alpha=0.15, lw=0)
        axis.plot(x, mean, color=color, lw=2, label="posterior mean ± 2 std")
        tried = run.optimizer.observations
        axis.plot(tried["x"], tried["value"], ".", color="0.35", ms=5, label="observed values")
        axis.axvline(problem.robust_optimum.design.item(), color="k", lw=0.8, ls=":")
        axis.plot(run.design, run.expected, "*", color=color, ms=18, mec="k", label="its answer")
        axis.set_title(f"{LABELS[run.surrogate]}: regret {run.regret:.2f}")
        axis.set_xlabel("design x")
        axis.legend(frameon=False, fontsize=8)
    axes[0].set_ylabel("value")
    figure.savefig(path, dpi=120)
    plt.close(figure)


def main() -> None:
    """Run the demonstration from the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--budget", type=int, default=50, help="experiments per surrogate")
    parser.add_argument("--seed", type=int, default=0, help="seed of designs and draws")
    parser.add_argument(
        "--picture", type=Path, default=Path("demo.png"), help="file of the picture"
    )
    args = parser.parse_args()
    torch.set_num_threads(1)  # the matrices are small: more threads only wait for each other
    console, problem = Console(), DoublePeak()
    console.print(
        "You ask for a design x. It lands near x or near x + 0.1, and you do not see where. "
        "Which design is best [i]in expectation[/i]?"
    )
    columns = (TextColumn("{task.description:20}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, TimeRemainingColumn(), console=console) as bar:
        runs = [optimize(problem, s, args.budget, args.seed, bar) for s in LABELS]
    console.print(summary(problem, runs))
    picture(problem, runs, args.picture)
    console.print(
        f"Picture: {args.picture}. One seed proves little: docs/benchmark.md has many, "
        "with their spread."
    )


if __name__ == "__main__":
    main()
