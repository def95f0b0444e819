r"""Gaussian processes over uncertain inputs, as BoTorch models.

A model compares features of P_x (:mod:`airbo.embeddings`) with a kernel k̂. Otherwise it is
an exact Gaussian process. Notation, in the units of the model:

- ``train_X`` (n, d): designs; ``train_Y`` (n, 1): observed values, standardized inside;
- ``rows``: designs with the numbers of their uncertainties, and replicates folded (:mod:`rows`);
- ``f`` (n, f): features of the rows; K = k̂(f, f) (n, n): covariances of the expected values;
- the observations have the covariance K + Σ, with a diagonal Σ (:mod:`noise`).
"""

from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import copy, deepcopy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, cast

import torch
from botorch.models import SingleTaskGP
from botorch.models.transforms import Standardize
from botorch.models.transforms.outcome import OutcomeTransform
from botorch.utils.types import DEFAULT, _DefaultType
from gpytorch import settings
from gpytorch.distributions import MultivariateNormal
from gpytorch.kernels import Kernel
from gpytorch.likelihoods import Likelihood
from gpytorch.mlls import AddedLossTerm
from gpytorch.priors import Prior
from jaxtyping import Float
from linear_operator import to_linear_operator
from torch import Tensor

from airbo.embeddings import Embedding, Estimator, Quadrature
from airbo.embeddings.features import Features
from airbo.models import rows
from airbo.models.density import Observed
from airbo.models.noise import MeanNoise, WithinRows, observe, unseen_input_noise
from airbo.uncertainty import Exact, InputUncertainty

if TYPE_CHECKING:
    from airbo.models.paths import Paths

Uncertainties = InputUncertainty | Sequence[InputUncertainty | None] | None
"""One uncertainty for all observations, or one per observation; None: set exactly."""
LEAST_NOISE = 1e-6
"""Least variance of known noise, as of learned noise, relative to that of the values."""


class Parts(NamedTuple):
    """The parts in which surrogates differ."""

    features: Features
    """Maps a design to features of P_x."""
    kernel: Kernel
    """Compares features."""
    likelihood: Likelihood | None
    """Model of the noise; None: BoTorch's default."""


@dataclass(frozen=True)
class Given:
    """What a surrogate builds its parts from."""

    inputs: tuple[Tensor, ...]
    """Rows, as :mod:`airbo.models.rows` describes them."""
    uncertainties: list[InputUncertainty]
    bounds: Float[Tensor, "2 d"]
    estimator: Estimator | None
    base_kernel: Kernel | None
    likelihood: Likelihood | None
    seed: int

    @property
    def d(self) -> int:
        """Number of columns of a design."""
        return self.bounds.shape[-1]

    @property
    def known_noise(self) -> Float[Tensor, "*batch n"] | None:
        """Variances of the observation noise, in the units of the model; None, or -1: unknown."""
        return rows.known_noise(self.inputs)

    def embedding(self, default: Callable[[int], Kernel]) -> Embedding:
        """Embed P_x under the base kernel, or under the default one for ``d`` columns."""
        base_kernel = (self.base_kernel or default(self.d)).to(self.bounds)
        estimator = self.estimator or Quadrature()
        return estimator.embed(self.uncertainties, base_kernel, self.bounds, self.seed)


