"""What a model of f says about a measure: draws, as a BoTorch model whose acquisitions take it.

Notation
    X (*batch q d)       designs; r base draws stand for one executed input
    base (s r + 1)       base draws of s executed inputs, and one column more for the noise
    x' (*batch q s d)    executed inputs, the same base draws at every design
    S = 2 p              draws of f, in p pairs of opposite deviations
    values (S *batch q s)  draws of f(x'), y = f(x') + ζ where the noise belongs to the product
    m(y) (S *batch q)    a measure of the values over their last dimension

So the posterior of a measure is S draws, each a smooth function of the design. Their mean and
variance are what BoTorch's acquisitions ask for.
"""

import math
from dataclasses import dataclass, replace
from typing import Any, Literal, cast, get_args

import torch
from botorch.models.model import Model
from botorch.posteriors.posterior import Posterior
from botorch.sampling.base import MCSampler
from botorch.sampling.get_sampler import GetSampler
from jaxtyping import Float
from torch import Size, Tensor

from airbo.measures.kinds import CVaR, Mean, Measure, Quantile, Worst
from airbo.measures.spread import with_local_spread
from airbo.models import UncertainInputGP
from airbo.models.draws import FunctionDraws, check_has_function
from airbo.models.noise import unseen_input_noise
from airbo.observed import check_choice
from airbo.uncertainty import InputUncertainty, base_draws

Noise = Literal["measurement", "product"]
"""Whether observation noise belongs to the measurement, or to the product and so to its values."""


def check_noise(given: object) -> Noise:
    """Return what noise belongs to, or say what was expected."""
    check_choice("noise", given, *get_args(Noise))
    return cast(Noise, given)


@dataclass(frozen=True)
class Effort:
    """How finely a measure is worked out."""

    n_pairs: int
    """Pairs of draws of f."""
    n_executed: int
    """Executed inputs that stand for P_x, or more: see ``n_in_tail``."""
    n_in_tail: int = 0
    """Executed inputs, at least, beyond a quantile or in the tail that a measure is about."""
    smooth: bool = False
    """Whether limits are soft, so that a search finds its way."""

    @property
    def n_values(self) -> int:
        """How many values of f a design takes, unless its measure is about a thin tail."""
        return 2 * self.n_pairs * self.n_executed

    def n_executed_for(self, measure: Measure) -> int:
        """Return how many executed inputs stand for P_x where a measure is taken over it."""
        if isinstance(measure, Worst) and not self.smooth:
            return WORST_TAKES * self.n_executed
        if not (self.n_in_tail and isinstance(measure, Quantile | CVaR)):
            return self.n_executed
        least = self.n_in_tail / (1 - measure.level)
        # Sobol sequences are even where their length is a power of 2
        return max(self.n_executed, 2 ** math.ceil(math.log2(least)))


SEARCH = Effort(n_pairs=32, n_executed=32, smooth=True)
"""While looking for a design."""
RECOMMEND = replace(SEARCH, n_executed=128)
"""While looking for the design to recommend: few executed inputs would shift the best one."""
COARSE = replace(SEARCH, smooth=False, n_in_tail=1)
"""To rank many designs."""
FINE = Effort(n_pairs=128, n_executed=512, n_in_tail=5)
"""For numbers that people see."""
WORST_TAKES = 4
"""How many times as many executed inputs it takes to find the worst of them."""
FOR_SHARES = Effort(n_pairs=128, n_executed=2048)
"""For shares near 0 and 1."""


class MeasurePosterior(Posterior):
    """Draws of a measure at designs."""

    def __init__(
        self,
        draws: Float[Tensor, "S *batch q 1"],
        variance: Float[Tensor, "*batch q 1"] | None = None,
    ) -> None:
        """Hold draws, which count alike; by default their variance is that of the posterior."""
        self.draws = draws
        self._variance = variance

    @property
    def mean(self) -> Float[Tensor, "*batch q 1"]:
        """Mean over draws."""
        return self.draws.mean(0)

    @property
    def variance(self) -> Float[Tensor, "*batch q 1"]:
        """Variance over draws: what the model does not know, or what it can still learn."""
        return self.draws.var(0) if self._variance is None else self._variance

    def quantile(self, value: Tensor) -> Tensor:
        """Return quantiles over draws."""
        return self.draws.quantile(value, dim=0)

    def rsample(self, sample_shape: Size | None = None) -> Tensor:
        """Return some of the draws, at random; all if there are to be as many."""
        shape = Size([1]) if sample_shape is None else sample_shape
        n, S = shape.numel(), len(self.draws)
        which = torch.arange(S) if n == S else torch.randint(S, (n,))
        return self.draws[which].reshape(*shape, *self.draws.shape[1:])

    def _extended_shape(self, sample_shape: Size = Size()) -> Size:  # noqa: B008
        return Size([*sample_shape, *self.draws.shape[1:]])

    @property
    def batch_range(self) -> tuple[int, int]:
        """The dimensions of batches."""
        return (0, -2)

    @property
    def device(self) -> torch.device:
        """Of the draws."""
        return self.draws.device

    @property
    def dtype(self) -> torch.dtype:
        """Of the draws."""
        return self.draws.dtype


