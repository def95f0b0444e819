"""What all Gaussian processes over uncertain inputs share."""

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, cast

import torch
from botorch.models import SingleTaskGP
from botorch.models.transforms import Standardize
from botorch.models.transforms.outcome import OutcomeTransform
from botorch.utils.types import DEFAULT, _DefaultType
from gpytorch import settings
from gpytorch.distributions import MultivariateNormal
from gpytorch.kernels import Kernel
from gpytorch.likelihoods import Likelihood
from gpytorch.likelihoods.noise_models import FixedGaussianNoise
from gpytorch.mlls import AddedLossTerm
from gpytorch.priors import Prior
from jaxtyping import Float
from linear_operator import to_linear_operator
from torch import Tensor

from airbo.embeddings import Estimator
from airbo.embeddings.features import Features
from airbo.models import rows
from airbo.models.data import Given, Parts, Uncertainties, check_data, number_uncertainties
from airbo.models.likelihoods import MeanNoise, WithinRows, observe, unseen_input_noise
from airbo.uncertainty import InputUncertainty

if TYPE_CHECKING:
    from airbo.models.paths import Paths

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
    folds_exactly: ClassVar[bool] = True
    """Whether the mean of replicates says the same as all of them; if not, none are folded."""

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
            train_X: Designs; several data sets of one size share all hyper-parameters but the mean.
            train_Y: Observed values.
            uncertainty: Where the designs landed: one for all, or one per observation.
            bounds: The range of designs, row 0 low, row 1 high; by default that of ``train_X``.
            estimator: How P_x is embedded; by default ``Quadrature()``.
            base_kernel: Any GPyTorch kernel on the unit cube; each surrogate has its default.
            likelihood: By default Gaussian observation noise of unknown size.
            deployment: What the model predicts under; by default as most observations were made.
            seed: Fixes all draws.
            train_Yvar: Variances of the observation noise, where they are known.
            outcome_transform: As in BoTorch; by default values are standardized.
            fold_replicates: Whether observations of one design under one uncertainty are replaced
                by their mean. Posterior and likelihood stay the same, at the price of the distinct
                rows. ``train_inputs`` and ``train_targets`` then hold these.
            **unknown: Refused.
        """
        for name in unknown:
            raise TypeError(f"{type(self).__name__} got an unexpected argument {name!r}.")
        bounds = check_data(train_X, train_Y, train_Yvar, bounds)
        inputs, uncertainties = number_uncertainties(train_X, uncertainty, deployment)
        if isinstance(outcome_transform, _DefaultType):
            outcome_transform = _standardize(train_Y)
        Y, Yvar = train_Y, train_Yvar
        if outcome_transform is not None:
            Y, Yvar = outcome_transform.train()(Y=train_Y, Yvar=train_Yvar, X=train_X)
        if fold_replicates and self.folds_exactly:
            if Yvar is not None or train_X.dim() > 2:
                raise ValueError("fold_replicates takes one data set and no train_Yvar.")
            inputs, Y = rows.folded(inputs, Y)
        known_noise = None if Yvar is None else Yvar.squeeze(-1)
        given = Given(uncertainties, bounds, estimator, base_kernel, likelihood, seed, known_noise)
        features, kernel, default_likelihood = self.parts(given)
        super().__init__(
            inputs[0],
            Y,
            Yvar,
            covar_module=kernel,
            likelihood=likelihood or default_likelihood,
            outcome_transform=None,  # the values are transformed already
        )
        self.train_inputs = cast(Any, inputs)
        if outcome_transform is not None:
            self.outcome_transform = outcome_transform
        if len(inputs) > 2:
            self.likelihood.noise_covar = MeanNoise(self.likelihood.noise_covar)
        self.features = features
        self.deployment = deployment
        self._subset_batch_dict: dict[str, int] = {}  # the one output can be chosen
        self._aug_batch_shape = torch.Size()  # data sets are fitted together
        self.to(train_X)

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what is worked out again: it hangs on to gradients."""
        return {**self.__dict__, "prediction_strategy": None}

    @classmethod
    @abstractmethod
    def parts(cls, given: Given) -> Parts:
        """Make the features, the kernel that compares them, and the default likelihood."""

    def forward(self, x: Float[Tensor, "*batch n c"], *others: Tensor) -> MultivariateNormal:
        """Return the prior at designs.

        Args:
            x: Designs; the designs of ``train_inputs`` stand for all that is known of these rows.
            *others: What else belongs to them, as in ``train_inputs``.
        """
        inputs = [x, *others]
        if not others and x is self.train_inputs[0]:
            inputs = [*self.train_inputs]
        covariance = self.covar_module(self.features(rows.packed(inputs))).to_dense()
        return MultivariateNormal(self.mean_module(x), to_linear_operator(covariance))

    def __call__(self, *args: Any, **kwargs: Any) -> MultivariateNormal:
        """Return the prior at the observations while fitting, or else a prediction."""
        if not self.training:
            with settings.debug(False):  # rows may have one part, or as many as the observations
                return super().__call__(rows.packed(args), **kwargs)
        if len(args) == 1 and torch.equal(args[0], self.train_inputs[0]):
            args = tuple(self.train_inputs)
        return super().__call__(*args, **kwargs)

    def added_loss_terms(self) -> Iterator[AddedLossTerm]:
        """Add to the likelihood of rows what is known within them."""
        yield from super().added_loss_terms()
        noise = self.likelihood.noise_covar
        if isinstance(noise, MeanNoise):
            yield WithinRows(noise, self.train_inputs)

    def transform_inputs(self, X: Tensor, input_transform: Any = None) -> Tensor:
        """Return designs as they are: ``bounds`` and ``uncertainty`` say what becomes of them."""
        if input_transform is not None or getattr(self, "input_transform", None) is not None:
            raise ValueError(
                f"{type(self).__name__} takes no input_transform: bounds scale the designs, and "
                "uncertainty says where they land (InputPerturbation would smooth twice)."
            )
        return X

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
            numbered = self._each_numbered(X, uncertainty)
        else:
            numbered = self.numbered(X, uncertainty)
        transform = kwargs.pop("posterior_transform", None)
        # the variances of many designs do not need the covariances between them
        eager = settings.max_eager_kernel_size.value() if X.shape[-2] <= MAX_EAGER else 0
        with settings.max_eager_kernel_size(eager):
            posterior = super().posterior(numbered, *args, **kwargs)
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
        """Return a model that knows further observations, with the same hyper-parameters.

        Args:
            X: Designs, in the columns of ``train_X``.
            Y: Observed values.
            noise: As in BoTorch.
            uncertainty: What these observations were made under, if not the model's.
            **kwargs: As in BoTorch.
        """
        X = self._numbered(X, uncertainty)
        if self.prediction_strategy is None:
            self.posterior(X[..., : self.features.d])
        if noise is not None:
            kwargs["noise"] = noise
        model = super().condition_on_observations(X, Y, **kwargs)
        return cast(UncertainInputGP, model)

    def get_fantasy_model(
        self, inputs: Tensor | list[Tensor], targets: Tensor, **kwargs: Any
    ) -> "UncertainInputGP":
        """Return a model with further data.

        Args:
            inputs: Further designs, or rows as in ``train_inputs``.
            targets: Their values, in the units of the model.
            **kwargs: As in GPyTorch.
        """
        X, known, d = rows.packed(rows.given([inputs])), self.train_inputs, self.features.d
        n_inputs = len(known)
        if n_inputs == 1 and bool(X[..., d:].any()):  # made under another one
            n_inputs = 2
        new = rows.unpacked(X, d, n_inputs)
        unseen = unseen_input_noise(self.likelihood)
        fixed = _fixed_noise(self.likelihood)
        if fixed is not None:
            noise = kwargs.get("noise", fixed.noise.mean(-1, keepdim=True)).expand_as(targets)
            kwargs["noise"] = noise if unseen is None else noise + unseen.unseen(new)
        try:
            self.train_inputs = cast(
                Any, (*known, *rows.unpacked(known[0], d, n_inputs)[len(known) :])
            )
            model = self._with_further(new, targets, **kwargs)
        finally:
            self.train_inputs = known
        copied = unseen_input_noise(model.likelihood)
        if copied is not None:  # GPyTorch copies model and likelihood one by one
            copied.features, copied.kernel = model.features, model.covar_module
            if fixed is not None:
                copied.observation_noise.noise = torch.cat(
                    [fixed.noise.expand(*noise.shape[:-1], -1), noise], dim=-1
                )
                model.prediction_strategy = None  # GPyTorch did not know the noise of all rows
        observe(model.likelihood, model.train_inputs)
        return model

    def _with_further(
        self, inputs: list[Tensor], targets: Tensor, **kwargs: Any
    ) -> "UncertainInputGP":
        """Return a copy with further data in the form of ``train_inputs``."""
        return cast(UncertainInputGP, super().get_fantasy_model(inputs, targets, **kwargs))

    def set_train_data(
        self,
        inputs: Tensor | Iterable[Tensor] | None = None,
        targets: Tensor | None = None,
        strict: bool = True,
    ) -> None:
        """Replace the training data, without refitting.

        Args:
            inputs: Designs; as many as before keep their uncertainties. Or rows as in
                ``train_inputs``.
            targets: Their values, in the units of the model.
            strict: As in GPyTorch.
        """
        if inputs is not None:
            inputs = (inputs,) if isinstance(inputs, Tensor) else tuple(inputs)
            others: tuple[Tensor, ...] = tuple(self.train_inputs[1:])
            if len(inputs) == 1 and others:
                if inputs[0].shape[-2] != others[0].shape[-2]:
                    raise ValueError(
                        "The observations differ in their uncertainty or stand for several: build "
                        "a new model for other designs."
                    )
                inputs = (*inputs, *others)
        super().set_train_data(inputs, targets, strict)
        observe(self.likelihood, self.train_inputs)

    def _apply(self, fn: Any, recurse: bool = True) -> "UncertainInputGP":
        super()._apply(fn)
        observe(self.likelihood, self.train_inputs)
        return self

    def named_priors(self) -> Iterator[Any]:
        """List every prior once, as the likelihood of hyper-parameters is to count it.

        GPyTorch lists a prior once for every way to its module, and here features, kernel and
        noise lead to the same ones.
        """
        listed = set()
        for name, module, prior, *closures in super().named_priors():
            if (module, prior) not in listed:
                listed.add((module, prior))
                yield name, module, _Summed(prior) if self.batch_shape else prior, *closures

    def draw_paths(self, n: int) -> "Paths":
        """Draw ``n`` functions from the posterior, with torch's random numbers.

        They can be called with designs, which gives their expected values there, and with
        ``uncertainty=unc.Exact()``, which gives f itself, of the same draw:

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
        """Return by how much an observation varies around the expected value of its design.

        Args:
            X: Designs, in the columns of ``train_X``.
            uncertainty: What they would be tried under; by default as most observations were.
        """
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

    def _get_test_prior_mean_and_covariances(
        self, train_inputs: Sequence[Tensor], test_inputs: Sequence[Tensor], **kwargs: Any
    ) -> tuple[Any, ...]:
        X = test_inputs[0]
        f, known = self.features(X), self._train_features(rows.packed(train_inputs))
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
        if X.dim() < 2 or X.shape[-1] != d:
            raise ValueError(f"The designs must have {d} columns, got shape {tuple(X.shape)}.")
        if uncertainty is None:
            uncertainty = self.features.uncertainties[0]
        if not isinstance(uncertainty, InputUncertainty):
            raise TypeError(f"uncertainty must be an airbo.uncertainty, got {uncertainty!r}.")
        if uncertainty not in self.features.uncertainties:
            self.prediction_strategy = None  # the observations will be compared in a new way
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
        for row, u in zip(rows, uncertainties, strict=True):
            self._numbered(row, u)  # all have to be known before any gets its number
        numbered = [self._numbered(row, u) for row, u in zip(rows, uncertainties, strict=True)]
        return torch.cat(numbered, dim=-2)


class _Summed:
    """A prior whose density is one number, whatever the shape of its hyper-parameter."""

    def __init__(self, prior: Prior) -> None:
        self.prior = prior

    def log_prob(self, value: Tensor) -> Float[Tensor, ""]:
        return self.prior.log_prob(value).sum()


def _standardize(Y: Float[Tensor, "*batch n 1"]) -> Standardize:
    """Standardize values; those that differ by rounding errors only count as equal."""
    least = max(1e-12 * Y.abs().max().item(), 1e-300)
    return Standardize(m=1, batch_shape=Y.shape[:-2], min_stdv=least)


def _fixed_noise(likelihood: Likelihood) -> FixedGaussianNoise | None:
    """Return the noise variances that were given, if any were."""
    for module in likelihood.modules():
        if isinstance(module, FixedGaussianNoise):
            return module
    return None


def _repeated(features: Features, X: Float[Tensor, "*batch n c"]) -> Float[Tensor, "*batch n f"]:
    """Compute features once where ``X`` only repeats itself along a batch dimension."""
    one = X
    for dim in range(X.dim() - 2):
        if X.stride(dim) == 0:
            one = one.narrow(dim, 0, 1)
    f = features(one)
    return f.expand(*X.shape[:-1], f.shape[-1])
