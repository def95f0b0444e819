"""Which design to use, and what to expect of it."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from botorch.acquisition.analytic import PosteriorMean
from botorch.models.gpytorch import GPyTorchModel
from jaxtyping import Float
from torch import Tensor

from airbo.optimizer.record import History
from airbo.optimizer.search import best_design, without_numerical_warnings
from airbo.optimizer.surrogate import Surrogate
from airbo.space import Design


class TooLittleDataWarning(UserWarning):
    """The model cannot tell yet which design is best."""


@dataclass(frozen=True)
class Recommendation:
    """The design that the model holds best in expectation."""

    design: Design
    mean: float
    """Expected value of the design, in the user's units and direction."""
    std: float
    """Standard deviation of that expectation: what the model does not know."""


@dataclass(frozen=True)
class Predictor:
    """Tells what to expect of designs when they are used, in the user's direction."""

    surrogate: Surrogate
    model: GPyTorchModel
    """What the surrogate made of the observations."""
    unit: float
    """What the model counts values in."""

    def predict(self, Z: Float[Tensor, "n m"]) -> tuple[Float[Tensor, " n"], Float[Tensor, " n"]]:
        """Return mean and standard deviation of the expected value at points of the unit cube."""
        with torch.no_grad():
            posterior = self.model.posterior(Z)
        mean, variance = posterior.mean.squeeze(-1), posterior.variance.squeeze(-1)
        return self.surrogate.sign * self.unit * mean, self.unit * variance.sqrt()

    def best_of(self, designs: Sequence[Design]) -> Recommendation:
        """Recommend one of some designs."""
        means, stds = self.predict(self.surrogate.points.of(designs))
        best = int((self.surrogate.sign * means).argmax())
        return Recommendation(dict(designs[best]), means[best].item(), stds[best].item())

    def best_anywhere(self, history: History) -> Recommendation:
        """Recommend any design of the space."""
        cube, start = history.points.cube, history.points.of(history.tried)
        with without_numerical_warnings():
            Z = best_design(PosteriorMean(self.model), cube, start=start)
        return self.best_of(cube.to_designs(Z))

    def warn_if_blind(self, recommendation: Recommendation, history: History) -> None:
        """Warn where the model knows too little to prefer one design to another."""
        means, _ = self.predict(history.points.of(history.tried))
        n = len(history.known)
        if n < 3 or recommendation.std > (means.max() - means.min()).item():
            warnings.warn(
                f"After {n} observation(s) the model cannot tell this design from the others: its "
                f"expected value is {recommendation.mean:.4g} ± {recommendation.std:.2g}.",
                TooLittleDataWarning,
                stacklevel=3,
            )
