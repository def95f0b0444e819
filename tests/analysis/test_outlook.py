"""Is it worth going on: laws of what further experiments can bring."""

import math

import pytest
import torch
from botorch.models import SingleTaskGP
from gpytorch.kernels import RBFKernel, ScaleKernel
from gpytorch.likelihoods import FixedNoiseGaussianLikelihood
from gpytorch.means import ZeroMean

import airbo
from airbo import uncertainty as unc
from airbo.analysis import outlook
from airbo.analysis.outlook import confirmations, look_ahead
from airbo.analysis.words import outlook_sentences
from tests.operations import Operations

SPACE = {"x": airbo.Float(0.0, 1.0, step=0.02)}


def known_prior(noise):
    """Return a surrogate that knows the prior and the noise, and learns nothing else."""

    def build(train_X, train_Y):
        kernel = ScaleKernel(RBFKernel())
        kernel.outputscale, kernel.base_kernel.lengthscale = 1.0, 0.15
        model = SingleTaskGP(
            train_X,
            train_Y,
            train_Yvar=torch.full_like(train_Y, noise),
            covar_module=kernel,
            mean_module=ZeroMean(),
            outcome_transform=None,
        )
        assert isinstance(model.likelihood, FixedNoiseGaussianLikelihood)
        return model.requires_grad_(False)

    return build


def told(values, noise=1e-6, direction="maximize", scale=1.0):
    optimizer = airbo.Optimizer(SPACE, None, direction, surrogate=known_prior(noise), n_initial=3)
    sign = 1 if direction == "maximize" else -1
    for x, value in values.items():
        optimizer.tell({"x": x}, sign * scale * value)
    return optimizer


FEW = {0.1: 0.3, 0.5: -0.2, 0.9: 0.1}


def test_where_nothing_is_unknown_nothing_is_gained():
    everywhere = {i / 50: math.sin(i / 8) for i in range(51)}
    found = look_ahead(told(everywhere))
    assert max(found.gains.values()) < 1e-3
    assert found.probability > 0.99


def test_more_experiments_never_bring_less():
    found = look_ahead(told(FEW), steps=range(1, 15))
    gains = list(found.gains.values())
    assert gains == sorted(gains)
    assert gains[0] >= 0
    assert gains[-1] > 0.5  # of a function with variance 1, seen at three points


def test_a_larger_tolerance_is_kept_more_often():
    chances = [look_ahead(told(FEW), tolerance=t).probability for t in (0.0, 0.5, 1.0, 2.0, 9.0)]
    assert chances == sorted(chances)
    assert chances[0] < 0.1
    assert chances[-1] == 1.0


def test_where_no_values_differ_nothing_is_called_negligible():
    one = told({0.5: 1.0})
    with pytest.warns(airbo.TooLittleDataWarning):
        found = look_ahead(one)
    verdict = outlook_sentences(found, one.space, "yield", "%")[0]
    assert verdict.startswith("Keep going")
    assert "0" not in verdict


def test_gains_do_not_depend_on_the_direction():
    up, down = look_ahead(told(FEW)), look_ahead(told(FEW, direction="minimize"))
    assert up.gains == pytest.approx(down.gains)
    assert up.probability == down.probability


@pytest.mark.parametrize("most", [4, 2**23], ids=["one future at a time", "all futures at once"])
def test_the_expected_gain_of_one_experiment_has_a_closed_form(most, monkeypatch):
    # two designs, independent: one known to be 0, the other N(0, 1) and seen without noise,
    # so that the best mean after one experiment is max(0, N(0, 1)): 1 / sqrt(2 π)
    monkeypatch.setattr(outlook, "MAX_NUMBERS", most)
    mean, C = torch.zeros(2).double(), torch.diag(torch.tensor([1e-12, 1.0]).double())
    tried = torch.tensor([True, False])
    torch.manual_seed(0)
    joint = outlook._Joint(mean, C, torch.full((2,), 1e-12).double(), slice(0, 2), tried)
    found = [joint.gains([1])[1] for _ in range(40)]
    expected, std = 1 / math.sqrt(2 * math.pi), math.sqrt(0.5 - 0.5 / math.pi)
    # max(0, z) is what the futures see; only new designs that were tried may be recommended
    assert sum(found) / 40 == pytest.approx(expected, abs=4 * std / math.sqrt(40 * 128))


