"""The demonstration that `make demo` runs."""

import io
import sys

import matplotlib.image
import pytest
from rich.console import Console
from rich.progress import Progress

from airbo.problems import DoublePeak
from examples import demo


@pytest.fixture(scope="module")
def runs():
    """Both surrogates, told the initial designs only."""
    quiet = Progress(console=Console(file=io.StringIO()))
    return [demo.optimize(DoublePeak(), surrogate, 6, 0, quiet) for surrogate in demo.LABELS]


def test_both_surrogates_start_from_the_same_designs_and_outcomes(runs):
    first, second = (run.optimizer.observations for run in runs)
    assert len(first) == 6
    assert first.equals(second)


def test_an_answer_is_worth_what_the_problem_says(runs):
    best = DoublePeak().robust_optimum.value
    for run in runs:
        assert 0 <= run.design <= 1
        assert run.regret >= 0
        assert run.expected + run.regret == pytest.approx(best)


def test_the_table_puts_the_answers_beside_the_truth(runs):
    out = io.StringIO()
    Console(file=out, width=120).print(demo.summary(DoublePeak(), runs))
    for run in runs:
        [row] = [line for line in out.getvalue().splitlines() if demo.LABELS[run.surrogate] in line]
        assert f"{run.design:.4f}" in row
        assert f"{run.regret:.4f}" in row
    assert f"true robust optimum │       {DoublePeak().robust_optimum.design.item():.4f}" in (
        out.getvalue()
    )


def test_the_picture_shows_every_surrogate_in_its_color(runs, tmp_path):
    demo.picture(DoublePeak(), runs, tmp_path / "demo.png")
    pixels = matplotlib.image.imread(tmp_path / "demo.png")[..., :3]
    half = pixels.shape[1] // 2
    for side, run in zip((pixels[:, :half], pixels[:, half:]), runs, strict=True):
        color = matplotlib.colors.to_rgb(demo.COLORS[run.surrogate])
        assert (abs(side - color).max(axis=-1) < 0.01).sum() > 200


@pytest.mark.slow
def test_the_demo_finds_the_higher_expectation_where_p_is_known(monkeypatch, tmp_path, capsys):
    picture = tmp_path / "demo.png"
    monkeypatch.setattr(sys, "argv", ["demo", "--picture", str(picture)])
    demo.main()
    shown = capsys.readouterr().out
    assert picture.exists()
    [ours] = [line for line in shown.splitlines() if "airbo, knows P" in line and "│" in line]
    [plain] = [line for line in shown.splitlines() if "plain GP on" in line and "│" in line]
    assert float(ours.split("│")[4]) < float(plain.split("│")[4])
