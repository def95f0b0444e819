"""Acquisition functions by name, including those that BoTorch lacks.

Notation
    Z (n m)        points of the unit cube
    μ, σ           posterior mean and standard deviation of what is maximized, in use
    β              weight of σ in an upper confidence bound μ + βσ
    X_pending      designs without a value, which the next design should keep away from
"""

import inspect
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, cast, runtime_checkable

import torch
from botorch.acquisition.acquisition import AcquisitionFunction
from botorch.acquisition.analytic import (
    LogExpectedImprovement,
    PosteriorMean,
    UpperConfidenceBound,
)
from botorch.acquisition.logei import qLogNoisyExpectedImprovement
from botorch.models.gpytorch import GPyTorchModel
from botorch.models.model import Model
from jaxtyping import Float, Int
from torch import Tensor

from airbo.acquisition.gain import ExpectedGain
from airbo.acquisition.improvement import LogImprovement, MeasureDraws
from airbo.measures import InSpec
from airbo.measures.posterior import MeasureModel
from airbo.models import UncertainInputGP
from airbo.theory import model_information_gain, rkhs_norm, ucb_beta
from airbo.uncertainty import InputUncertainty

MOST_KNOWN = 64
"""Designs that a further experiment may make the recommended one."""


# -- what the optimizer knows


@dataclass(frozen=True)
class Situation:
    """What the optimizer knows when it chooses the next design, in the unit cube."""

    X_observed: Float[Tensor, "n m"]
    """Designs with an observed value."""
    X_pending: Float[Tensor, "p m"] | None = None
    """Designs without a value: proposed and not told yet, or failed."""
    uncertainty: InputUncertainty | None = None
    """The uncertainty of pending designs; None: that of most observations."""


@runtime_checkable
class Acquisition(Protocol):
    """Builds a BoTorch acquisition function for a fitted model."""

    def __call__(self, model: Model, situation: Situation) -> AcquisitionFunction:
        """Build the function whose maximum is the next design."""


def most_promising(model: Model, Z: Float[Tensor, "n m"], most: int) -> Int[Tensor, "k"]:
    """Return the positions of the points that may be best: those with the largest mean + std."""
    if len(Z) <= most:
        return torch.arange(len(Z))
    with torch.no_grad():
        parts: list[Any] = [model.posterior(part.unsqueeze(-2)) for part in Z.split(256)]
        # μ + σ, point by point: joint posteriors of many points would cost their square
        bounds = [p.mean.flatten() + p.variance.flatten().clamp_min(0).sqrt() for p in parts]
    return torch.cat(bounds).topk(most).indices


def with_pending(model: Any, situation: Situation) -> Model:
    """Return the model as if each pending design had given its expected value.

    The posterior mean stays the same. The standard deviation shrinks around pending designs, so
    that the next design goes elsewhere.
    """
    X = situation.X_pending
    if X is None:
        return model
    if isinstance(model, MeasureModel):
        return model.with_pending(X, situation.uncertainty)
    under: dict[str, Any] = {}
    if isinstance(model, UncertainInputGP):
        under["uncertainty"] = situation.uncertainty or model.features.uncertainties[0]
    # y = μ(X): a value that was expected leaves μ as it is, and takes away variance
    with torch.no_grad():
        expected = model.posterior(X, **under).mean
    return cast(Model, model.condition_on_observations(X, expected, **under))


# -- strategies


@dataclass(frozen=True)
class UCB:
    r"""Upper confidence bound :math:`\mu + \beta\sigma`; pending designs count as observed."""

    beta: float = 2.0
    """Exploration weight; 2.0 in the paper."""

    def __post_init__(self) -> None:
        if not 0 <= self.beta < float("inf"):
            raise ValueError(f"beta must be finite and >= 0, got {self.beta}.")

    def __call__(self, model: Model, situation: Situation) -> AcquisitionFunction:
        """Build the bound; the ``beta`` of BoTorch is the square of the paper's β."""
        # μ + βσ after the pending designs
        return UpperConfidenceBound(with_pending(model, situation), beta=self.beta**2)


