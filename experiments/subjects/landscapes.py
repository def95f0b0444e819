"""Twenty landscapes of an independent study of slips, with their published optima.

The study (M. Colley, hitl-mobo-robustness-tests, 2026) asks what it costs that a person does not
set what was asked for: x' = clip(x + N(0, (s · range)²)), y = f(x'), and the answer is used
exactly. All are maximized. Notation: xs are the first three columns, t is the last one.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import torch
from botorch.test_functions import synthetic
from jaxtyping import Float
from torch import Tensor

from airbo.problems import Problem
from airbo.uncertainty import Exact, InputUncertainty

Function = Callable[[Tensor], Tensor]
Ranges = tuple[tuple[float, float], ...]


@dataclass(frozen=True)
class Formula(Problem):
    """A function that is given by its formula."""

    name: str  # type: ignore[misc]  # of the object here, of the class in the library
    formula: Function
    ranges: Ranges
    direction: str = "maximize"  # type: ignore[assignment,misc]
    uncertainty: InputUncertainty = field(default_factory=Exact)
    n_samples: int = 2**13  # type: ignore[misc]

    @property
    def bounds(self) -> Float[Tensor, "2 d"]:
        return torch.tensor(self.ranges, dtype=torch.float64).T

    def __call__(self, X: Float[Tensor, "*batch n d"]) -> Float[Tensor, "*batch n"]:
        return self.formula(X)


Kind = Callable[..., synthetic.SyntheticTestFunction]


def values_of(kind: Kind, X: Tensor, **settings: int) -> Tensor:
    """Return one of BoTorch's test functions, which are minimized, at points of any shape."""
    anywhere = [(-1e9, 1e9)] * X.shape[-1]  # executed inputs may leave the range of the designs
    function = kind(dtype=X.dtype, bounds=anywhere, **settings)
    values: Tensor = function.evaluate_true(X.reshape(-1, X.shape[-1]))
    return values.reshape(X.shape[:-1])


def negated(kind: Kind, **settings: int) -> Function:
    """Return one of BoTorch's test functions, to be maximized."""
    return lambda X: -values_of(kind, X, **settings)


def schwefel(X: Float[Tensor, "*n d"]) -> Float[Tensor, "*n"]:
    """Return Schwefel's function: the best valley is far from the next best ones."""
    return (X * X.abs().sqrt().sin()).sum(-1) - 418.98288727243369 * X.shape[-1]


def bumps(X: Float[Tensor, "*n d"]) -> Float[Tensor, "*n"]:
    """Return the mean of one smooth bump per column."""
    return torch.exp(-(X - 0.5).square() / (2 * 0.15**2)).mean(-1)


def power(X: Float[Tensor, "*n d"]) -> Float[Tensor, "*n"]:
    """Return the mean of x^0.67 (Stevens' law)."""
    return X.clamp_min(0).pow(0.67).mean(-1)


def pointing(X: Float[Tensor, "*n d"]) -> Float[Tensor, "*n"]:
    """Return minus the mean time to point at a target (Fitts' law)."""
    return -(0.2 + 0.15 * torch.log2(X.clamp_min(0) + 1)).mean(-1)


def perceived(X: Float[Tensor, "*n d"]) -> Float[Tensor, "*n"]:
    """Return the mean perceived intensity (Fechner's law)."""
    return torch.log1p(X.clamp_min(0) / 0.01).mean(-1)


def practice(X: Float[Tensor, "*n 4"]) -> Float[Tensor, "*n"]:
    """Return minus the time of a task after practice: -(1 + 3m) (1 + 30t)^-(0.05 + 0.5m)."""
    m, t = X[..., :3].mean(-1), X[..., 3].clamp_min(0)
    return -(1 + 3 * m) * (1 + 30 * t).pow(-(0.05 + 0.5 * m))


def steering(X: Float[Tensor, "*n 4"]) -> Float[Tensor, "*n"]:
    """Return minus the cost of a path of length A and width W: -(0.1 + b A/W + 0.6 A W)."""
    first, second, third, t = X.unbind(-1)
    A, W = 0.5 + second, 0.05 + 0.95 * (first + third) / 2
    return -(0.1 + 0.5 * (1 - 0.5 * t) * A / W + 0.6 * A * W)


