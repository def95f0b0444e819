"""What an experiment teaches about a design that will be used otherwise than it is tried."""

import pytest
import torch

from airbo import Optimizer
from airbo import uncertainty as unc
from airbo.acquisition import InformationAbout
from airbo.models import ERBFGP, MMDGP, UGP, ExpectationGP
from airbo.problems import DoublePeak

P, Q = unc.Exact(), unc.Beta(0.4, 0.2, scale=0.1)
ROUGH = unc.Normal(0.05)
BOUNDS = torch.tensor([[0.0], [1.0]], dtype=torch.float64)


def model_of(kind):
    generator = torch.Generator().manual_seed(0)
    X = torch.rand(8, 1, generator=generator, dtype=torch.float64)
    return kind(X, torch.sin(9 * X), P, BOUNDS, deployment=Q)


@pytest.mark.parametrize("kind", [UGP, MMDGP])
def test_designs_can_be_predicted_jointly_each_under_its_own_uncertainty(kind):
    model = model_of(kind)
    X = torch.tensor([[0.3], [0.6]], dtype=torch.float64)
    joint = model.posterior(X, uncertainty=[Q, P])
    for row, under in enumerate((Q, P)):
        alone = model.posterior(X[[row]], uncertainty=under)
        assert joint.mean[row].item() == pytest.approx(alone.mean.item(), abs=1e-9)
        assert joint.variance[row].item() == pytest.approx(alone.variance.item(), abs=1e-9)


def test_as_many_uncertainties_as_designs_are_needed():
    with pytest.raises(ValueError, match="1 uncertainties for designs of shape"):
        model_of(UGP).posterior(torch.zeros(2, 1, dtype=torch.float64), uncertainty=[Q])


@pytest.mark.parametrize("kind", [UGP, MMDGP, ExpectationGP, ERBFGP])
@pytest.mark.parametrize("experiments", [P, ROUGH], ids=repr)
def test_the_information_is_what_conditioning_takes_off_the_variance(kind, experiments):
    model = model_of(kind)
    target = torch.tensor([[0.42]], dtype=torch.float64)
    tried = torch.tensor([[[0.1]], [[0.45]], [[0.9]]], dtype=torch.float64)

    before = model.posterior(target, uncertainty=Q).variance
    predicted = before.item() * InformationAbout([model], target, Q, experiments)(tried)

    for X, information in zip(tried, predicted, strict=True):
        told = model.condition_on_observations(X, torch.zeros_like(X), uncertainty=experiments)
        fall = before - told.posterior(target, uncertainty=Q).variance
        assert information.item() == pytest.approx(fall.item(), rel=1e-4, abs=1e-7)


@pytest.mark.slow
def test_exact_experiments_find_the_design_that_is_best_in_use():
    problem = DoublePeak()
    optimizer = Optimizer({"x": (0.0, 1.0)}, None, deployment=problem.uncertainty, n_initial=10)
    for _ in range(40):
        design = optimizer.ask()
        optimizer.tell(design, problem(torch.tensor([[design["x"]]], dtype=torch.float64)).item())
    found = torch.tensor([[optimizer.recommend().design["x"]]], dtype=torch.float64)
    assert problem.regret(found).item() < 0.2