@dataclass(frozen=True)
class RandomizedUCB:
    r"""Upper confidence bound whose β is resampled for every design.

    .. math:: \beta^2 \sim \mathrm{Exp}, \quad \mathbb E\, \beta^2 = \texttt{mean\_square}

    A small β exploits. A large β explores where the model knows least, even if the model claims to
    be nearly certain there: with few observations it may be overconfident. There are regret bounds
    for other distributions of β² (Gamma: Berk 2020; a shifted exponential: Takeno 2023).
    """

    mean_square: float = 8.0
    """Mean of β²; 4.0 in the paper, where β is 2."""

    def __post_init__(self) -> None:
        if not 0 <= self.mean_square < float("inf"):
            raise ValueError(f"mean_square must be finite and >= 0, got {self.mean_square}.")

    def __call__(self, model: Model, situation: Situation) -> AcquisitionFunction:
        """Draw β and build the bound."""
        return UCB(self.draw_beta())(model, situation)

    def draw_beta(self) -> float:
        """Draw β from torch's generator, which the optimizer seeds."""
        # β² ~ Exp with this mean
        square = self.mean_square * torch.empty((), dtype=torch.float64).exponential_().item()
        return math.sqrt(square)


@dataclass(frozen=True)
class KnowledgeGradient:
    """The experiment that is expected to raise the best mean most: the default.

    It lies at a new design that may be better, or at a good one that is not known well. Measures
    other than the mean, and models that are not airbo's, have no closed form of this gain: measures
    are searched by their expected improvement, as with ``EI``, and models as with
    ``RandomizedUCB``.

    A share within two limits falls to both sides of its best level, so the level has to be known
    well. Every second experiment is made where the expected share is largest, unless designs are
    pending.
    """

    def __call__(self, model: Model, situation: Situation) -> AcquisitionFunction:
        """Build the gain over the best known designs."""
        if isinstance(model, MeasureModel):
            # E m(x) where an even number of designs is known, otherwise E (m(x) - max_i m(x_i))₊
            two_sided = isinstance(model.measure, InSpec) and len(model.measure.sides) == 2
            is_even = situation.X_pending is None and len(situation.X_observed) % 2 == 0
            return PosteriorMean(model) if two_sided and is_even else EI()(model, situation)
        if not isinstance(model, UncertainInputGP):
            return RandomizedUCB()(model, situation)
        # E max_i μ_i after one more experiment, over the best known designs and itself
        informed = cast(UncertainInputGP, with_pending(model, situation))
        known = situation.X_observed[most_promising(informed, situation.X_observed, MOST_KNOWN)]
        return ExpectedGain(informed, known, situation.uncertainty)


@dataclass(frozen=True)
class TheoryUCB:
    """Upper confidence bound with the β_n of the paper's main theorem."""

    b: float | None = None
    """Bound on the RKHS norm of the expected value; by default the norm of the posterior mean."""
    noise_ratio: float = 1.0
    """Scatter from noise and unseen inputs, relative to the noise that the model has learned."""
    delta: float = 0.1
    """Probability with which the confidence bound may fail."""

    def __call__(self, model: Model, situation: Situation) -> AcquisitionFunction:
        """Build the bound with the information gain of the model's observations."""
        if not isinstance(model, GPyTorchModel):
            raise ValueError(
                "The β_n of the theorem holds for the mean only, not for other measures."
            )
        return UCB(self.beta(model))(model, situation)

    def beta(self, model: GPyTorchModel) -> float:
        """Return β_n for a fitted model."""
        # β_n = b + noise_ratio √(2 (γ_n + 1 + ln 1/δ)), γ_n the information gain of the data
        b = rkhs_norm(model) if self.b is None else self.b
        return ucb_beta(model_information_gain(model), b, self.noise_ratio, self.delta)