def test_runs_that_confirm_a_design_follow_from_its_variance():
    assert confirmations(std=1.0, spread=2.0, tolerance=1.0) == 0
    n = confirmations(std=2.0, spread=2.0, tolerance=1.0)
    assert 1 / (1 / 4 + n / 4) <= 1.0 < 1 / (1 / 4 + (n - 1) / 4)
    assert confirmations(std=9.0, spread=9.0, tolerance=0.01) == 5


def test_what_is_used_otherwise_than_tried_is_judged_as_it_is_used():
    optimizer = airbo.Optimizer(
        {"x": (0.0, 1.0)}, None, deployment={"x": unc.Normal(0.1)}, surrogate="ugp", n_initial=3
    )
    for i in range(6):
        x = i / 5
        optimizer.tell({"x": x}, math.sin(6 * x))
    found = look_ahead(optimizer)
    assert found.recommendation == optimizer.recommend()
    assert list(found.gains) == [5, 10, 20]
    assert 0 <= found.gains[5] <= found.gains[20]


@pytest.mark.filterwarnings("ignore::airbo.optimizer.TooLittleDataWarning")
def test_the_luckiest_run_is_explained():
    optimizer = told({**FEW, 0.12: -0.5, 0.14: 0.4}, noise=0.3)
    found = look_ahead(optimizer)
    text = " ".join(outlook_sentences(found, optimizer.space, "yield", "%"))
    assert "after 5 more" in text
    assert "the probability that no other design is better" in text
    assert found.luckiest is not None
    assert found.luckiest.value == 0.4
    assert "The highest observed yield, 0.4 %, is of another design (x = 0.14)." in text
    assert "single runs differ from the average by ± 0.55 %" in text
    assert "The recommended design was tried once" in text


def test_looking_ahead_changes_nothing():
    optimizer, twin = told(FEW), told(FEW)
    look_ahead(optimizer)
    assert optimizer.ask() == twin.ask()


@pytest.mark.slow
def test_gains_come_true_on_average():
    """Over many functions from the known prior, promised and real gains agree."""
    grid = torch.linspace(0, 1, 51, dtype=torch.float64)
    K = torch.exp(-0.5 * (grid[:, None] - grid) ** 2 / 0.15**2)
    L = torch.linalg.cholesky(K + 1e-8 * torch.eye(51).double())
    noise, n = 0.09, 60
    generator = torch.Generator().manual_seed(0)
    differences, kept, promised = [], [], []
    for i in range(n):
        f = L @ torch.randn(51, generator=generator, dtype=torch.float64)

        def experiment(design, f=f):
            y = f[round(50 * design["x"])]
            return (y + math.sqrt(noise) * torch.randn((), generator=generator)).item()

        optimizer = airbo.Optimizer(SPACE, surrogate=known_prior(noise), n_initial=4, seed=i)
        for _ in range(5):
            design = optimizer.ask()
            optimizer.tell(design, experiment(design))
        before = f[round(50 * optimizer.recommend().design["x"])].item()
        outlook = look_ahead(optimizer, steps=(5,), tolerance=0.3)
        promised.append(outlook.probability)
        kept.append(f.max().item() - before <= 0.3)
        for _ in range(5):
            design = optimizer.ask()
            optimizer.tell(design, experiment(design))
        after = f[round(50 * optimizer.recommend().design["x"])].item()
        differences.append(after - before - outlook.gains[5])
    mean = sum(differences) / n
    std = math.sqrt(sum((d - mean) ** 2 for d in differences) / (n - 1))
    assert abs(mean) < 3 * std / math.sqrt(n)
    variance = sum(p * (1 - p) for p in promised)
    assert abs(sum(kept) - sum(promised)) < 3 * math.sqrt(variance)


def test_futures_are_simulated_in_portions(monkeypatch):
    monkeypatch.setattr(outlook, "N_TRUTHS", 64)  # the draws of truths are not in portions
    with Operations() as at_once:
        look_ahead(told(FEW))
    monkeypatch.setattr(outlook, "MAX_NUMBERS", 2**15)
    with Operations() as in_portions:
        look_ahead(told(FEW))
    assert in_portions.largest <= 2**15 < at_once.largest
