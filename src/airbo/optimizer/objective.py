"""What makes a design good: a measure of the values that a surrogate models."""

from dataclasses import dataclass
from typing import Any

from botorch.models.gpytorch import GPyTorchModel
from botorch.models.model import Model

from airbo.acquisition import TheoryUCB
from airbo.measures import Mean, Measure, check_measure
from airbo.measures.posterior import Effort, MeasureModel, Noise
from airbo.models import ERBFGP, SKLGP, NominalGP
from airbo.optimizer.search import reproducible
from airbo.optimizer.surrogate import Surrogate, SurrogateFactory

_WITHOUT_F = (SKLGP, ERBFGP, NominalGP)


@dataclass(frozen=True)
class Objective:
    """A measure of values over where designs land when they are used."""

    surrogate: Surrogate
    """Makes the model of the values."""
    measure: Measure
    """What counts, in the user's units and direction."""
    noise: Noise = "measurement"
    """Whether observation noise counts as a property of the product."""
    seed: int = 0
    """Fixes the draws."""

    def __post_init__(self) -> None:
        check_measure(self.measure)
        if self.noise not in ("measurement", "product"):
            raise ValueError(f"noise must be 'measurement' or 'product', got {self.noise!r}.")
        check_knows_f(self.surrogate.build, self.measure)

    @property
    def is_mean(self) -> bool:
        """Whether the surrogate itself answers."""
        return isinstance(self.measure, Mean)

    def judged(self, model: GPyTorchModel, unit: float, effort: Effort) -> Model:
        """Return what a fitted model says about the measure, larger being better.

        Args:
            model: What the surrogate made of the observations.
            unit: What it counts values in.
            effort: How finely.
        """
        if self.is_mean:
            return model
        inside = self.measure.inside(self.surrogate.sign, unit)
        with reproducible(self.seed, 0):
            where = self.surrogate.deployment_in_cube
            return MeasureModel(model, inside, where, self.noise, effort)

    def factor(self, unit: float) -> float:
        """Return what turns the measure inside into the user's."""
        return self.measure.factor(self.surrogate.sign, unit)


def check_knows_f(build: SurrogateFactory, measure: Measure) -> None:
    """Refuse a surrogate that cannot tell the values of f apart, where more than the mean counts.

    Of a user's own surrogate, only the model shows it.
    """
    if build in _WITHOUT_F and not isinstance(measure, Mean):
        raise ValueError(
            f"{build.__name__} has no model of f itself, which every measure but the mean needs. "
            "Use surrogate='default', 'ugp' or 'mmd'."
        )


def check_acquisition(acquisition: Any, measure: Measure) -> None:
    """Refuse an acquisition that is about the mean only."""
    if isinstance(acquisition, TheoryUCB) and not isinstance(measure, Mean):
        raise ValueError(
            "acquisition='ucb-theory' has its β from a theorem about the mean; with "
            f"measure={measure} use 'ucb-random', 'ucb' or 'ei'."
        )