@dataclass(frozen=True)
class EI:
    """Expected improvement on the best posterior mean so far; noisy EI if designs are pending.

    A measure other than the mean is compared draw by draw: its improvement is over the best of the
    known designs, and of those pending, in the same draw of f.
    """

    def __call__(self, model: Model, situation: Situation) -> AcquisitionFunction:
        """Build LogEI, or qLogNEI."""
        if isinstance(model, MeasureModel):
            # log E (m_s(x) - max_i m_s(x_i))₊ over draws s
            known = [X for X in (situation.X_observed, situation.X_pending) if X is not None]
            return LogImprovement(MeasureDraws(model), torch.cat(known))
        # log E (F(x) - max_i μ_i)₊
        if situation.X_pending is None:
            return LogExpectedImprovement(model, best_f=_best_mean(model, situation))
        return qLogNoisyExpectedImprovement(
            model, X_baseline=situation.X_observed, X_pending=situation.X_pending
        )


@dataclass(frozen=True)
class FromFactory:
    """A user's own BoTorch acquisition.

    airbo calls the factory with the model, and with those of ``X_observed``, ``X_baseline`` (the
    same), ``X_pending`` and ``best_f`` (the best posterior mean at observed designs) that it has
    arguments for. Pending designs count as observed if it has no argument ``X_pending``.
    """

    factory: Callable[..., AcquisitionFunction]

    def __post_init__(self) -> None:
        arguments = list(inspect.signature(self.factory).parameters.values())
        if not arguments or arguments[0].kind is inspect.Parameter.KEYWORD_ONLY:
            raise TypeError("The acquisition factory must take the model as its first argument.")
        for p in arguments[1:]:
            if p.name not in _OFFERED and p.default is p.empty and p.kind not in _VARIADIC:
                raise TypeError(
                    f"The acquisition factory asks for {p.name!r}; besides the model it can have "
                    f"{', '.join(_OFFERED)}."
                )

    def __call__(self, model: Model, situation: Situation) -> AcquisitionFunction:
        """Call the factory with the arguments that it has."""
        # what the factory names of all that is offered; without X_pending, the model knows it
        wanted = set(list(inspect.signature(self.factory).parameters)[1:]) & set(_OFFERED)
        if "X_pending" not in wanted:
            model = with_pending(model, situation)
        given = {name: _OFFERED[name](model, situation) for name in wanted}
        made = self.factory(model, **given)
        if not isinstance(made, AcquisitionFunction):
            raise TypeError(
                f"The acquisition factory must return a BoTorch acquisition, got {made!r}."
            )
        return made


def _best_mean(model: Any, situation: Situation) -> Float[Tensor, ""]:
    with torch.no_grad():
        return model.posterior(situation.X_observed).mean.max()


_OFFERED: dict[str, Callable[[Model, Situation], Any]] = {
    "X_observed": lambda model, situation: situation.X_observed,
    "X_baseline": lambda model, situation: situation.X_observed,
    "X_pending": lambda model, situation: situation.X_pending,
    "best_f": _best_mean,
}
_VARIADIC = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)

ACQUISITIONS: dict[str, Acquisition] = {
    "default": KnowledgeGradient(),
    "knowledge-gradient": KnowledgeGradient(),
    "ucb-random": RandomizedUCB(),
    "ucb": UCB(),
    "ucb-theory": TheoryUCB(),
    "ei": EI(),
}
OWN = (UCB, RandomizedUCB, KnowledgeGradient, TheoryUCB, EI)
"""Classes that hold only plain numbers, so that they can be saved as JSON."""


def find_acquisition(given: object) -> Acquisition:
    """Return the acquisition of this name, or wrap a factory."""
    if isinstance(given, (*OWN, FromFactory)):
        return given
    if isinstance(given, str) and given in ACQUISITIONS:
        return ACQUISITIONS[given]
    if given in OWN:
        raise TypeError(
            f"acquisition is the class {given!r}; pass an object, such as UCB(beta=2.0)."
        )
    if callable(given):
        return FromFactory(given)
    raise ValueError(
        f"acquisition must be one of {', '.join(map(repr, ACQUISITIONS))} or a function that makes "
        f"a BoTorch acquisition, got {given!r}."
    )
