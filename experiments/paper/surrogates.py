"""Six surrogates under a distribution that changes at a step."""

from pathlib import Path
from typing import Any

from experiments.harness import table
from experiments.harness.draw import picture
from experiments.harness.experiment import Experiment, Results, Task
from experiments.harness.palette import shown
from experiments.paper import posteriors as post
from experiments.subjects.methods import DEFAULT, ERBF, GP, NYSTROM, SKL, UGP_40, UGP_160, Method

CASE = "step chi²"
EDGE = 0.6
METHODS = (NYSTROM, UGP_40, UGP_160, GP, SKL, ERBF, DEFAULT)
N_OBSERVATIONS = {False: (10, 30), True: (4, 6)}
"""Keys: whether the run is a quick one."""


class Surrogates(Experiment):
    """All surrogates on the same observations, with few and with many of them."""

    name = "surrogates"
    paper = "figure 7"
    title = "Surrogates under the chi-squared distribution with a step at 0.6"
    repeats = 12

    def tasks(self, repeats: int, quick: bool = False) -> list[Task]:
        """List all surrogates and numbers of observations of all repeats."""
        return [
            Task(self.name, _label(method, n), seed, _config(method, n, quick))
            for seed in range(repeats)
            for n in N_OBSERVATIONS[quick]
            for method in METHODS
        ]

    def run(self, task: Task) -> dict[str, Any]:
        """Fit once; compare the posterior with the truth and examine it at the step."""
        config = task.config
        model = post.fitted(config, post.problem(config["case"]), task.seed)
        x = post.grid(config["n_grid"])
        belief = post.believed(model, x)
        near = [belief.std[(low <= x) & (x < low + 0.1)].mean() for low in (EDGE - 0.1, EDGE)]
        result = {
            **belief.scores(post.expected_on_grid(config["case"], config["n_grid"])),
            "jump": post.jump(model, EDGE),
            "correlation": post.correlation(model, EDGE),
            "lone": post.lone(model, EDGE, config["distance"]),
            "right_to_left": post.rounded(near[1] / near[0]),
        }
        return result | ({"curves": belief.curves()} if task.seed == 0 else {})

    # -- results

    def summary(self, results: Results) -> str:
        """Tabulate predictions, and how each surrogate models the step."""
        n = len(results.of(results.labels[0]))
        return (
            f"RKHS function, random designs, one experiment each, {n} repeats: mean and 95% "
            "interval. Against the true expectation on [0, 1]; the gain is over the plain GP on "
            "the same observations (positive: better):\n\n"
            f"{self._predictions(results)}\n\n"
            "The step. *Jump*: larger over smaller deviation just left and right of 0.6; 1 for a "
            "surrogate that does not see it, whatever the observations. *Correlation* of the "
            "expected values on both sides, before any observation. *Lone observation at 0.6*: "
            "deviation at 0.58 over that at 0.62 if there were no other observation (the paper "
            "expects more than 1). *Right to left*: mean deviation on [0.6, 0.7) over that on "
            "[0.5, 0.6); this one depends on where the observations lie, so that it differs from "
            f"1 for the plain GP too.\n\n{self._step(results)}"
        )

    def _predictions(self, results: Results) -> str:
        header = ["", "RMSE", "gain", "log density", "gain", "in the 95% band"]
        rows = [
            [_label(method, n), *post.prediction_row(results, _label(method, n), _label(GP, n))]
            for n in _sizes(results)
            for method in METHODS
        ]
        return table.markdown(header, rows)

    def _step(self, results: Results) -> str:
        names = ("correlation", "lone", "right_to_left")
        rows = [
            [
                label,
                post.skewed_cell(post.column(results, label, "jump")),
                *(post.cell(post.column(results, label, name)) for name in names),
            ]
            for label in results.labels
        ]
        header = ["", "jump", "correlation", "lone observation at 0.6", "right to left"]
        return table.markdown(header, rows)

    def plot(self, results: Results, folder: Path) -> list[Path]:
        """Draw the posteriors of the first repeat, for few observations."""
        found = {task.label: (task, r["curves"]) for task, r in results if "curves" in r}
        n = _sizes(results)[0]
        return [self._draw(found, n, folder / f"{self.name}-{n}.png")]

    def _draw(self, found: dict[str, Any], n: int, path: Path) -> Path:
        with picture(path, 11, 7.5) as figure:
            axes = figure.subplots(3, 3, sharex=True, sharey=True)
            for ax, letter, method in zip(axes.flat, "abcdefg", METHODS, strict=False):
                post.draw_belief(ax, *found[_label(method, n)])
                ax.axvline(EDGE, color="0.6", lw=0.8, ls=":", zorder=0)
                ax.set_title(f"({letter}) {shown(method.label)}")
                ax.set_xlabel("design x")
                ax.tick_params(labelbottom=True)
            for ax in axes[:, 0]:
                ax.set_ylabel("value")
            for ax in axes[2, 1:]:
                ax.set_axis_off()
            axes[2, 1].legend(*axes[0, 0].get_legend_handles_labels(), loc="center left")
            axes[2, 1].set_title(f"{n} observations, first repeat")
        return path


def _sizes(results: Results) -> list[int]:
    return sorted({task.config["n"] for task, _ in results})


def _label(method: Method, n: int) -> str:
    return f"{method.label}, n = {n}"


def _config(method: Method, n: int, quick: bool) -> dict[str, Any]:
    size = {"n": n, "n_grid": 21 if quick else 201, "distance": 0.02}
    return {"case": CASE, **size, **method.config()}


SURROGATES = Surrogates()
