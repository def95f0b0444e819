"""The objective: a measure of the values that a surrogate models."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from botorch.models.gpytorch import GPyTorchModel
from botorch.models.model import Model

from airbo.acquisition import TheoryUCB
from airbo.measures import InSpec, Mean, Measure, check_measure
from airbo.measures.posterior import Effort, MeasureModel, Noise, check_noise
from airbo.models import ERBFGP, SKLGP, EnergyGP, NominalGP, SlicedWassersteinGP
from airbo.optimizer.surrogate import Surrogate, SurrogateFactory
from airbo.outcomes import Limit, Want
from airbo.seeds import reproducible

_WITHOUT_F = (SKLGP, ERBFGP, EnergyGP, SlicedWassersteinGP, NominalGP)


@dataclass(frozen=True)
class Objective:
    """A measure of the values of designs under the uncertainty in use."""

    surrogate: Surrogate
    """Builds the model of the values."""
    measure: Measure
    """The measure, in the user's units and direction."""
    noise: Noise = "measurement"
    """Whether observation noise counts as a property of the product."""
    seed: int = 0
    """Makes the draws reproducible."""

    def __post_init__(self) -> None:
        check_measure(self.measure)
        check_noise(self.noise)
        check_knows_f(self.surrogate.build, self.measure)

    @property
    def is_mean(self) -> bool:
        """Whether the posterior of the surrogate is the answer already."""
        return isinstance(self.measure, Mean)

    def judged(self, model: GPyTorchModel, unit: float, effort: Effort) -> Model:
        """Return a model of the measure; larger values are better.

        Args:
            model: The fitted surrogate.
            unit: The unit of its values, see ``value_unit``.
            effort: How many draws to use.
        """
        return model if self.is_mean else self.drawn(model, unit, effort)

    def drawn(self, model: GPyTorchModel, unit: float, effort: Effort) -> MeasureModel:
        """Return draws of the measure, also of the mean; the arguments are those of ``judged``."""
        inside = self.measure.inside(self.surrogate.sign, unit)
        with reproducible(self.seed, "draws of f"):
            where = self.surrogate.deployment_in_cube
            return MeasureModel(model, inside, where, self.noise, effort)

    def factor(self, unit: float) -> float:
        """Return the factor from the measure inside to the measure in the user's units."""
        return self.measure.factor(self.surrogate.sign, unit)


def check_knows_f(build: SurrogateFactory, measure: Measure) -> None:
    """Refuse a surrogate without a model of f itself if the measure is not the mean.

    A user's own surrogate can be checked only when it has built its model.
    """
    if build in _WITHOUT_F and not isinstance(measure, Mean):
        raise ValueError(
            f"{build.__name__} has no model of f itself, which every measure but the mean needs. "
            "Use surrogate='default', 'ugp' or 'mmd'."
        )


def check_several(outcomes: Mapping[str, Want], acquisition: Any, build: SurrogateFactory) -> None:
    """Refuse what does not go together with limits or several objectives."""
    if len(outcomes) < 2:
        return
    if acquisition != "default":
        raise ValueError(
            "With limits or several objectives, designs are chosen by the expected improvement of "
            "the front: leave acquisition out."
        )
    for outcome in outcomes.values():
        check_knows_f(build, InSpec(0.0) if isinstance(outcome, Limit) else outcome.measure)


def check_acquisition(acquisition: Any, measure: Measure) -> None:
    """Refuse an acquisition that works for the mean only if the measure is another one."""
    if isinstance(acquisition, TheoryUCB) and not isinstance(measure, Mean):
        raise ValueError(
            "acquisition='ucb-theory' takes its β from a theorem about the mean. With "
            f"measure={measure} use 'ucb-random', 'ucb' or 'ei'."
        )
