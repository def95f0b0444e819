"""The search of spaces with whole numbers and categories."""

import torch
from botorch.acquisition import AcquisitionFunction
from botorch.models import SingleTaskGP

from airbo.optimizer.mixed import search_mixed
from airbo.optimizer.search import without_numerical_warnings

LEVELS = {0: torch.linspace(0, 1, 9).double(), 2: torch.tensor([0.0, 0.5, 1.0]).double()}
CATEGORIES = [2]


class Ridge(AcquisitionFunction):
    """Its slope jumps along a line; the best category is neither the first nor the last."""

    def __init__(self):
        X = torch.rand(4, 3, generator=torch.Generator().manual_seed(0)).double()
        super().__init__(model=SingleTaskGP(X, X.sum(-1, keepdim=True)))

    def forward(self, X):
        a, b, c = X.squeeze(-2).unbind(-1)
        return -(b - 0.3 - 0.4 * a).abs() - (a - 0.6).abs() - (c - 0.5).square()


def test_no_neighbour_and_no_point_close_by_is_better():
    torch.manual_seed(0)
    with without_numerical_warnings():
        F = search_mixed(Ridge(), LEVELS, CATEGORIES, d=3, n_starts=4, n_raw=64)
    assert F[0, 0].item() == 0.625
    assert F[0, 2].item() == 0.5
    assert abs(F[0, 1].item() - 0.55) < 1e-3


def test_a_space_of_levels_alone_is_searched():
    class Sum(Ridge):
        def forward(self, X):
            return X.squeeze(-2).sum(-1)

    torch.manual_seed(0)
    levels = {c: LEVELS[0] for c in range(3)}
    F = search_mixed(Sum(), levels, [], d=3, n_starts=2, n_raw=16)
    assert F.tolist() == [[1.0, 1.0, 1.0]]
