import warnings

import pytest
import torch
from botorch.acquisition import AcquisitionFunction
from botorch.exceptions.warnings import OptimizationWarning
from linear_operator.utils.warnings import NumericalWarning

from airbo import Integer, Space
from airbo.optimizer.search import (
    NEARBY,
    _starts,
    best_design,
    best_of,
    free_designs,
    near,
    without_numerical_warnings,
)
from airbo.space.cube import Cube

LINE = Cube(Space({"x": (0, 1)}))
CHOICES = Cube(Space({"n": Integer(1, 3), "t": ["A", "B"]}))
MIXED = Cube(Space({"x": (0, 1), "n": Integer(0, 4), "t": ["A", "B", "C"]}))


class Near(AcquisitionFunction):
    """Largest at one point of the unit cube."""

    def __init__(self, *target):
        super().__init__(model=None)
        self.target = torch.tensor(target, dtype=torch.float64)

    def forward(self, X):
        return -(X - self.target).square().sum(dim=(-2, -1))


def points(*rows):
    return torch.tensor(rows, dtype=torch.float64)


@pytest.fixture(autouse=True)
def seeded():
    torch.manual_seed(0)


def test_the_maximum_over_a_continuous_space_is_found():
    Z = best_design(Near(0.3), LINE)
    torch.testing.assert_close(Z, points([0.3]), atol=1e-4, rtol=0)


def test_the_maximum_over_a_mixed_space_is_found_at_a_design():
    Z = best_design(Near(0.3, 0.45, 0.0, 0.7, 0.0), MIXED)  # x, n and one column per tool
    torch.testing.assert_close(MIXED.fold(Z), points([0.3, 0.5, 0.5]), atol=1e-3, rtol=0)
    MIXED.space.check(MIXED.to_designs(Z)[0])


def test_a_small_discrete_space_is_searched_whole():
    assert CHOICES.fold(best_design(Near(1.0, 0.0, 0.7), CHOICES)).tolist() == [[1.0, 1.0]]


def test_a_large_discrete_space_is_searched_too():
    cube = Cube(Space({"a": Integer(0, 99), "b": Integer(0, 99)}))
    Z = best_design(Near(0.2, 0.7), cube)
    torch.testing.assert_close(cube.to_columns(Z), points([20.0, 69.0]), atol=1.01, rtol=0)


def test_designs_to_start_from_are_never_beaten_by_worse_ones():
    class Spike(Near):
        def forward(self, X):
            return torch.exp(1e12 * super().forward(X))

    with without_numerical_warnings():
        assert best_design(Spike(0.123), LINE, start=points([0.5], [0.123])).item() == 0.123


def test_an_excluded_design_is_not_returned_and_the_next_best_is():
    best = best_design(Near(0.3), LINE)
    other = best_design(Near(0.3), LINE, exclude=best)
    assert 1e-6 < (other - best).abs().item() < 0.05


def test_nothing_near_an_avoided_design_is_returned():
    other = best_design(Near(0.3), LINE, avoid=points([0.3]))
    assert 0.01 <= (other - 0.3).abs().item() < 0.05


def test_in_a_discrete_space_avoided_designs_come_before_excluded_ones():
    folded = points(*[[n, t] for n in (0.0, 0.5, 1.0) for t in (0.0, 1.0)])
    everything = CHOICES.unfold(folded)
    function = Near(0.0, 0.7, 0.0)
    assert not torch.equal(best_design(function, CHOICES, everything[:1]), everything[:1])
    avoided, excluded = everything[[3]], everything[[0, 1, 2, 4, 5]]
    assert best_design(function, CHOICES, excluded, avoided).tolist() == avoided.tolist()
    assert torch.equal(best_design(function, CHOICES, everything), everything[:1])


def test_free_designs_are_all_others_of_a_discrete_space():
    taken = CHOICES.unfold(points([0.0, 0.0], [1.0, 1.0]))
    free = free_designs(CHOICES, exclude=taken)
    assert len(free) == 4
    assert not near(free, taken).any()


def test_near_means_near_in_every_column():
    Z = points([0.5, 0.5], [0.5, 0.6])
    assert near(Z, points([0.5, 0.5 + 1e-8])).tolist() == [True, False]
    assert near(Z, points([0.45, 0.55]), distance=0.06).tolist() == [True, True]
    assert near(Z, Z[:0]).tolist() == [False, False]


def test_the_best_of_many_points_is_found_in_parts():
    Z = torch.rand(1000, 1, dtype=torch.float64)
    best = Z[(Z - 0.4).abs().argmin()]
    torch.testing.assert_close(best_of(Near(0.4), Z), best.unsqueeze(0))


def test_only_numerical_warnings_are_kept_quiet():
    with without_numerical_warnings():
        warnings.warn("jitter", NumericalWarning, stacklevel=1)
        warnings.warn("line search", OptimizationWarning, stacklevel=1)
        with pytest.warns(UserWarning, match="something else"):
            warnings.warn("something else", UserWarning, stacklevel=1)


def test_a_thin_band_is_found_before_the_search_climbs():
    class Band(Near):
        def forward(self, X):
            return -(X[..., 0, 0] - 0.0137).abs()  # one random point of 50 comes within 0.01

    box = points([0.0, 0.0, 0.0], [1.0, 1.0, 1.0])
    starts = _starts(Band(0.0), box).squeeze(-2)
    assert (starts[:, 0] - 0.0137).abs().max() < 0.003
    apart = torch.cdist(starts, starts, p=float("inf")) + torch.eye(len(starts))
    assert len(starts) == 4
    assert apart.min() >= NEARBY
