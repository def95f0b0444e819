import pytest
import torch
from botorch.acquisition.analytic import PosteriorMean, UpperConfidenceBound

from airbo import Space
from airbo import uncertainty as unc
from airbo.models import ExpectationGP
from airbo.optimizer.search import best_design
from airbo.space.cube import Cube

CUBE = Cube(Space({"x": (0.0, 1.0)}))
BOUNDS = torch.tensor([[0.0], [1.0]], dtype=torch.float64)


@pytest.fixture
def model():
    X = torch.linspace(0, 1, 6, dtype=torch.float64).unsqueeze(-1)
    return ExpectationGP(X, (6 * X).sin(), unc.Normal(0.05), BOUNDS).eval()


class Failing(PosteriorMean):
    def forward(self, X):
        raise ArithmeticError


def test_hyperparameters_can_be_learned_after_a_search_as_before(model):
    fixed = next(model.parameters()).requires_grad_(False)
    best_design(UpperConfidenceBound(model, 4.0), CUBE)
    with pytest.raises(ArithmeticError):
        best_design(Failing(model), CUBE)
    assert [p is fixed for p in model.parameters()] == [
        not p.requires_grad for p in model.parameters()
    ]


def test_a_search_finds_what_the_best_of_a_fine_grid_is(model):
    bound = UpperConfidenceBound(model, 4.0)
    found = best_design(bound, CUBE)
    grid = torch.linspace(0, 1, 2001, dtype=torch.float64).reshape(-1, 1, 1)
    with torch.no_grad():
        assert bound(found.unsqueeze(0)) >= bound(grid).max() - 1e-6
