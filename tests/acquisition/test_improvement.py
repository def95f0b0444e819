"""What a design adds, from draws that are given by formulas."""

import torch

from airbo.acquisition.improvement import Draws, FeasibleValue, LogImprovement, Sampled


class Given(Draws):
    """Draws of one objective and one margin, as functions of a design on a line."""

    def __init__(self, objective, margin):
        super().__init__()
        self.models = torch.nn.ModuleList([torch.nn.Identity()])
        self.objective, self.margin = objective, margin

    def forward(self, Z):
        return Sampled(
            *(torch.stack([f(Z) for _ in range(3)]) for f in (self.objective, self.margin))
        )


def line(*x):
    return torch.tensor(x, dtype=torch.float64).unsqueeze(-1)


def test_as_long_as_no_design_keeps_the_limits_only_keeping_them_counts():
    known, others = line(0.0, 0.2), line(0.6, 0.9)
    rising = LogImprovement(Given(lambda z: z, lambda z: z - 0.5), known)
    falling = LogImprovement(Given(lambda z: -z, lambda z: z - 0.5), known)
    torch.testing.assert_close(rising(others.unsqueeze(-2)), falling(others.unsqueeze(-2)))
    torch.testing.assert_close(rising(line(0.9)[None]).item(), 0.0, atol=1e-3, rtol=0)


def test_once_a_design_keeps_the_limits_better_ones_gain_what_they_are_better_by():
    function = LogImprovement(Given(lambda z: z, lambda z: z - 0.5), line(0.0, 0.6))
    gains = function(line(0.7, 0.8).unsqueeze(-2)).exp()  # in units of what known designs span
    torch.testing.assert_close(gains, line(0.1, 0.2).squeeze(-1) / 0.6, atol=0, rtol=0.02)


def test_the_best_design_is_where_the_confidence_is_just_reached_whatever_designs_differ_by():
    class Ends(Draws):
        """A limit that ends somewhere else in each of ten draws."""

        models = torch.nn.ModuleList([torch.nn.Identity()])

        def forward(self, Z):
            ends = torch.linspace(0.5, 0.95, 10, dtype=torch.float64)
            return Sampled(Z.expand(10, *Z.shape), ends.reshape(-1, *[1] * Z.dim()) - Z)

    grid = torch.linspace(0, 1, 1001, dtype=torch.float64).reshape(-1, 1, 1)
    for widest in (1.0, 100.0):
        function = FeasibleValue(Ends(), line(0.0, widest), confidence=0.8)
        best = grid[int(function(grid).argmax())].item()
        assert 0.57 < best < 0.61  # 8 of 10 draws keep the limit up to 0.6
