"""The pictures of the README and the docs show what they say, and can be drawn again."""

import subprocess
import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pytest
import torch
from matplotlib.axes import Axes

from airbo import uncertainty as unc
from airbo.problems import DoublePeak
from experiments.benchmark import plan
from experiments.figures.readme import RIVALS, draw_benchmark, draw_problem
from experiments.figures.uncertainties import draw_density, kinds
from experiments.harness import table
from experiments.harness.experiment import Results, Task
from experiments.harness.palette import OTHER, colour, shown, style
from experiments.paper import posteriors as post
from experiments.paper.optimizations import ABLATION, EI, MAIN, draw_final_regrets
from experiments.subjects.cases import find_case

ROOT = Path(__file__).parents[2]
IMAGES = ROOT / "docs" / "images"


@pytest.fixture
def ax():
    yield plt.figure().subplots()
    plt.close("all")


def marks(ax, marker):
    """Return where a marker stands."""
    return [tuple(line.get_xydata()[0]) for line in ax.lines if line.get_marker() == marker]


def test_the_readme_marks_both_optima_at_what_they_give_on_average(ax):
    problem = DoublePeak()
    draw_problem(ax)
    optima = [problem.nominal_optimum.design, problem.robust_optimum.design]
    expected = [(x.item(), problem.expected(x.unsqueeze(0)).item()) for x in optima]
    np.testing.assert_allclose(marks(ax, "o"), expected)
    assert expected[0][1] < expected[1][1]


def test_the_benchmark_of_the_readme_shows_mean_regrets_of_those_that_ran_every_case(
    tmp_path, monkeypatch
):
    written = []
    monkeypatch.setattr(Axes, "text", lambda self, x, y, words, **_: written.append(words.strip()))
    levels = dict(zip((plan.AIRBO, *RIVALS), (0.01, 0.02, 0.05, 0.1, 0.5), strict=True))
    del levels["random"]
    each = [
        (
            Task("benchmark", f"{case}: {method}", 0, {"case": case, "method": method}),
            {"regret": [level * find_case(case).gain]},
        )
        for case in plan.CONFIRMING
        for method, level in levels.items()
    ]
    path = draw_benchmark(Results(each), tmp_path)
    assert written == [f"{100 * level:.1f}%" for level in levels.values()] * 2
    assert plt.imread(path).shape[1] < 1200  # narrow: large letters on a phone


def test_the_density_is_dark_where_deviations_are_likely(ax):
    draw_density(ax, unc.Varying(lambda x: unc.Normal(0.01 + 0.1 * x)))
    [mesh] = ax.collections
    shades = mesh.get_array()
    middles = mesh.get_coordinates()[:, 0, 1]
    middles = (middles[1:] + middles[:-1]) / 2
    darkest = middles[shades.filled(0).argmax(axis=0)]
    assert np.abs(darkest).max() < 0.05
    n_shaded = (~shades.mask).sum(axis=0)
    assert n_shaded[0] < n_shaded[150] < n_shaded[-1]  # the deviation widens to the right


def test_every_kind_of_uncertainty_is_shown():
    shown = {type(uncertainty) for uncertainty, _ in kinds().values()}
    public = {getattr(unc, name) for name in unc.__all__ if isinstance(getattr(unc, name), type)}
    assert public - shown == {unc.InputUncertainty, unc.Rounded, unc.Scaled}
    for uncertainty, designs in kinds().values():
        base = unc.base_draws(64, uncertainty.n_base(2))
        samples = uncertainty.perturb(torch.tensor(designs, dtype=torch.float64), base)
        assert (samples.abs() < 1).double().mean() > 0.9  # the frame is wide enough


def test_a_posterior_is_drawn_with_its_band_its_truth_and_its_observations(ax):
    task = Task("modelling", "GP", 0, {"case": "normal", "n": 4, "n_grid": 11})
    curves = {"mean": list(range(11)), "std": [1.0] * 11}
    post.draw_belief(ax, task, curves)
    lines = {line.get_label(): line.get_xydata() for line in ax.lines}
    np.testing.assert_allclose(lines["posterior mean"][:, 1], curves["mean"])
    X, Y = post.observe(post.problem("normal"), 4, seed=0)
    np.testing.assert_allclose(lines["observations"], torch.cat([X, Y], dim=-1))
    expected = post.problem("normal").expected(post.designs(post.grid(11)))
    np.testing.assert_allclose(lines["expected value (sought)"][:, 1], expected)
    [band] = ax.collections
    low, high = band.get_datalim(ax.transData).intervaly
    assert (low, high) == pytest.approx((-1.96, 11.96))


def test_every_repeat_is_drawn_where_it_ended_in_the_row_of_its_method(ax):
    curves = {"GP": np.array([[3.0, 1.0], [3.0, 2.0]]), "SKL": np.array([[3.0, 0.5]])}
    draw_final_regrets(ax, curves)
    for row, (label, points) in enumerate(zip(curves, ax.collections, strict=True)):
        x, y = points.get_offsets().T
        np.testing.assert_allclose(x, curves[label][:, -1])
        assert np.abs(y + row).max() < 0.5
        assert ax.get_yticklabels()[row].get_text() == shown(label)


@pytest.mark.parametrize("methods", [MAIN, ABLATION, plan.METHODS, plan.CANDIDATES])
def test_methods_that_are_drawn_together_look_different(methods):
    drawn = [method for method in methods if not method.endswith(EI)]
    looks = [style(method) for method in drawn]
    assert OTHER not in looks
    assert len({shade for shade, _ in looks}) == len({marker for _, marker in looks}) == len(looks)
    assert len({shown(method) for method in drawn}) == len(looks)


def test_a_method_has_one_colour_whatever_it_is_called():
    assert colour("GP") == colour("plain GP")
    assert colour("uGP(40)") == colour("uGP(160)")
    assert colour("MMDGP (default estimator)") == colour("MMDGP") != colour("MMDGP-nystrom(160/10)")


def test_a_method_has_one_name_in_pictures_and_tables():
    assert shown("GP") == "plain GP"
    assert shown("GP, n = 10") == "plain GP, n = 10"
    assert shown("MMDGP-nystrom(160/10), UCB") == "MMDGP-nystrom, UCB"
    assert shown("MMDGP-nystrom(16/9)") == "MMDGP-nystrom(16/9)"
    assert table.markdown(["", "GP"], [["SKL", "1"]]).splitlines()[0] == "|  | plain GP |"


@pytest.mark.slow
def test_all_pictures_of_the_docs_can_be_drawn_again(tmp_path):
    command = [sys.executable, "-m", "experiments.figures", "--images", str(tmp_path)]
    subprocess.run(command, cwd=ROOT, check=True)
    drawn = {path.name for path in tmp_path.iterdir()}
    in_a_browser = {"report.png", "serve.png"}  # experiments.figures.lab
    assert drawn | in_a_browser == {path.name for path in IMAGES.iterdir() if path.is_file()}
    for name in drawn:
        assert plt.imread(tmp_path / name).shape == plt.imread(IMAGES / name).shape
