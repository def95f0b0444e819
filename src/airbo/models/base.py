"""What all Gaussian processes over uncertain inputs share."""

from abc import abstractmethod
from collections.abc import Sequence
from copy import deepcopy
from typing import TYPE_CHECKING, Any, ClassVar, cast

import torch
from botorch.models.transforms import Standardize
from botorch.models.transforms.outcome import OutcomeTransform
from botorch.utils.types import DEFAULT, _DefaultType
from gpytorch import settings
from gpytorch.kernels import Kernel
from gpytorch.likelihoods import Likelihood
from jaxtyping import Float
from torch import Tensor

from airbo.embeddings import Estimator
from airbo.models.data import Given, Parts, Prepared, Uncertainties
from airbo.models.exact import FeatureGP
from airbo.models.likelihoods import MeanNoise
from airbo.uncertainty import InputUncertainty

if TYPE_CHECKING:
    from airbo.models.paths import Paths

MOST_LARGER = 4
"""How many models that know further uncertainties are kept."""
MAX_EAGER = 64
"""Largest number of designs whose covariances are all computed at once."""


class UncertainInputGP(FeatureGP):
    """Exact Gaussian process whose covariance compares features of P_x.

    This is a BoTorch model that works in the unit cube. ``bounds`` give the corners of the cube in
    the columns of ``train_X``, in any units. Designs and uncertainties use the same columns.
    ``Optimizer`` passes points of the cube, with bounds 0 and 1 (see :mod:`airbo.space`).

    A surrogate is one class with one method, ``parts``.
    """

    deployment: InputUncertainty | None
    """The default uncertainty of ``posterior``; None: that of most observations."""
    folds_exactly: ClassVar[bool] = True
    """Whether replicates can be replaced by their mean without loss; if not, they are kept."""

    def __init__(
        self,
        train_X: Float[Tensor, "*batch n d"],
        train_Y: Float[Tensor, "*batch n 1"],
        uncertainty: Uncertainties = None,
        bounds: Float[Tensor, "2 d"] | None = None,
        estimator: Estimator | None = None,
        base_kernel: Kernel | None = None,
        likelihood: Likelihood | None = None,
        deployment: InputUncertainty | None = None,
        seed: int = 0,
        *,
        train_Yvar: Float[Tensor, "*batch n 1"] | None = None,
        outcome_transform: OutcomeTransform | _DefaultType | None = DEFAULT,
        fold_replicates: bool = False,
        **unknown: Any,
    ) -> None:
        """Build the surrogate; fit it with ``botorch.fit_gpytorch_mll``.

        Args:
            train_X: Designs. A batch of data sets shares all hyper-parameters except the mean.
            train_Y: Observed values.
            uncertainty: Uncertainty of the executed inputs: one for all, or one per observation.
            bounds: The range of designs, row 0 low, row 1 high; by default that of ``train_X``.
            estimator: How P_x is embedded; by default ``Quadrature()``.
            base_kernel: Any GPyTorch kernel on the unit cube; each surrogate has its default.
            likelihood: By default Gaussian observation noise of unknown size.
            deployment: The uncertainty to predict under; by default that of most observations.
            seed: Makes all draws reproducible.
            train_Yvar: Variances of the observation noise, if they are known.
            outcome_transform: As in BoTorch; by default values are standardized.
            fold_replicates: Whether observations of one design under one uncertainty are replaced
                by their mean. Posterior and likelihood stay the same, and only distinct rows cost
                time. ``train_inputs`` and ``train_targets`` then hold the distinct rows.
            **unknown: Refused.
        """
        for name in unknown:
            raise TypeError(f"{type(self).__name__} got an unexpected argument {name!r}.")
        data = Prepared.of(
            train_X,
            train_Y,
            uncertainty,
            bounds,
            deployment,
            train_Yvar,
            outcome_transform,
            fold_replicates and self.folds_exactly,
        )
        given = data.given(estimator, base_kernel, likelihood, seed)
        features, kernel, default_likelihood = self.parts(given)
        super().__init__(
            data.inputs[0],
            data.Y,
            data.Yvar,
            covar_module=kernel,
            likelihood=likelihood or default_likelihood,
            outcome_transform=None,  # the values are transformed already
        )
        self.train_inputs = cast(Any, data.inputs)
        if data.outcome_transform is not None:
            self.outcome_transform = data.outcome_transform
        if data.is_folded:
            self.likelihood.noise_covar = MeanNoise(self.likelihood.noise_covar)
        self.features = features
        self.deployment = deployment
        self._larger = {}
        self._subset_batch_dict: dict[str, int] = {}  # lets BoTorch select the only output
        self._aug_batch_shape = torch.Size()  # all data sets are fitted together
        self.to(train_X)

    @classmethod
    @abstractmethod
    def parts(cls, given: Given) -> Parts:
        """Make the features, the kernel that compares them, and the default likelihood."""

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
            uncertainty: An uncertainty to use instead of the model's, or a list with one for each
                of the q designs.
            **kwargs: As in BoTorch.

        Returns:
            A BoTorch posterior in the units of the observed values.
        """
        if isinstance(uncertainty, Sequence):
            model = self.including(*uncertainty)
            numbered = model._each_numbered(X, uncertainty)
        else:
            model = self if uncertainty is None else self.including(uncertainty)
            numbered = model.numbered(X, uncertainty)
        transform = kwargs.pop("posterior_transform", None)
        # the variances of many designs do not need the covariances between them
        eager = settings.max_eager_kernel_size.value() if X.shape[-2] <= MAX_EAGER else 0
        with settings.max_eager_kernel_size(eager):
            posterior = FeatureGP.posterior(model, numbered, *args, **kwargs)
        return posterior if transform is None else transform(posterior=posterior, X=X)

    def condition_on_observations(
        self,
        X: Float[Tensor, "*batch n c"],
        Y: Float[Tensor, "*other n 1"],
        noise: Tensor | None = None,
        *,
        uncertainty: InputUncertainty | None = None,
        **kwargs: Any,
    ) -> "UncertainInputGP":
        """Return a model with further observations and the same hyper-parameters.

        Args:
            X: Designs, in the columns of ``train_X``.
            Y: Observed values.
            noise: As in BoTorch.
            uncertainty: The uncertainty of these observations, if it is not the model's.
            **kwargs: As in BoTorch.
        """
        known = self if uncertainty is None else self.including(uncertainty)
        X = known._numbered(X, uncertainty)
        if known.prediction_strategy is None:
            known.posterior(X[..., : self.features.d])
        if noise is not None:
            kwargs["noise"] = noise
        model = FeatureGP.condition_on_observations(known, X, Y, **kwargs)
        return cast(UncertainInputGP, model)

    def including(self, *uncertainties: InputUncertainty) -> "UncertainInputGP":
        """Return the same model, which can also predict under other uncertainties.

        Data and hyper-parameters are shared, and this model stays as it is: a question does not
        change an answer. The last few results are kept.
        """
        for u in uncertainties:
            if not isinstance(u, InputUncertainty):
                raise TypeError(f"uncertainty must be an airbo.uncertainty, got {u!r}.")
        new = tuple(u for u in dict.fromkeys(uncertainties) if u not in self.features.uncertainties)
        if not new:
            return self
        if new not in self._larger:
            shared = [*self.parameters(), *self.buffers(), *self.train_inputs, self.train_targets]
            memo: dict[int, Any] = {id(t): t for t in shared}
            memo[id(self.features)] = self.features.including(*new)
            memo[id(self._larger)] = {}
            memo[id(self.prediction_strategy)] = None
            self._larger[new] = deepcopy(self, memo)
            for old in [*self._larger][:-MOST_LARGER]:
                del self._larger[old]
        return cast(UncertainInputGP, self._larger[new])

    def train(self, mode: bool = True) -> "UncertainInputGP":
        """Go over to fitting or to predicting; a fit starts with nothing from before."""
        if mode:
            self._larger = {}
        super().train(mode)
        return self

    def draw_paths(self, n: int) -> "Paths":
        """Draw ``n`` functions from the posterior, with torch's random numbers.

        Call the result with designs to get their expected values. With
        ``uncertainty=unc.Exact()`` it returns f itself, of the same draw:

            paths = model.draw_paths(100)
            values = paths(X)  # (100, number of designs)
        """
        from airbo.models.paths import Paths  # builds on this module

        return Paths(self, torch.Size([n]))

    def numbered(
        self, X: Float[Tensor, "*batch q d"], uncertainty: InputUncertainty | None = None
    ) -> Float[Tensor, "*batch q c"]:
        """Return designs with the number of an uncertainty, as ``features`` takes them.

        Args:
            X: Designs, in the columns of ``train_X``.
            uncertainty: By default that of ``posterior``.
        """
        return self._numbered(X, uncertainty or self.deployment)

    def noise_variance(
        self, X: Float[Tensor, "*batch q c"], uncertainty: InputUncertainty | None = None
    ) -> Float[Tensor, "*batch q"]:
        """Return the variance of an observation around the expected value of its design.

        Args:
            X: Designs, in the columns of ``train_X``.
            uncertainty: The uncertainty of the experiments; by default that of most observations.
        """
        if uncertainty is not None and uncertainty not in self.features.uncertainties:
            return self.including(uncertainty).noise_variance(X, uncertainty)
        X = self._numbered(X, uncertainty)
        noise: Tensor = self.likelihood.noise_covar([X], shape=X.shape[:-1]).diagonal(
            dim1=-2, dim2=-1
        )
        transform = getattr(self, "outcome_transform", None)
        if transform is None:
            return noise
        if not isinstance(transform, Standardize):
            name = type(transform).__name__
            raise NotImplementedError(f"The noise has no constant scale under {name}.")
        return noise * transform.stdvs.square().squeeze(-1)

    def _numbered(self, X: Tensor, uncertainty: InputUncertainty | None) -> Tensor:
        d = self.features.d
        if X.dim() < 2 or X.shape[-1] != d:
            raise ValueError(f"The designs must have {d} columns, got shape {tuple(X.shape)}.")
        if uncertainty is None:
            uncertainty = self.features.uncertainties[0]
        if not isinstance(uncertainty, InputUncertainty):
            raise TypeError(f"uncertainty must be an airbo.uncertainty, got {uncertainty!r}.")
        if uncertainty not in self.features.uncertainties:
            raise ValueError(f"The model does not know {uncertainty!r}: see including().")
        number = self.features.number_of(uncertainty)
        if len(self.features.uncertainties) == 1:
            return X
        return torch.cat([X, X.new_full((*X.shape[:-1], 1), number)], dim=-1)

    def _each_numbered(self, X: Tensor, uncertainties: Sequence[InputUncertainty]) -> Tensor:
        if X.dim() < 2 or len(uncertainties) != X.shape[-2]:
            raise ValueError(
                f"There are {len(uncertainties)} uncertainties for designs of shape "
                f"{tuple(X.shape)}."
            )
        rows = X.split(1, dim=-2)
        numbered = [self._numbered(row, u) for row, u in zip(rows, uncertainties, strict=True)]
        return torch.cat(numbered, dim=-2)
