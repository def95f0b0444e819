"""How well the library's surrogates predict the expected values of the RKHS function."""

from pathlib import Path
from statistics import mean, stdev
from typing import Any

from experiments.harness import table
from experiments.harness.draw import FUNCTION, picture
from experiments.harness.experiment import Experiment, Results, Step, Task
from experiments.harness.palette import colour, shown
from experiments.paper import posteriors as post
from experiments.subjects.methods import Method

METHODS = (
    Method("NominalGP", "nominal"),
    Method("MMDGP", "mmd, the library's prior"),
    Method("UGP", "ugp, the library's prior"),
    Method("ERBFGP", "erbf"),
    Method("SKLGP", "skl"),
    Method("ExpectationGP", "expectation"),
)
CASES = ("normal", "varying beta", "step chi²")
N_OBSERVATIONS = (10, 30)
SCORES = ("rmse", "coverage")


class Expectations(Experiment):
    """All surrogates as the library builds them, each on the same observations."""

    name = "expectations"
    paper = "beyond the paper"
    title = "Predicting expected values"
    repeats = 30

    def tasks(self, repeats: int, quick: bool = False) -> list[Task]:
        """List all uncertainties and sizes of all repeats; one task has all surrogates."""
        methods = {method.label: method.config() for method in METHODS}
        return [
            Task(
                self.name,
                f"{case}, n = {n}",
                seed,
                {"case": case, "n": n, "n_grid": 51 if quick else 401, "methods": methods},
                len(methods),
            )
            for case in CASES
            for n in (N_OBSERVATIONS[:1] if quick else N_OBSERVATIONS)
            for seed in range(repeats)
        ]

    def run(self, task: Task, step: Step) -> dict[str, Any]:
        """Fit every surrogate to the same observations."""
        case, n_grid = task.config["case"], task.config["n_grid"]
        expected, found = post.expected_on_grid(case, n_grid), {}
        for label, config in task.config["methods"].items():
            given = {"n": task.config["n"], **config}
            model = post.fitted(given, post.problem(case), task.seed)
            scores = post.believed(model, post.grid(n_grid)).scores(expected)
            found[label] = {name: scores[name] for name in SCORES}
            step(len(found), task.n_steps)
        return found

    def summary(self, results: Results) -> str:
        """Tabulate errors and coverage."""
        names = [method.label for method in METHODS]
        rows = [
            [label, *(_cell(*scores(results, label, name)) for name in names)]
            for label in results.labels
        ]
        n_seeds = len(results.of(results.labels[0]))
        return (
            "RMSE against the true expectation of the RKHS function: mean ± standard error over "
            f"{n_seeds} seeds; in brackets, how much of [0, 1] the 95% band covers.\n\n"
            f"{table.markdown(['', *names], rows)}"
        )

    def plot(self, results: Results, folder: Path) -> list[Path]:
        """Draw the same numbers, with the 95% intervals of their means."""
        path = folder / f"{self.name}.png"
        with picture(path, 9, 4.4) as figure:
            axes = figure.subplots(1, 2, sharey=True)
            for row, label in enumerate(results.labels):
                for place, method in enumerate(METHODS):
                    y = row + 0.12 * (place - 2.5)
                    for ax, values in zip(axes, scores(results, label, method.label), strict=True):
                        error = 1.96 * _standard_error(values)
                        ax.errorbar(
                            mean(values), y, xerr=error, fmt="o", ms=5, color=colour(method.label),
                            label=shown(method.label) if row == 0 else None,
                        )  # fmt: skip
            axes[0].set(xlabel="RMSE of the posterior mean (less is better)", xlim=(0, None))
            axes[0].set_yticks(range(len(results.labels)), results.labels)
            axes[0].invert_yaxis()
            axes[1].set(xlabel="share of designs inside the 95% band")
            axes[1].axvline(0.95, color=FUNCTION, ls="--", lw=1)
            legend = axes[0].get_legend_handles_labels()
            figure.legend(*legend, loc="outside lower center", ncols=6)
        return [path]


def scores(results: Results, label: str, method: str) -> tuple[list[float], list[float]]:
    """Return errors and coverages of all repeats."""
    found = [result[method] for result in results.of(label)]
    return [f["rmse"] for f in found], [f["coverage"] for f in found]


def _cell(rmse: list[float], covered: list[float]) -> str:
    return f"{mean(rmse):.2f} ± {_standard_error(rmse):.2f} ({mean(covered):.0%})"


def _standard_error(values: list[float]) -> float:
    return stdev(values) / len(values) ** 0.5 if len(values) > 1 else 0.0


EXPECTATIONS = Expectations()