class AllDraws(MCSampler):
    """Takes every draw once, the same ones at all designs."""

    def forward(self, posterior: Posterior) -> Tensor:
        """Return the draws."""
        assert isinstance(posterior, MeasurePosterior)
        return posterior.draws

    def _update_base_samples(self, posterior: Posterior, base_sampler: MCSampler) -> None:
        """Do nothing: the draws are those of the model."""


@GetSampler.register(MeasurePosterior)  # type: ignore[untyped-decorator]
def _all_draws(posterior: MeasurePosterior, sample_shape: Size, **_: Any) -> AllDraws:
    return AllDraws(Size([len(posterior.draws)]), seed=0)


class MeasureModel(Model):
    """Posterior of a measure of f(x') over P_x, from a Gaussian process over f.

    Draws of f are fixed when the model is made, with torch's random numbers, and so are the base
    draws of P_x. A draw of the measure is then a function of the design, with a gradient, and draws
    of many designs go together, as batches, pending designs and several outcomes need it.
    """

    def __init__(
        self,
        model: Any,
        measure: Measure,
        uncertainty: InputUncertainty | None = None,
        noise: Noise = "measurement",
        effort: Effort = SEARCH,
        n_believed: int = 0,
    ) -> None:
        """Look at ``model`` through a measure.

        Args:
            model: A fitted surrogate that knows f itself: ``ExpectationGP``, ``UGP`` or ``MMDGP``.
            measure: What counts, for values as the model sees them: larger is better.
            uncertainty: Where designs land; by default what ``model.posterior`` refers to.
            noise: Whether observation noise is a property of the product.
            effort: How many draws.
            n_believed: How many observations, the last ones, are what the model expects of designs.
        """
        super().__init__()
        self.model: UncertainInputGP = check_has_function(model)
        self.measure, self.noise, self.effort = measure, noise, effort
        self._n_believed = n_believed
        self.uncertainty = (
            uncertainty or self.model.deployment or self.model.features.uncertainties[0]
        )
        d = self.model.features.d
        # the measure that is meant: noise and unbounded errors have no worst value
        self._measure = over(measure, self.uncertainty, d, noise == "product")
        n = effort.n_executed_for(self._measure)
        if self.uncertainty.n_base(d) == 0 and noise == "measurement":
            n = 1  # the executed input is the design
        # one set of base draws for all designs: common random numbers make a draw smooth in X
        self._base = base_for(self._measure, self.uncertainty, d, n)
        self._deviation = noise_deviation(self.model) if noise == "product" else None
        self._draws = FunctionDraws(self.model, effort.n_pairs, n_believed)

    @property
    def n_values(self) -> int:
        """How many values of f a design takes."""
        return 2 * self.effort.n_pairs * len(self._base)

    @property
    def _learns_means(self) -> bool:
        """Whether a search explores, and experiments land like the product.

        Such experiments teach the mean over P_x, but hardly what f does within P_x.
        """
        return self.effort.smooth and self.uncertainty == self.model.features.uncertainties[0]

    @property
    def num_outputs(self) -> int:
        """One measure."""
        return 1

    @property
    def batch_shape(self) -> Size:
        """One model."""
        return Size()

    def posterior(
        self,
        X: Float[Tensor, "*batch q d"],
        output_indices: list[int] | None = None,
        observation_noise: bool | Tensor = False,
        posterior_transform: Any = None,
    ) -> Any:
        """Return draws of the measure at designs.

        Args:
            X: Designs, as the model sees them.
            output_indices: As in BoTorch; there is one output.
            observation_noise: As in BoTorch; a measure has none.
            posterior_transform: As in BoTorch.
        """
        if isinstance(self.measure, Mean):
            # E f(x') of a draw, by expected waves
            expected = self._draws.expected(X, self.uncertainty)  # (S, *batch, q)
            posterior = MeasurePosterior(expected.unsqueeze(-1))
        else:
            values = self.values(X)  # (S, *batch, q, s)
            draws, variance = self._measured(values).unsqueeze(-1), None
            # an experiment at x teaches E f(x'), so a search counts what that explains of m(y):
            # Var m - Var[m | E f(x')], not Var m, most of which no experiment here would remove
            if self._learns_means:
                variance = explained_variance(draws, values.mean(-1).unsqueeze(-1))
            posterior = MeasurePosterior(draws, variance)
        return posterior if posterior_transform is None else posterior_transform(posterior)

    def values(self, X: Float[Tensor, "*batch q d"]) -> Float[Tensor, "S *batch q s"]:
        """Return draws of the values at the executed inputs of designs."""
        # f(x') at x' = P_x(base)
        values = with_local_spread(self._draws(self.uncertainty.perturb(X, self._base)))
        if self._deviation is None:
            return values
        # y = f(x') + σ z, z = Φ⁻¹(u) from the last column of the base draws
        return values + self._deviation * torch.special.ndtri(self._base[:, -1])

    def at_executed(
        self, X: Float[Tensor, "s d"], n: int, z: Float[Tensor, " s"]
    ) -> Float[Tensor, "S s"]:
        """Return draws of the values at executed inputs of one design.

        Args:
            X: Executed inputs, of which the first ``n`` are draws of P_x.
            n: See above.
            z: Standard normal numbers, for noise where it counts.
        """
        values = with_local_spread(self._draws(X), n=n)
        return values if self._deviation is None else values + self._deviation * z

    @property
    def noise_variance(self) -> Float[Tensor, ""]:
        """Variance of the noise that counts as a property of the product."""
        if self._deviation is None:
            return torch.zeros((), dtype=torch.float64)
        return self._deviation.square()

    def with_pending(
        self, X: Float[Tensor, "p d"], under: InputUncertainty | None = None
    ) -> "MeasureModel":
        """Return the model as if designs had given what it expects of them.

        Args:
            X: Designs whose values are not known yet.
            under: What they are tried under; by default as most observations were.
        """
        under = under or self.model.features.uncertainties[0]
        # y = μ(X): the mean stays, the variance shrinks around X
        with torch.no_grad():
            expected = self.model.posterior(X, uncertainty=under).mean
        informed = self.model.condition_on_observations(X, expected, uncertainty=under)
        n = self._n_believed + len(X)
        return MeasureModel(informed, self.measure, self.uncertainty, self.noise, self.effort, n)

    def _measured(self, values: Tensor) -> Tensor:
        if not self.effort.smooth:
            return self._measure.of(values)
        transform: Any = getattr(self.model, "outcome_transform", None)
        scale = 1.0 if transform is None else transform.stdvs.item()
        return self._measure.smooth(values, scale)