HEIGHTS = (0.5, 0.6, 0.7, 0.8, 0.9)
PHASES = (0.0, 0.37, 0.61, 0.13, 0.85)
ANGLES = (0.0, 1.26, 2.51, 3.77, 5.03)


def moving(X: Float[Tensor, "*n 4"]) -> Float[Tensor, "*n"]:
    """Return the highest of five cones whose places and heights change with t."""
    xs, t = X[..., :3], X[..., 3:]  # (..., 3), (..., 1)
    H, phase, angle = (X.new_tensor(v) for v in (HEIGHTS, PHASES, ANGLES))

    # h_k = H_k + 0.1 sin 2π(t + φ_k)
    heights = H + 0.1 * torch.sin(2 * math.pi * (t + phase))  # (..., 5)

    # c_kj = 0.5 + 0.3 cos(2πt + α_k + 2πj/3)
    j = torch.arange(3, dtype=X.dtype)
    turned = (2 * math.pi * t + angle).unsqueeze(-1) + 2 * math.pi * j / 3  # (..., 5, 3)
    centers = 0.5 + 0.3 * torch.cos(turned)

    # max_k [h_k - 3 ‖xs - c_k‖]
    return (heights - 3 * (xs.unsqueeze(-2) - centers).norm(dim=-1)).amax(-1)


@dataclass(frozen=True)
class Landscape:
    """A function on a box, and its largest value as it was published."""

    formula: Function
    ranges: Ranges
    best: float


def box(low: float, high: float, d: int) -> Ranges:
    return ((low, high),) * d


LANDSCAPES: dict[str, Landscape] = {
    "schwefel": Landscape(schwefel, box(-500.0, 500.0, 4), 0.0),
    "powell": Landscape(negated(synthetic.Powell, dim=4), box(-4.0, 5.0, 4), 0.0),
    "eggholder": Landscape(negated(synthetic.EggHolder), box(-512.0, 512.0, 2), 959.6407),
    "ackley": Landscape(negated(synthetic.Ackley, dim=4), box(-32.768, 32.768, 4), 0.0),
    "shekel-10": Landscape(negated(synthetic.Shekel, m=10), box(0.0, 10.0, 4), 10.536443),
    "griewank": Landscape(negated(synthetic.Griewank, dim=6), box(-600.0, 600.0, 6), 0.0),
    "hartmann-3": Landscape(negated(synthetic.Hartmann, dim=3), box(0.0, 1.0, 3), 3.86278),
    "hartmann-6": Landscape(negated(synthetic.Hartmann, dim=6), box(0.0, 1.0, 6), 3.32237),
    "branin": Landscape(negated(synthetic.Branin), box(0.0, 10.0, 2), -0.397887),
    "rosenbrock": Landscape(negated(synthetic.Rosenbrock, dim=4), box(-5.0, 10.0, 4), 0.0),
    "rastrigin": Landscape(negated(synthetic.Rastrigin, dim=4), box(-5.12, 5.12, 4), 0.0),
    "michalewicz": Landscape(negated(synthetic.Michalewicz, dim=5), box(0.0, math.pi, 5), 4.687658),
    "levy": Landscape(negated(synthetic.Levy, dim=11), box(-10.0, 10.0, 11), 0.0),
    "bumps": Landscape(bumps, box(0.0, 1.0, 4), 1.0),
    "power": Landscape(power, box(0.0, 1.0, 4), 1.0),
    "pointing": Landscape(pointing, box(0.0, 10.0, 4), -0.2),
    "perceived": Landscape(perceived, box(0.0, 1.0, 4), 4.615121),
    "practice": Landscape(practice, box(0.0, 1.0, 4), -0.605078),
    "steering": Landscape(steering, box(0.0, 1.0, 4), -0.487298),
    "moving": Landscape(moving, box(0.0, 1.0, 4), 1.0),
}
"""By name."""


def landscape(name: str, uncertainty: InputUncertainty | None = None) -> Formula:
    """Return a landscape as a problem, under an uncertainty of use."""
    found = LANDSCAPES[name]
    return Formula(name, found.formula, found.ranges, uncertainty=uncertainty or Exact())
