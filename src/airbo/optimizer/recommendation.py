"""What is said of designs: estimates of outcomes, evaluations, recommendations."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from airbo.measures import Measure
from airbo.measures.capability import Capability
from airbo.space import Design


class TooLittleDataWarning(UserWarning):
    """The model cannot tell yet which design is best."""


@dataclass(frozen=True)
class OutcomeEstimate:
    """What the model predicts for one outcome of a design."""

    mean: float
    """Expected value, or the measure that an objective has, in the user's units."""
    std: float
    """Its standard deviation (model uncertainty)."""
    within: float | None = None
    """Of a limit: the share of executed inputs that keep it, as in ``capability``."""
    within_std: float | None = None
    """The standard deviation of that share (model uncertainty)."""
    holds: float | None = None
    """Of a limit: the probability that the share is as large as it was asked to be."""
    capability: Capability | None = None
    """Share in spec, Cpk and ppm, of a limit and of an objective that counts by ``InSpec``."""

    def with_capability(self, capability: Capability | None) -> "OutcomeEstimate":
        """Add how well the outcome keeps within limits, if it has any."""
        if capability is None or self.holds is None:
            return replace(self, capability=capability)
        share, std = capability.share, capability.share_std
        return replace(self, within=share, within_std=std, capability=capability)


@dataclass(frozen=True)
class Recommendation:
    """The best design by the measure, according to the model; by default in expectation."""

    design: Design
    mean: float
    """The measure of the design, as the model expects it, in the user's units and direction; with
    several objectives, that of the first."""
    std: float
    """Its standard deviation (model uncertainty)."""
    capability: Capability | None = None
    """Share in spec, Cpk and ppm, where the measure is ``InSpec``; that of the first objective."""
    outcomes: Mapping[str, OutcomeEstimate] = field(default_factory=dict)
    """All outcomes by name."""
    holds: float | None = None
    """Probability that all limits are kept as often as required."""
    reason: str = ""
    """How the design was chosen, where there are limits or several objectives."""


@dataclass(frozen=True)
class Evaluation:
    """The posterior of a measure of one design."""

    design: Design
    measure: Measure
    mean: float
    """The measure of the design, as the model expects it, in the user's units and direction."""
    std: float
    """Its standard deviation (model uncertainty)."""
    interval: tuple[float, float]
    """The measure lies in this interval with a probability of 90% or more; the mean does."""
    capability: Capability | None = None
    """Share in spec, Cpk and ppm, where the measure is ``InSpec``."""
