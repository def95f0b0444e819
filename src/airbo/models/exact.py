"""Exact Gaussian processes whose kernel compares features of their rows."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, cast

import torch
from botorch.models import SingleTaskGP
from gpytorch import settings
from gpytorch.distributions import MultivariateNormal
from gpytorch.likelihoods import Likelihood
from gpytorch.likelihoods.noise_models import FixedGaussianNoise
from gpytorch.mlls import AddedLossTerm
from gpytorch.priors import Prior
from jaxtyping import Float
from linear_operator import to_linear_operator
from torch import Tensor

from airbo.embeddings.features import Features
from airbo.models import rows
from airbo.models.density import Observed
from airbo.models.likelihoods import MeanNoise, WithinRows, observe, unseen_input_noise


class FeatureGP(SingleTaskGP):
    """Exact Gaussian process that maps rows to features and compares the features.

    It behaves as a BoTorch model although a row holds more than a design: see
    :mod:`airbo.models.rows`. Features are computed once per design, and once per fit for the
    observations.
    """

    features: Features
    """What the kernel compares."""
    prediction_strategy: Any
    """What GPyTorch has computed from the observations."""
    _larger: dict[Any, Any]
    """Models of the same data that know further uncertainties; see ``including``."""

    def __getstate__(self) -> dict[str, Any]:
        """Leave out GPyTorch's cache: it can be computed again, and it holds gradients."""
        return {**self.__dict__, "prediction_strategy": None, "_larger": {}}

    def forward(self, x: Float[Tensor, "*batch n c"], *others: Tensor) -> MultivariateNormal:
        """Return the prior at designs.

        Args:
            x: Designs. If ``x`` is ``train_inputs[0]``, all of ``train_inputs`` is used.
            *others: The other parts of the rows, as in ``train_inputs``.
        """
        inputs = [x, *others]
        if not others and x is self.train_inputs[0]:
            inputs = [*self.train_inputs]
        covariance = self.covar_module(self.features(rows.packed(inputs))).to_dense()
        kind = Observed if self.training else MultivariateNormal
        return kind(self.mean_module(x), to_linear_operator(covariance))

    def __call__(self, *args: Any, **kwargs: Any) -> MultivariateNormal:
        """Return the prior at the observations during a fit, otherwise a prediction."""
        if not self.training:
            with settings.debug(False):  # rows may lack parts that the observations have
                return super().__call__(rows.packed(args), **kwargs)
        if len(args) == 1 and torch.equal(args[0], self.train_inputs[0]):
            args = tuple(self.train_inputs)
        return super().__call__(*args, **kwargs)

    def added_loss_terms(self) -> Iterator[AddedLossTerm]:
        """Add the likelihood of the scatter within rows to that of their means."""
        yield from super().added_loss_terms()
        noise = self.likelihood.noise_covar
        if isinstance(noise, MeanNoise):
            yield WithinRows(noise, self.train_inputs)

    def transform_inputs(self, X: Tensor, input_transform: Any = None) -> Tensor:
        """Return designs unchanged, and refuse transforms: see ``bounds`` and ``uncertainty``."""
        if input_transform is not None or getattr(self, "input_transform", None) is not None:
            raise ValueError(
                f"{type(self).__name__} takes no input_transform: bounds scale the designs, and "
                "uncertainty says where they land (InputPerturbation would smooth twice)."
            )
        return X

    def get_fantasy_model(
        self, inputs: Tensor | list[Tensor], targets: Tensor, **kwargs: Any
    ) -> "FeatureGP":
        """Return a model with further data.

        Args:
            inputs: Further designs, or rows as in ``train_inputs``.
            targets: Their values, in the units of the model.
            **kwargs: As in GPyTorch.
        """
        X, known, d = rows.packed(rows.given([inputs])), self.train_inputs, self.features.d
        n_inputs = len(known)
        if n_inputs == 1 and bool(X[..., d:].any()):  # under an uncertainty other than number 0
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
        if copied is not None:  # GPyTorch copies model and likelihood separately
            copied.features, copied.kernel = model.features, model.covar_module
            if fixed is not None:
                copied.observation_noise.noise = torch.cat(
                    [fixed.noise.expand(*noise.shape[:-1], -1), noise], dim=-1
                )
                model.prediction_strategy = None  # GPyTorch did not know the noise of all rows
        observe(model.likelihood, model.train_inputs)
        return model

    def _with_further(self, inputs: list[Tensor], targets: Tensor, **kwargs: Any) -> "FeatureGP":
        """Return a copy with further data in the form of ``train_inputs``."""
        return cast(FeatureGP, super().get_fantasy_model(inputs, targets, **kwargs))

    def set_train_data(
        self,
        inputs: Tensor | Iterable[Tensor] | None = None,
        targets: Tensor | None = None,
        strict: bool = True,
    ) -> None:
        """Replace the training data, without refitting.

        Args:
            inputs: Designs, or rows as in ``train_inputs``. Designs keep their uncertainties if
                their number stays the same.
            targets: Their values, in the units of the model.
            strict: As in GPyTorch.
        """
        if inputs is not None:
            inputs = (inputs,) if isinstance(inputs, Tensor) else tuple(inputs)
            others: tuple[Tensor, ...] = tuple(self.train_inputs[1:])
            if len(inputs) == 1 and others:
                if inputs[0].shape[-2] != others[0].shape[-2]:
                    raise ValueError(
                        "The observations have different uncertainties or were folded. Build a new "
                        "model for other designs."
                    )
                inputs = (*inputs, *others)
        super().set_train_data(inputs, targets, strict)
        self._larger = {}
        observe(self.likelihood, self.train_inputs)

    def _apply(self, fn: Any, recurse: bool = True) -> "FeatureGP":
        super()._apply(fn)
        self._larger = {}
        observe(self.likelihood, self.train_inputs)
        return self

    def named_priors(self) -> Iterator[Any]:
        """List every prior once, so that it counts once when hyper-parameters are fitted.

        GPyTorch lists a prior once for every path to its module, and here features, kernel and
        noise share modules.
        """
        listed = set()
        for name, module, prior, *closures in super().named_priors():
            if (module, prior) not in listed:
                listed.add((module, prior))
                yield name, module, _Summed(prior) if self.batch_shape else prior, *closures

    def _get_test_prior_mean_and_covariances(
        self, train_inputs: Sequence[Tensor], test_inputs: Sequence[Tensor], **kwargs: Any
    ) -> tuple[Any, ...]:
        X = test_inputs[0]
        f, known = self.features(X), self._train_features(rows.packed(train_inputs))
        batch_shape = torch.broadcast_shapes(X.shape[:-2], train_inputs[0].shape[:-2])
        return (
            self.mean_module(X),
            self.covar_module(f),  # lazy: for many designs, often only the diagonal is needed
            self.covar_module(f, known).to_dense(),
            batch_shape,
            X.shape[-2:-1],
            MultivariateNormal,
        )

    def _train_features(self, X: Tensor) -> Tensor:
        """Return the features of the observations; they are computed again only after changes."""
        strategy = self.prediction_strategy
        known = getattr(strategy, "train_features", None)
        if known is None:
            known = _repeated(self.features, X)
            if settings.detach_test_caches.on() and not X.requires_grad:
                known = known.detach()
            strategy.train_features = known
        return cast(Tensor, known)


class _Summed:
    """A prior whose density is one number, whatever the shape of its hyper-parameter."""

    def __init__(self, prior: Prior) -> None:
        self.prior = prior

    def log_prob(self, value: Tensor) -> Float[Tensor, ""]:
        return self.prior.log_prob(value).sum()


def _fixed_noise(likelihood: Likelihood) -> FixedGaussianNoise | None:
    """Return the module with given noise variances, if there is one."""
    for module in likelihood.modules():
        if isinstance(module, FixedGaussianNoise):
            return module
    return None


def _repeated(features: Features, X: Float[Tensor, "*batch n c"]) -> Float[Tensor, "*batch n f"]:
    """Compute features; repeats of ``X`` along a batch dimension are computed once."""
    one = X
    for dim in range(X.dim() - 2):
        if X.stride(dim) == 0:
            one = one.narrow(dim, 0, 1)
    f = features(one)
    return f.expand(*X.shape[:-1], f.shape[-1])
