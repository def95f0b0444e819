"""Modelling under uncertain inputs: the posteriors of surrogates after ten observations."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from airbo.models import UncertainInputGP
from experiments.harness import table
from experiments.harness.draw import picture
from experiments.harness.experiment import Experiment, Results, Task
from experiments.harness.palette import shown
from experiments.paper import posteriors as post
from experiments.subjects.methods import DEFAULT, GP, NYSTROM, Method

CASES = ("normal", "varying beta", "step chi²", "wide varying beta")
BETAS = ("varying beta", "wide varying beta")
"""The width in the text of the paper, 0.9, exceeds the range of the designs; 0.09 does not."""
METHODS = (GP, NYSTROM, DEFAULT)
PANELS = (
    (GP, "normal"),
    (NYSTROM, "normal"),
    (NYSTROM, "varying beta"),
    (NYSTROM, "step chi²"),
)
"""Those of the paper's figure."""
LONE: dict[str, tuple[str, ...]] = {
    "normal": (),
    "step chi²": ("0.6",),
    **dict.fromkeys(BETAS, ("0.05", "0.42")),
}
"""Where the paper sees asymmetric posteriors."""


class Modelling(Experiment):
    """A plain GP and MMDGP under three uncertainties."""

    name = "modelling"
    paper = "figure 2"
    title = "The RKHS function from ten observations under three uncertainties"
    repeats = 30

    def tasks(self, repeats: int, quick: bool = False) -> list[Task]:
        """List all cases and methods of all repeats."""
        return [
            Task(self.name, _label(method, case), seed, _config(method, case, quick))
            for seed in range(repeats)
            for case in CASES
            for method in METHODS
        ]

    def run(self, task: Task) -> dict[str, Any]:
        """Fit once; compare the posterior with the truth and the paper's claims."""
        config, problem = task.config, post.problem(task.config["case"])
        model = post.fitted(config, problem, task.seed)
        belief = post.believed(model, post.grid(config["n_grid"]))
        X, Y = post.observe(problem, config["n"], task.seed)
        expected = problem.expected(X).numpy()
        result = {
            **belief.scores(post.expected_on_grid(config["case"], config["n_grid"])),
            "kept_scatter": kept_scatter(model, Y.squeeze(-1).numpy(), expected),
            "lone": {at: post.lone(model, float(at), config["distance"]) for at in config["lone"]},
            "jump": post.jump(model, 0.6),
            "correlation": post.correlation(model, 0.6),
        }
        return result | ({"curves": belief.curves()} if task.seed == 0 else {})

    # -- results

    def summary(self, results: Results) -> str:
        """Tabulate predictions, and a number for each thing that the paper reads off its figure."""
        n = len(results.of(results.labels[0]))
        return (
            f"10 random designs, one experiment each, {n} repeats: mean and 95% interval.\n\n"
            "Against the true expectation on [0, 1]; the gain is over the plain GP on the same "
            f"observations (positive: better):\n\n{self._predictions(results)}\n\n"
            "Does a surrogate overfit? *Kept scatter*: how far the posterior mean stays from the "
            "values at observed designs, relative to how far these lie from their expectations. "
            "1: as much is taken for scatter as there is; 0: the values are followed as if they "
            f"were exact.\n\n{self._scatter(results)}\n\n"
            "Is the posterior asymmetric under the beta? *Lone observation at x*: deviation at "
            "x - 0.02 over that at x + 0.02 if there were only one observation, at x, under the "
            f"fitted hyper-parameters (1: symmetric).\n\n{self._asymmetry(results)}\n\n"
            "Does it change suddenly at the step of the χ²? *Jump*: larger over smaller "
            "deviation just left and right of 0.6 (1: none). *Correlation*: between the expected "
            f"values on both sides, before any observation.\n\n{self._step(results)}"
        )

    def _predictions(self, results: Results) -> str:
        header = ["", "RMSE", "gain", "log density", "gain", "in the 95% band"]
        rows = [
            [
                _label(method, case),
                *post.prediction_row(results, _label(method, case), _label(GP, case)),
            ]
            for case in CASES
            for method in METHODS
        ]
        return table.markdown(header, rows)

    def _scatter(self, results: Results) -> str:
        rows = [
            [method.label]
            + [
                post.cell(post.column(results, _label(method, case), "kept_scatter"))
                for case in CASES
            ]
            for method in METHODS
        ]
        return table.markdown(["kept scatter", *(post.TITLES[case] for case in CASES)], rows)

    def _asymmetry(self, results: Results) -> str:
        rows = [
            [_label(method, case), *(_lone(results, _label(method, case), at) for at in LONE[case])]
            for case in BETAS
            for method in METHODS
        ]
        header = [f"lone observation at {at}" for at in LONE[BETAS[0]]]
        return table.markdown(["", *header], rows)

    def _step(self, results: Results) -> str:
        rows = []
        for method in METHODS:
            label = _label(method, "step chi²")
            jump = post.skewed_cell(post.column(results, label, "jump"))
            correlation = post.cell(post.column(results, label, "correlation"))
            rows.append([method.label, jump, correlation, _lone(results, label, "0.6")])
        return table.markdown(["", "jump", "correlation", "lone observation at 0.6"], rows)

    def plot(self, results: Results, folder: Path) -> list[Path]:
        """Draw the four panels of the paper, from the first repeat, and both widths of the beta."""
        path, widths = folder / f"{self.name}.png", folder / f"{self.name}-widths.png"
        with picture(path, 10, 5.8) as figure:
            axes = figure.subplots(2, 2, sharex=True, sharey=True)
            named = [
                f"({letter}) {shown(_label(*panel))}"
                for letter, panel in zip("abcd", PANELS, strict=True)
            ]
            _draw_panels(figure, axes, results, PANELS, named)
        with picture(widths, 10, 3.4) as figure:
            axes = figure.subplots(1, 2, sharex=True, sharey=True, squeeze=False)
            panels = [(NYSTROM, case) for case in BETAS]
            names = ["width 0.09 (sin 4πx + 1)", "width 0.9 (sin 4πx + 1), as in the text"]
            _draw_panels(figure, axes, results, panels, names)
        return [path, widths]


def _draw_panels(
    figure: Figure,
    axes: np.ndarray,
    results: Results,
    panels: Sequence[tuple[Method, str]],
    titles: Sequence[str],
) -> None:
    found = {task.label: (task, r["curves"]) for task, r in results if "curves" in r}
    for ax, panel, title in zip(axes.flat, panels, titles, strict=True):
        post.draw_belief(ax, *found[_label(*panel)])
        ax.set_title(title)
    for ax in axes[-1]:
        ax.set_xlabel("design x")
    for ax in axes[:, 0]:
        ax.set_ylabel("value")
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=5)


def kept_scatter(model: UncertainInputGP, values: np.ndarray, expected: np.ndarray) -> float:
    """Return the scatter that a model leaves unexplained, as a share of all scatter."""
    observed = model.train_inputs[0].squeeze(-1).numpy()
    left = values - post.believed(model, observed).mean
    return post.rounded(np.sqrt(np.mean(left**2) / np.mean((values - expected) ** 2)))


def _label(method: Method, case: str) -> str:
    return f"{method.label}, {post.TITLES[case]}"


def _config(method: Method, case: str, quick: bool) -> dict[str, Any]:
    size = {"n": 10, "n_grid": 51 if quick else 401}
    return {"case": case, **size, "distance": 0.02, "lone": list(LONE[case]), **method.config()}


def _lone(results: Results, label: str, at: str) -> str:
    return post.cell(np.array([result["lone"][at] for result in results.of(label)]))


MODELLING = Modelling()
