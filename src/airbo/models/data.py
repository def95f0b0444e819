"""What a surrogate is built from: data that were checked, and the parts made for them."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from botorch.models.transforms import Standardize
from botorch.models.transforms.outcome import OutcomeTransform
from botorch.utils.types import _DefaultType
from gpytorch.kernels import Kernel
from gpytorch.likelihoods import Likelihood
from jaxtyping import Float
from torch import Tensor

from airbo.embeddings import Embedding, Estimator, Quadrature
from airbo.embeddings.features import Features
from airbo.models import rows
from airbo.uncertainty import Exact, InputUncertainty

Uncertainties = InputUncertainty | Sequence[InputUncertainty | None] | None
"""One uncertainty for all observations, or one per observation; None: hit exactly."""


class Parts(NamedTuple):
    """What makes one surrogate different from another."""

    features: Features
    """What it knows of P_x."""
    kernel: Kernel
    """How it compares features."""
    likelihood: Likelihood | None
    """What an observation adds; None: BoTorch's default."""


@dataclass(frozen=True)
class Given:
    """What a surrogate makes its parts from, besides the data."""

    uncertainties: list[InputUncertainty]
    bounds: Float[Tensor, "2 d"]
    estimator: Estimator | None
    base_kernel: Kernel | None
    likelihood: Likelihood | None
    seed: int
    known_noise: Float[Tensor, "*batch n"] | None = None
    """Variances of the observation noise, in the units of the model; None: unknown."""

    @property
    def d(self) -> int:
        """Number of columns of a design."""
        return self.bounds.shape[-1]

    def embedding(self, default: Callable[[int], Kernel]) -> Embedding:
        """Embed P_x under the base kernel, or under the default one for ``d`` columns."""
        base_kernel = (self.base_kernel or default(self.d)).to(self.bounds)
        estimator = self.estimator or Quadrature()
        return estimator.embed(self.uncertainties, base_kernel, self.bounds, self.seed)


@dataclass(frozen=True)
class Prepared:
    """Training data that were checked, numbered, transformed and folded."""

    inputs: tuple[Tensor, ...]
    """Rows, as :mod:`airbo.models.rows` describes them."""
    Y: Float[Tensor, "*batch n 1"]
    """Values, in the units of the model."""
    Yvar: Float[Tensor, "*batch n 1"] | None
    uncertainties: list[InputUncertainty]
    bounds: Float[Tensor, "2 d"]
    outcome_transform: OutcomeTransform | None

    @classmethod
    def of(
        cls,
        train_X: Tensor,
        train_Y: Tensor,
        uncertainty: Uncertainties,
        bounds: Tensor | None,
        deployment: InputUncertainty | None,
        train_Yvar: Tensor | None,
        outcome_transform: OutcomeTransform | _DefaultType | None,
        fold: bool,
    ) -> "Prepared":
        """Prepare what a surrogate is given; see ``UncertainInputGP``."""
        bounds = check_data(train_X, train_Y, train_Yvar, bounds)
        inputs, uncertainties = number_uncertainties(train_X, uncertainty, deployment)
        if isinstance(outcome_transform, _DefaultType):
            outcome_transform = _standardize(train_Y)
        Y, Yvar = train_Y, train_Yvar
        if outcome_transform is not None:
            Y, Yvar = outcome_transform.train()(Y=train_Y, Yvar=train_Yvar, X=train_X)
        if fold:
            if Yvar is not None or train_X.dim() > 2:
                raise ValueError("fold_replicates takes one data set and no train_Yvar.")
            inputs, Y = rows.folded(inputs, Y)
        return cls(inputs, Y, Yvar, uncertainties, bounds, outcome_transform)

    @property
    def is_folded(self) -> bool:
        """Whether rows stand for several observations."""
        return len(self.inputs) > 2

    def given(
        self,
        estimator: Estimator | None,
        base_kernel: Kernel | None,
        likelihood: Likelihood | None,
        seed: int,
    ) -> Given:
        """Add what the parts of a surrogate are made from."""
        noise = None if self.Yvar is None else self.Yvar.squeeze(-1)
        return Given(
            self.uncertainties, self.bounds, estimator, base_kernel, likelihood, seed, noise
        )