def explained_variance(
    draws: Float[Tensor, "S *shape"], known: Float[Tensor, "S *shape"]
) -> Float[Tensor, "*shape"]:
    r"""Return how much the variance of draws would drop if something else were known of each.

    .. math:: \mathrm{Cov}(m, g)^2 / \mathrm{Var}\, g + \mathrm{Cov}(m, h)^2 / \mathrm{Var}\, h

    where h is the part of g² that no line in g explains. A share within two limits falls to both
    sides of its best design, where no line explains anything.
    """
    m, g = (v - v.mean(0) for v in (draws, known))
    g = g / g.std(0).clamp_min(1e-150)
    # h = g² - E g² - Cov(g², g) g, for g of variance 1
    square = g.square() - g.square().mean(0)
    h = square - (square * g).sum(0) / (len(g) - 1) * g
    # Cov(m, g)² + Cov(m, h)² / Var h over the S draws
    line, curve = ((m * v).sum(0).square() / (len(m) - 1) for v in (g, h))
    return line / (len(m) - 1) + curve / h.square().sum(0).clamp_min(1e-300)


def noise_deviation(model: UncertainInputGP) -> Float[Tensor, ""]:
    """Return the standard deviation of observation noise alone, in the units of the values."""
    noise = unseen_input_noise(model.likelihood)
    if noise is None:
        raise ValueError(
            "noise='product' needs surrogate='default': "
            f"{type(model).__name__} cannot tell observation noise from unseen inputs."
        )
    transform: Any = getattr(model, "outcome_transform", None)
    scale = 1.0 if transform is None else transform.stdvs.squeeze()
    # σ of the standardized values, times their scale
    return noise.noise.detach().mean().sqrt() * scale


# -- which executed inputs stand for P_x


def base_for(
    measure: Measure, uncertainty: InputUncertainty, d: int, n: int
) -> Float[Tensor, "s r"]:
    """Return base draws for executed inputs, with one more column, for noise.

    Where the support is bounded, half of those for ``Worst`` lie on its faces and corners.
    """
    r = uncertainty.n_base(d)
    base = base_draws(n, r + 1)
    if not isinstance(measure, Worst):
        return base
    half = n // 2
    # (¼, ¾) becomes (0, 1), and what lies outside becomes an edge
    edges = (2 * base[:half, :r] - 0.5).clamp(0, 1)
    return torch.cat([torch.cat([edges, base[:half, r:]], -1), base[half:]])


def over(measure: Measure, uncertainty: InputUncertainty, d: int, noisy: bool) -> Measure:
    """Return the measure that is meant where designs with ``d`` columns land like this."""
    # noise has no bounds either
    return measure.over(bounded=not noisy and uncertainty.is_bounded(d))
