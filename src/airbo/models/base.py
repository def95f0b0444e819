"""What all Gaussian processes over uncertain inputs share."""

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any, cast

import torch
from botorch.models import SingleTaskGP
from botorch.models.transforms import Standardize
from gpytorch import settings
from gpytorch.distributions import MultivariateNormal
from gpytorch.kernels import Kernel
from gpytorch.likelihoods import Likelihood
from jaxtyping import Float
from linear_operator import to_linear_operator
from torch import Tensor

from airbo.embeddings import Estimator
from airbo.embeddings.features import Features
from airbo.models.data import Given, Parts, Uncertainties, check_data, number_uncertainties
from airbo.models.likelihoods import UnseenInputLikelihood
from airbo.uncertainty import InputUncertainty

MAX_EAGER = 64
"""Number of designs up to which their covariances are worked out before they are asked for."""


class UncertainInputGP(SingleTaskGP):
    """Exact Gaussian process whose covariance compares features of P_x.

    A BoTorch model. It sees the unit cube: ``bounds`` say where the cube lies among the columns of
    ``train_X``, whatever their units, and designs and uncertainties are given in the same columns.
    ``Optimizer`` hands over points of the cube, with bounds 0 and 1 (see :mod:`airbo.space`).

    It differs from ``SingleTaskGP`` in one thing: between the designs and the kernel stand the
    features, which are computed once per design, and once per fit for the observations. A
    surrogate is one class with one method, ``parts``.
    """

    deployment: InputUncertainty | None
    """Uncertainty that ``posterior`` refers to unless told otherwise; None: that of most
    observations."""

    def __init__(
        self,
        train_X: Float[Tensor, "n d"],
        train_Y: Float[Tensor, "n 1"],
        uncertainty: Uncertainties = None,
        bounds: Float[Tensor, "2 d"] | None = None,
        estimator: Estimator | None = None,
        base_kernel: Kernel | None = None,
        likelihood: Likelihood | None = None,
        deployment: InputUncertainty | None = None,
        seed: int = 0,
        **unknown: Any,
    ) -> None:
        """Build the surrogate; fit it with ``botorch.fit_gpytorch_mll``.

        Args:
            train_X: Designs.
            train_Y: Observed values.
            uncertainty: Where the designs landed: one for all, or one per observation.
            bounds: The range of designs, row 0 low, row 1 high; by default that of ``train_X``.
            estimator: How P_x is embedded; by default ``Quadrature()``.
            base_kernel: Any GPyTorch kernel on the unit cube; each surrogate has its default.
            likelihood: By default Gaussian observation noise of unknown size.
            deployment: What the model predicts under; by default as most observations were made.
            seed: Fixes all draws.
            **unknown: Refused.
        """
        for name in unknown:
            raise TypeError(f"{type(self).__name__} got an unexpected argument {name!r}.")
        bounds = check_data(train_X, train_Y, bounds)
        inputs, uncertainties = number_uncertainties(train_X, uncertainty, deployment)
        given = Given(uncertainties, bounds, estimator, base_kernel, likelihood, seed)
        features, kernel, default_likelihood = self.parts(given)
        # values that differ by rounding errors only count as equal
        standardize = Standardize(m=1, min_stdv=max(1e-12 * train_Y.abs().max().item(), 1e-300))
        super().__init__(
            inputs,
            train_Y,
            covar_module=kernel,
            likelihood=likelihood or default_likelihood,
            outcome_transform=standardize,
        )
        self.features = features
        self.deployment = deployment
        self.to(train_X)

    @classmethod
    @abstractmethod
    def parts(cls, given: Given) -> Parts:
        """Make the features, the kernel that compares them, and the default likelihood."""

    def forward(self, x: Float[Tensor, "*batch n c"]) -> MultivariateNormal:
        """Return the prior at designs."""
        covariance = self.covar_module(self.features(x)).to_dense()
        return MultivariateNormal(self.mean_module(x), to_linear_operator(covariance))

    def posterior(
        self,
        X: Float[Tensor, "*batch q c"],
        *args: Any,
        uncertainty: InputUncertainty | Sequence[InputUncertainty] | None = None,
        **kwargs: Any,
    ) -> Any:
        """Predict the expected value at designs.

        Args:
            X: Designs, in the columns of ``train_X``.
            *args: As in BoTorch.
            uncertainty: Predict the same designs under another uncertainty than the model's, or
                each of the q designs under its own.
            **kwargs: As in BoTorch.

        Returns:
            A BoTorch posterior in the units of the observed values.
        """
        if isinstance(uncertainty, Sequence):
            X = self._each_numbered(X, uncertainty)
        else:
            X = self._numbered(X, uncertainty or self.deployment)
        # the variances of many designs do not need the covariances between them
        eager = settings.max_eager_kernel_size.value() if X.shape[-2] <= MAX_EAGER else 0
        with settings.max_eager_kernel_size(eager):
            return super().posterior(X, *args, **kwargs)

    def condition_on_observations(
        self,
        X: Float[Tensor, "*batch n c"],
        Y: Float[Tensor, "*other n 1"],
        noise: Tensor | None = None,
        *,
        uncertainty: InputUncertainty | None = None,
        **kwargs: Any,
    ) -> "UncertainInputGP":
        """Return a model that knows further observations, with the same hyper-parameters.

        Args:
            X: Designs, in the columns of ``train_X``.
            Y: Observed values.
            noise: As in BoTorch.
            uncertainty: What these observations were made under, if not the model's.
            **kwargs: As in BoTorch.
        """
        X = self._numbered(X, uncertainty)
        if X.shape[-1] != self.train_inputs[0].shape[-1]:
            X = self._with_numbers(X)
            self.train_inputs = (self._with_numbers(self.train_inputs[0]),)
            self.prediction_strategy = None
        if self.prediction_strategy is None:
            self.posterior(X[..., : self.features.d])
        if noise is not None:
            kwargs["noise"] = noise
        model = super().condition_on_observations(X, Y, **kwargs)
        return cast(UncertainInputGP, model)

    def get_fantasy_model(
        self, inputs: Tensor, targets: Tensor, **kwargs: Any
    ) -> "UncertainInputGP":
        """Return a model with further data, whose noise looks at its own features.

        GPyTorch copies model and likelihood one by one, and what they share would fall apart.
        """
        model = cast(UncertainInputGP, super().get_fantasy_model(inputs, targets, **kwargs))
        if isinstance(model.likelihood, UnseenInputLikelihood):
            noise = model.likelihood.noise_covar
            noise.features, noise.kernel = model.features, model.covar_module
        return model

    def named_priors(self) -> Iterator[Any]:
        """List every prior once, as the likelihood of hyper-parameters is to count it.

        GPyTorch lists a prior once for every way to its module, and here features, kernel and
        noise lead to the same ones.
        """
        listed = set()
        for name, module, prior, *closures in super().named_priors():
            if (module, prior) not in listed:
                listed.add((module, prior))
                yield name, module, prior, *closures

    def noise_variance(
        self, X: Float[Tensor, "*batch q c"], uncertainty: InputUncertainty | None = None
    ) -> Float[Tensor, "*batch q"]:
        """Return by how much an observation varies around the expected value of its design.

        Args:
            X: Designs, in the columns of ``train_X``.
            uncertainty: What they would be tried under; by default as most observations were.
        """
        X = self._numbered(X, uncertainty)
        standardize: Any = self.outcome_transform
        noise = self.likelihood.noise_covar([X], shape=X.shape[:-1])
        variance: Tensor = noise.diagonal(dim1=-2, dim2=-1) * standardize.stdvs.square().squeeze()
        return variance

    def _get_test_prior_mean_and_covariances(
        self, train_inputs: Sequence[Tensor], test_inputs: Sequence[Tensor], **kwargs: Any
    ) -> tuple[Any, ...]:
        X = test_inputs[0]
        f, known = self.features(X), self._train_features(train_inputs[0])
        if f.shape[-1] != known.shape[-1]:  # the observations needed further features
            f = self.features(X)
        batch_shape = torch.broadcast_shapes(X.shape[:-2], train_inputs[0].shape[:-2])
        return (
            self.mean_module(X),
            self.covar_module(f),  # of many designs, often only the diagonal is needed
            self.covar_module(f, known).to_dense(),
            batch_shape,
            X.shape[-2:-1],
            MultivariateNormal,
        )

    def _train_features(self, X: Tensor) -> Tensor:
        """Return the features of the observations, computed once as long as nothing changes."""
        strategy: Any = self.prediction_strategy
        known = getattr(strategy, "train_features", None)
        if known is None or known[0] != self.features.version:
            features = _repeated(self.features, X)
            if settings.detach_test_caches.on() and not X.requires_grad:
                features = features.detach()
            known = (self.features.version, features)
            strategy.train_features = known
        return known[1]

    def _numbered(self, X: Tensor, uncertainty: InputUncertainty | None) -> Tensor:
        d = self.features.d
        if X.dim() < 2 or X.shape[-1] not in (d, self.train_inputs[0].shape[-1]):
            raise ValueError(f"The designs must have {d} columns, got shape {tuple(X.shape)}.")
        if uncertainty is None:
            return X
        if not isinstance(uncertainty, InputUncertainty):
            raise TypeError(f"uncertainty must be an airbo.uncertainty, got {uncertainty!r}.")
        if uncertainty not in self.features.uncertainties:
            self.prediction_strategy = None  # the observations will be compared in a new way
        return self._with_numbers(X[..., :d], self.features.number_of(uncertainty))

    def _each_numbered(self, X: Tensor, uncertainties: Sequence[InputUncertainty]) -> Tensor:
        if X.dim() < 2 or len(uncertainties) != X.shape[-2]:
            raise ValueError(
                f"There are {len(uncertainties)} uncertainties for designs of shape "
                f"{tuple(X.shape)}."
            )
        rows = X.split(1, dim=-2)
        numbered = [self._numbered(row, u) for row, u in zip(rows, uncertainties, strict=True)]
        return torch.cat(numbered, dim=-2)

    def _with_numbers(self, X: Tensor, number: int = 0) -> Tensor:
        if X.shape[-1] > self.features.d:
            return X
        return torch.cat([X, X.new_full((*X.shape[:-1], 1), number)], dim=-1)


def _repeated(features: Features, X: Float[Tensor, "*batch n c"]) -> Float[Tensor, "*batch n f"]:
    """Compute features once where ``X`` only repeats itself along a batch dimension."""
    one = X
    for dim in range(X.dim() - 2):
        if X.stride(dim) == 0:
            one = one.narrow(dim, 0, 1)
    f = features(one)
    return f.expand(*X.shape[:-1], f.shape[-1])