def check_data(
    train_X: Tensor, train_Y: Tensor, train_Yvar: Tensor | None, bounds: Tensor | None
) -> Float[Tensor, "2 d"]:
    """Refuse data that no surrogate can use; return the bounds."""
    data = {"train_X": train_X, "train_Y": train_Y, "train_Yvar": train_Yvar}
    data = {
        name: given for name, given in data.items() if given is not None or name != "train_Yvar"
    }
    for name, given in {**data, "bounds": train_X if bounds is None else bounds}.items():
        _check_floating(name, given)
    if train_X.dim() < 2 or 0 in train_X.shape:
        raise ValueError(
            f"train_X must have shape (n, d), n and d >= 1, got {tuple(train_X.shape)}."
        )
    *batch, d = train_X.shape
    for name, given in data.items():
        assert given is not None
        if given.dtype != train_X.dtype:
            raise TypeError(
                f"{name} must have the dtype of train_X, {train_X.dtype}, got {given.dtype}."
            )
        if given is not train_X and given.shape != (*batch, 1):
            raise ValueError(
                f"{name} must have shape {(*batch, 1)}, as train_X, got {tuple(given.shape)}."
            )
        if not bool(torch.isfinite(given).all()):
            raise ValueError(f"{name} contains values that are not finite.")
    if train_Yvar is not None and bool((train_Yvar < 0).any()):
        raise ValueError(f"train_Yvar holds variances, >= 0, got {train_Yvar.min().item()}.")
    if bounds is None:
        return _bounds_of(train_X.reshape(-1, d))
    if bounds.shape != (2, d):
        raise ValueError(f"bounds must have shape (2, {d}), got {tuple(bounds.shape)}.")
    if not bool(torch.isfinite(bounds).all() and (bounds[0] < bounds[1]).all()):
        raise ValueError(f"bounds must be finite with low < high, got {bounds.tolist()}.")
    return bounds.to(train_X)


def number_uncertainties(
    train_X: Float[Tensor, "*batch n d"],
    uncertainty: Uncertainties,
    deployment: InputUncertainty | None = None,
) -> tuple[tuple[Tensor, ...], list[InputUncertainty]]:
    """Number the distinct uncertainties.

    Number 0 is that of most observations, and the last that of ``deployment``, if it is another
    one.

    Returns:
        The designs and, where observations differ in it, the numbers of their uncertainties; and
        the uncertainties.
    """
    n, d = train_X.shape[-2:]
    if not isinstance(uncertainty, InputUncertainty | list | tuple | None):
        raise TypeError(
            "uncertainty must be an airbo.uncertainty, a list with one per observation, or None, "
            f"got {uncertainty!r}."
        )
    if uncertainty is None or isinstance(uncertainty, InputUncertainty):
        each = [uncertainty or Exact()] * n
    else:
        each = [u or Exact() for u in uncertainty]
    if len(each) != n:
        raise ValueError(f"There are {n} observations but {len(each)} uncertainties.")
    first = {id(u): i for i, u in reversed(list(enumerate(each)))}  # most are one and the same
    for i in sorted(first.values()):
        if not isinstance(each[i], InputUncertainty):
            raise TypeError(f"Uncertainty {i} must be an airbo.uncertainty, got {each[i]!r}.")
        each[i].check_dim(d)
    kinds = {each[i]: each[i] for i in sorted(first.values())}
    one_of = {key: kinds[each[i]] for key, i in first.items()}
    count = Counter(id(one_of[id(u)]) for u in each)
    distinct = sorted(kinds.values(), key=lambda u: -count[id(u)])
    known = [*distinct, deployment] if deployment and deployment not in distinct else distinct
    if len(distinct) == 1:
        return (train_X,), known
    number = {id(u): i for i, u in enumerate(distinct)}
    numbers = train_X.new_tensor([number[id(one_of[id(u)])] for u in each]).unsqueeze(-1)
    return (train_X, numbers.expand(*train_X.shape[:-1], 1)), known


def _check_floating(name: str, given: object) -> None:
    if not isinstance(given, Tensor) or not given.is_floating_point():
        kind = given.dtype if isinstance(given, Tensor) else type(given).__name__
        raise TypeError(f"{name} must be a tensor of floating-point numbers, got {kind}.")


def _bounds_of(X: Float[Tensor, "n d"]) -> Float[Tensor, "2 d"]:
    """Return the range of the data; a column that does not vary gets a range of width 1."""
    low, high = X.amin(dim=0), X.amax(dim=0)
    flat = low == high
    return torch.stack([torch.where(flat, low - 0.5, low), torch.where(flat, high + 0.5, high)])


def _standardize(Y: Float[Tensor, "*batch n 1"]) -> Standardize:
    """Standardize values; values that differ only by rounding errors count as equal."""
    least = max(1e-12 * Y.abs().max().item(), 1e-300)
    return Standardize(m=1, batch_shape=Y.shape[:-2], min_stdv=least)