def check_data(
    train_X: Tensor, train_Y: Tensor, train_Yvar: Tensor | None, bounds: Tensor | None
) -> Float[Tensor, "2 d"]:
    """Refuse data that no surrogate can use; return the bounds."""
    optional = {"train_Yvar": train_Yvar, "bounds": bounds}
    data = {"train_X": train_X, "train_Y": train_Y}
    data |= {name: given for name, given in optional.items() if given is not None}
    for name, given in data.items():
        if not isinstance(given, Tensor) or not given.is_floating_point():
            kind = given.dtype if isinstance(given, Tensor) else type(given).__name__
            raise TypeError(f"{name} must be a tensor of floating-point numbers, got {kind}.")
    if train_X.dim() < 2 or 0 in train_X.shape:
        raise ValueError(
            f"train_X must have shape (n, d), n and d >= 1, got {tuple(train_X.shape)}."
        )
    # X (*batch n d), Y and Yvar (*batch n 1), all of one dtype; a variance of NaN is learned
    *batch, d = train_X.shape
    for name, given in data.items():
        if name == "bounds":
            continue
        if given.dtype != train_X.dtype:
            raise TypeError(
                f"{name} must have the dtype of train_X, {train_X.dtype}, got {given.dtype}."
            )
        if given is not train_X and given.shape != (*batch, 1):
            raise ValueError(
                f"{name} must have shape {(*batch, 1)}, as train_X, got {tuple(given.shape)}."
            )
        unknown = given.isnan() if given is train_Yvar else torch.tensor(False)
        if not bool((given.isfinite() | unknown).all()):
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

    Number 0 is the uncertainty of most observations. ``deployment`` comes last if no observation
    has it.

    Returns:
        The designs, with a column of uncertainty numbers if there are several; and the list of
        uncertainties.
    """
    n, d = train_X.shape[-2:]
    if not isinstance(uncertainty, InputUncertainty | list | tuple | None):
        raise TypeError(
            "uncertainty must be an airbo.uncertainty, a list with one per observation, or None, "
            f"got {uncertainty!r}."
        )
    # P_i of every observation; None: set exactly
    if uncertainty is None or isinstance(uncertainty, InputUncertainty):
        each = [uncertainty or Exact()] * n
    else:
        each = [u or Exact() for u in uncertainty]
    if len(each) != n:
        raise ValueError(f"There are {n} observations but {len(each)} uncertainties.")
    # check every distinct object once, usually few, then join those that are equal
    objects = {id(u): u for u in each}
    for u in objects.values():
        if not isinstance(u, InputUncertainty):
            number = next(i for i, other in enumerate(each) if other is u)
            raise TypeError(f"Uncertainty {number} must be an airbo.uncertainty, got {u!r}.")
        u.check_dim(d)
    kinds = {u: u for u in objects.values()}
    own = [id(kinds[objects[id(u)]]) for u in each] if len(kinds) > 1 else []
    # number 0 is the most frequent one
    count = Counter(own)
    distinct = sorted(kinds.values(), key=lambda u: -count[id(u)])
    known = [*distinct, deployment] if deployment and deployment not in distinct else distinct
    # rows (x_i, number of P_i); one uncertainty needs no numbers
    if len(distinct) == 1:
        return (train_X,), known
    number = {id(u): i for i, u in enumerate(distinct)}
    numbers = train_X.new_tensor([number[u] for u in own]).unsqueeze(-1)
    return (train_X, numbers.expand(*train_X.shape[:-1], 1)), known


def _bounds_of(X: Float[Tensor, "n d"]) -> Float[Tensor, "2 d"]:
    """Return the range of the data; a column that does not vary gets a range of width 1."""
    # [min, max] by column; a constant column c gets [c - ½, c + ½]
    low, high = X.amin(dim=0), X.amax(dim=0)
    flat = low == high
    return torch.stack([torch.where(flat, low - 0.5, low), torch.where(flat, high + 0.5, high)])


def _standardize(Y: Float[Tensor, "*batch n 1"]) -> Standardize:
    """Standardize values; values that differ only by rounding errors count as equal."""
    # (y - mean) / std, where std is at least what rounding makes of equal values
    least = max(1e-12 * Y.abs().max().item(), 1e-300)
    return Standardize(m=1, batch_shape=Y.shape[:-2], min_stdv=least)


class _Summed:
    """A prior whose density is one number, whatever the shape of its hyper-parameter."""

    def __init__(self, prior: Prior) -> None:
        self.prior = prior

    def log_prob(self, value: Tensor) -> Float[Tensor, ""]:
        # log p(θ) = Σ_i log p(θ_i)
        return self.prior.log_prob(value).sum()


def _repeated(features: Features, X: Float[Tensor, "*batch n c"]) -> Float[Tensor, "*batch n f"]:
    """Compute features; repeats of ``X`` along a batch dimension are computed once."""
    # a stride of 0 means that a batch dimension only repeats
    one = X
    for dim in range(X.dim() - 2):
        if X.stride(dim) == 0:
            one = one.narrow(dim, 0, 1)
    f = features(one)
    return f.expand(*X.shape[:-1], f.shape[-1])


MOST_LARGER = 4
"""How many models that know further uncertainties are kept."""
MAX_EAGER = 64
"""Largest number of designs whose covariances are all computed at once."""


class UncertainInputGP(SingleTaskGP):
    """Exact Gaussian process whose covariance compares features of P_x.

    This is a BoTorch model, although a row holds more than a design (see :mod:`airbo.models.rows`).
    Features are computed once per design, and once per fit for the observations. It works in the
    unit cube. ``bounds`` give the corners of the cube in
    the columns of ``train_X``, in any units. Designs and uncertainties use the same columns.
    ``Optimizer`` passes points of the cube, with bounds 0 and 1 (see :mod:`airbo.space`).

    A surrogate is one class with one method, ``parts``.
    """

    features: Features
    """What the kernel compares."""
    prediction_strategy: Any
    """What GPyTorch has computed from the observations."""
    _larger: dict[Any, Any]
    """Models of the same data that know further uncertainties; see ``including``."""
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
            train_Yvar: Variances of the observation noise, if they are known; NaN where one is
                not. Those that are not known are learned, one for all.
            outcome_transform: As in BoTorch; by default values are standardized.
            fold_replicates: Whether observations of one design under one uncertainty are replaced
                by their mean. Posterior and likelihood stay the same, and only distinct rows cost
                time. ``train_inputs`` and ``train_targets`` then hold the distinct rows.
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
            # y_model = (y - mean) / std
            Y, Yvar = outcome_transform.train()(Y=train_Y, Yvar=train_Yvar, X=train_X)
        if Yvar is not None:
            Yvar = Yvar.clamp_min(LEAST_NOISE).nan_to_num(-1.0)  # see rows
        if fold_replicates and self.folds_exactly:
            if train_X.dim() > 2:
                raise ValueError("fold_replicates takes one data set, not a batch of them.")
            inputs, Y = rows.folded(inputs, Y, Yvar)
        elif Yvar is not None:
            single = rows.unpacked(rows.packed(inputs), train_X.shape[-1], noise=Yvar.squeeze(-1))
            inputs = tuple(single)
        given = Given(inputs, uncertainties, bounds, estimator, base_kernel, likelihood, seed)
        features, kernel, default_likelihood = self.parts(given)
        super().__init__(
            inputs[0],
            Y,
            covar_module=kernel,
            likelihood=likelihood or default_likelihood,
            outcome_transform=None,  # the values are transformed already
        )
        self.train_inputs = cast(Any, inputs)
        if outcome_transform is not None:
            self.outcome_transform = outcome_transform
        self._know_rows()
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
        # rows (x, number of its uncertainty), of a model that knows them all
        if isinstance(uncertainty, Sequence):
            model = self.including(*uncertainty)
            numbered = model._each_numbered(X, uncertainty)
        else:
            model = self if uncertainty is None else self.including(uncertainty)
            numbered = model.numbered(X, uncertainty)
        transform = kwargs.pop("posterior_transform", None)
        # m + k (K + Σ)⁻¹ (y - m) and k̂(P, P) - k (K + Σ)⁻¹ kᵀ, as GPyTorch works them out;
        # the variances of many designs do not need the covariances between them
        eager = settings.max_eager_kernel_size.value() if X.shape[-2] <= MAX_EAGER else 0
        with settings.max_eager_kernel_size(eager):
            posterior = SingleTaskGP.posterior(model, numbered, *args, **kwargs)
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
            noise: As in BoTorch: the variance of these observations around their expected values;
                for a model with ``train_Yvar``, that of their noise alone, as there.
            uncertainty: The uncertainty of these observations, if it is not the model's.
            **kwargs: As in BoTorch.
        """
        # K and Σ get rows and columns for the new observations; GPyTorch updates L Lᵀ = K + Σ
        known = self if uncertainty is None else self.including(uncertainty)
        X = known._numbered(X, uncertainty)
        if known.prediction_strategy is None:
            known.posterior(X[..., : self.features.d])
        if noise is not None:
            kwargs["noise"] = noise
        model = SingleTaskGP.condition_on_observations(known, X, Y, **kwargs)
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
            # a copy that shares data and hyper-parameters, with features of more uncertainties
            # deepcopy keeps what its memo holds: tensors by their identity
            shared = [*self.parameters(), *self.buffers(), *self.train_inputs, self.train_targets]
            memo: dict[int, Any] = {id(t): t for t in shared}
            memo[id(self.features)] = self.features.including(*new)
            memo[id(self._larger)] = {}
            memo[id(self.prediction_strategy)] = None
            self._larger[new] = deepcopy(self, memo)
            for old in [*self._larger][:-MOST_LARGER]:
                del self._larger[old]
        return cast(UncertainInputGP, self._larger[new])

    def used_under(self, deployment: InputUncertainty) -> "UncertainInputGP":
        """Return the same model, whose ``posterior`` is under another uncertainty by default."""
        if deployment == self.deployment:
            return self
        model = copy(self.including(deployment))
        model.deployment = deployment
        return model

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
        # Σ(x) = σ² + s (k(x', x') - k̂(P_x, P_x)), or σ² alone
        X = self._numbered(X, uncertainty)
        noise: Tensor = self.likelihood.noise_covar([X], shape=X.shape[:-1]).diagonal(
            dim1=-2, dim2=-1
        )
        # y = shift + scale · y_model, so variances grow with scale²
        return noise * self.units[0].square()

    @property
    def units(self) -> tuple[Float[Tensor, "*batch 1"], Float[Tensor, "*batch 1"]]:
        """Scale and shift from the values of the model to those that were observed."""
        # y = shift + scale · y_model
        transform: Any = getattr(self, "outcome_transform", None)
        if transform is None:
            one = self.train_targets.new_ones(1)
            return one, 0 * one
        if not isinstance(transform, Standardize):
            name = type(transform).__name__
            raise NotImplementedError(f"Noise and draws of f need standardized values, not {name}.")
        return transform.stdvs.squeeze(-1), transform.means.squeeze(-1)

    def _numbered(self, X: Tensor, uncertainty: InputUncertainty | None) -> Tensor:
        # x becomes (x, number of P), or stays x where there is one P
        d = self.features.d
        if X.dim() < 2 or X.shape[-1] != d:
            raise ValueError(f"The designs must have {d} columns, got shape {tuple(X.shape)}.")
        # number 0 is the uncertainty of most observations
        if uncertainty is None:
            uncertainty = self.features.uncertainties[0]
        if not isinstance(uncertainty, InputUncertainty):
            raise TypeError(f"uncertainty must be an airbo.uncertainty, got {uncertainty!r}.")
        if uncertainty not in self.features.uncertainties:
            raise ValueError(f"The model does not know {uncertainty!r}: see including().")
        number = self.features.uncertainties.index(uncertainty)
        if len(self.features.uncertainties) == 1:
            return X
        return torch.cat([X, X.new_full((*X.shape[:-1], 1), number)], dim=-1)

    def _each_numbered(self, X: Tensor, uncertainties: Sequence[InputUncertainty]) -> Tensor:
        if X.dim() < 2 or len(uncertainties) != X.shape[-2]:
            raise ValueError(
                f"There are {len(uncertainties)} uncertainties for designs of shape "
                f"{tuple(X.shape)}."
            )
        # design i under uncertainty i
        rows = X.split(1, dim=-2)
        numbered = [self._numbered(row, u) for row, u in zip(rows, uncertainties, strict=True)]
        return torch.cat(numbered, dim=-2)

    # -- as GPyTorch and BoTorch call it

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
        # K_ij = k̂(P_i, P_j)
        with settings.lazily_evaluate_kernels(False):
            covariance = self.covar_module(self.features(rows.packed(inputs))).to_dense()
        kind = Observed if self.training else MultivariateNormal
        return kind(self.mean_module(x), to_linear_operator(covariance))

    def __call__(self, *args: Any, **kwargs: Any) -> MultivariateNormal:
        """Return the prior at the observations during a fit, otherwise a prediction."""
        # a fit asks for the prior at its own rows, a prediction for the posterior at others
        if not self.training:
            with settings.debug(False):  # rows may lack parts that the observations have
                return super().__call__(rows.packed(args), **kwargs)
        if len(args) == 1 and torch.equal(args[0], self.train_inputs[0]):
            args = tuple(self.train_inputs)
        return super().__call__(*args, **kwargs)

    def added_loss_terms(self) -> Iterator[AddedLossTerm]:
        """Add the likelihood of the scatter within rows to that of their means."""
        # log p(y_1 ... y_c) = log p(ȳ) + what the scatter around ȳ adds
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
    ) -> "UncertainInputGP":
        """Return a model with further data.

        Args:
            inputs: Further designs, or rows as in ``train_inputs``.
            targets: Their values, in the units of the model.
            **kwargs: As in GPyTorch.
        """
        # new rows get as many parts as the old ones have, or the old ones as the new ones need
        X, known, d = rows.packed(rows.given([inputs])), self.train_inputs, self.features.d
        noise, n_inputs = kwargs.get("noise"), len(known)
        # BoTorch means the whole variance around E f; train_Yvar is that of the noise alone
        variances = rows.known_noise(known)
        has_known = variances is not None and bool((variances >= 0).any())
        if unseen_input_noise(self.likelihood) is not None and not has_known:
            noise = None
        if noise is not None:
            del kwargs["noise"]
            n_inputs = 5
        elif n_inputs == 1 and bool(X[..., d:].any()):  # under an uncertainty other than number 0
            n_inputs = 2
        new = rows.unpacked(X, d, n_inputs, noise)
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
        if noise is not None:
            model.prediction_strategy = None  # GPyTorch did not know the noise of all rows
            model._know_rows()
        observe(model.likelihood, model.train_inputs)
        return model

    def _know_rows(self) -> None:
        """Let the likelihood look at rows: σ² / c of c observations, and known variances."""
        # rows of five parts have a count c: their noise is σ²(x) / c
        noise = self.likelihood.noise_covar
        if len(self.train_inputs) > 2 and not isinstance(noise, MeanNoise):
            self.likelihood.noise_covar = MeanNoise(noise)

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

    def _apply(self, fn: Any, recurse: bool = True) -> "UncertainInputGP":
        super()._apply(fn)
        self._larger = {}
        observe(self.likelihood, self.train_inputs)
        return self

    def named_priors(self) -> Iterator[Any]:
        """List every prior once, so that it counts once when hyper-parameters are fitted.

        GPyTorch lists a prior once for every path to its module, and here features, kernel and
        noise share modules.
        """
        # log p(θ) counts once in log p(y | θ) + log p(θ)
        listed = set()
        for name, module, prior, *closures in super().named_priors():
            if (module, prior) not in listed:
                listed.add((module, prior))
                yield name, module, _Summed(prior) if self.batch_shape else prior, *closures

    def _get_test_prior_mean_and_covariances(
        self, train_inputs: Sequence[Tensor], test_inputs: Sequence[Tensor], **kwargs: Any
    ) -> tuple[Any, ...]:
        # k̂(P, P') of the designs, and k̂(P, P_i) with the observations
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
        # f(X) depends on hyper-parameters only for landmarks; a prediction changes neither
        strategy = self.prediction_strategy
        known = getattr(strategy, "train_features", None)
        if known is None:
            known = _repeated(self.features, X)
            if settings.detach_test_caches.on() and not X.requires_grad:
                known = known.detach()
            strategy.train_features = known
        return cast(Tensor, known)
