"""Laws for authors of new parts.

A kind of uncertainty says many things about one distribution: samples, moments, a distribution
function, sums of Gaussians. airbo uses whichever is at hand, so they have to agree.

A surrogate is a BoTorch model, and BoTorch asks it in many ways: they have to agree, too.

Notation: x a design (d), x' ~ P_x an executed input, δ = x' - x; X designs (n d); u base draws
(s r); ω a frequency (d); φ(ω) = E exp(i ω·x') the characteristic function.
"""

import copy
import math
import pickle
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, is_dataclass
from dataclasses import fields as fields_of
from functools import cached_property
from typing import Any

import numpy as np
import torch
from jaxtyping import Complex, Float
from torch import Tensor

from airbo.models import UncertainInputGP
from airbo.uncertainty import (
    Beta,
    Clipped,
    Exact,
    InputUncertainty,
    Normal,
    Rounded,
    base_draws,
    from_json,
)
from airbo.uncertainty.gaussians import Resolution

Law = Callable[[Any], Iterator[str]]
"""Yields a message for whatever breaks it."""
N_SAMPLES = 2**13
ERRORS = 5.0
"""Standard errors by which an estimate may be off: chance does that once in a million."""
N_DEFAULT = 4096
"""Draws of the moments and the distribution function of a kind that has no closed form."""
GAUSSIANS = Resolution(24)
BLUR = 0.02
"""What so many Gaussians may be off, in units of φ. Together with the error of the samples, which
may be 0.055, a clipped function of the design is off by 0.049, most kinds by less than 0.002."""


def check_uncertainty(
    uncertainty: InputUncertainty, d: int | None = None, designs: Tensor | None = None
) -> None:
    """Check that an uncertainty keeps the laws that airbo relies on.

    Samples, moments, distribution function, characteristic function and Gaussians have to say the
    same. A batch has to equal a loop, and what is saved has to come back.

    >>> from airbo import uncertainty as unc
    >>> check_uncertainty(unc.Beta(0.4, 0.2, scale=0.1))

    A kind of your own is a frozen dataclass with ``is_additive`` and ``_perturb``:

    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True, eq=False, repr=False)
    ... class Backlash(unc.InputUncertainty):
    ...     play: float
    ...     is_additive = True
    ...     def _perturb(self, X, base):
    ...         return X.unsqueeze(-2) + self.play * (base > 0.5)
    >>> check_uncertainty(Backlash(0.1))

    Args:
        uncertainty: What to check.
        d: Number of columns; by default what the uncertainty says, or 2.
        designs: Where to check it (n d); by default three designs between -1 and 1.

    Raises:
        AssertionError: If it breaks a law. The message names every law that it breaks.
    """
    if designs is None:
        d = d or uncertainty.dim or 2
        generator = torch.Generator().manual_seed(1)
        designs = 2 * torch.rand(3, d, generator=generator, dtype=torch.float64) - 1
    _check(repr(uncertainty), _Subject(uncertainty, designs.double()), _LAWS)


def _check(name: str, subject: Any, laws: Mapping[str, Law]) -> None:
    broken = []
    for law, check in laws.items():
        try:
            broken += [f"{law}: {text}" for text in check(subject)]
        except Exception as error:  # that is wrong, too
            broken.append(f"{law}: raised {type(error).__name__}: {error}")
    if broken:
        raise AssertionError(f"{name} breaks {len(broken)} law(s):\n  " + "\n  ".join(broken))


@dataclass(frozen=True)
class _Subject:
    """An uncertainty, and designs to look at it."""

    u: InputUncertainty
    X: Float[Tensor, "n d"]

    @property
    def d(self) -> int:
        return self.X.shape[-1]

    def draws(self, n: int, seed: int = 0) -> Float[Tensor, "{n} r"]:
        return base_draws(n, self.u.n_base(self.d), seed)

    @cached_property
    def samples(self) -> Float[Tensor, "n s d"]:
        return self.u.perturb(self.X, self.draws(N_SAMPLES, seed=3)).detach()

    @cached_property
    def frequencies(self) -> Float[Tensor, "d m"]:
        """Return some ω, as large as one over the widths of the columns."""
        width = self.samples.std(dim=1).amax(dim=0).clamp_min(1e-6).unsqueeze(-1)  # (d, 1)
        generator = torch.Generator().manual_seed(2)
        return torch.randn(self.d, 6, generator=generator, dtype=torch.float64) / width

    def seen(self, points: Float[Tensor, "*n s d"]) -> Complex[Tensor, "*n m"]:
        """Return the mean of exp(i ω·x') over samples."""
        angle = points @ self.frequencies
        return torch.complex(angle.cos().mean(dim=-2), angle.sin().mean(dim=-2))


def _farthest(a: Tensor, b: Tensor) -> float:
    return float((a - b).abs().max()) if a.numel() else 0.0


# -- samples


def _ways(s: _Subject) -> dict[str, Callable[[Tensor], Tensor]]:
    """What is worked out for designs, each by itself."""
    base = s.draws(16)
    ways: dict[str, Callable[[Tensor], Tensor]] = {"perturb": lambda X: s.u.perturb(X, base)}
    return ways | ({"mean": s.u.mean, "covariance": s.u.covariance} if _has_moments(s) else {})


def _shapes(s: _Subject) -> Iterator[str]:
    tails = {"perturb": (16, s.d), "mean": (s.d,), "covariance": (s.d, s.d)}
    for dtype in (torch.float64, torch.float32):
        X = s.X.to(dtype).expand(2, -1, -1)
        for name, compute in _ways(s).items():
            value, shape = compute(X), (*X.shape[:-1], *tails[name])
            if value.shape != torch.Size(shape) or value.dtype != dtype:
                yield (
                    f"{name} of designs {tuple(X.shape)} in {dtype} should be {shape} of that "
                    f"type, got {tuple(value.shape)} in {value.dtype}."
                )
            elif not torch.isfinite(value).all():
                yield f"{name} in {dtype} is not finite everywhere."


def _batches(s: _Subject) -> Iterator[str]:
    for name, compute in _ways(s).items():
        looped = torch.cat([compute(x) for x in s.X.split(1)])
        if not torch.allclose(compute(s.X.expand(2, -1, -1)), looped.expand(2, *looped.shape)):
            yield f"{name} of a design depends on the other designs of the batch."


def _repeats(s: _Subject) -> Iterator[str]:
    before = torch.get_rng_state(), _numpy_state()
    first, again = (s.u.perturb(s.X, s.draws(16)) for _ in range(2))
    if not torch.equal(first, again):
        yield "the same base draws gave other samples."
    if not (torch.equal(torch.get_rng_state(), before[0]) and _numpy_state() == before[1]):
        yield "it changed the global random state."
    if torch.equal(first, s.u.perturb(s.X, s.draws(16, seed=1))) is not s.u.is_exact and (
        float(s.samples.std(dim=1).max()) > 0
    ):
        yield "other base draws gave the same samples."
    more = torch.cat([s.draws(16), torch.rand(16, 2, dtype=torch.float64)], dim=1)
    if not torch.equal(first, s.u.perturb(s.X, more)):
        yield "it used more base numbers than n_base says."


def _numpy_state() -> bytes:
    state: Any = np.random.get_state()
    return bytes(state[1].tobytes())


def _gradients(s: _Subject) -> Iterator[str]:
    X, base = s.X.clone().requires_grad_(), s.draws(8)
    right = torch.autograd.gradcheck(
        lambda x: s.u.perturb(x, base), X, atol=1e-5, raise_exception=False
    )
    if not right:
        yield "the gradient of perturb is not that of finite differences."


# -- one distribution, said in several ways


def _is_possible(attempt: Callable[[], object], refusal: str) -> bool:
    """Say whether something works; a refusal with other words is an error."""
    try:
        attempt()
    except (ValueError, TypeError) as error:
        if refusal in str(error):
            return False
        raise
    return True


def _has_moments(s: _Subject) -> bool:
    # a Cauchy distribution, for example, has none
    return _is_possible(lambda: s.u.covariance(s.X), "no finite")


def _moments(s: _Subject) -> Iterator[str]:
    if not _has_moments(s):
        return
    centred = s.samples - s.samples.mean(dim=-2, keepdim=True)
    products = centred.unsqueeze(-1) * centred.unsqueeze(-2)  # (n, s, d, d)
    error = ERRORS * math.sqrt(1 / N_SAMPLES + 1 / N_DEFAULT)
    # far tails that no sample hits count for a little, also where all samples are the same
    unseen = 1e-6 * float((s.samples - s.X.unsqueeze(1)).abs().max()) + 1e-12
    for name, said, seen, spread in (
        ("mean", s.u.mean(s.X), s.samples.mean(dim=1), s.samples.std(dim=1)),
        ("covariance", s.u.covariance(s.X), products.mean(dim=1), products.std(dim=1)),
    ):
        if bool(((said - seen).abs() > error * spread + unseen).any()):
            yield f"{name} is off by {_farthest(said, seen):.3g} from that of the samples."


def _distribution_function(s: _Subject) -> Iterator[str]:
    try:
        s.u.check_dim(1)
        s.u.n_base(1)
    except ValueError:  # it needs more columns
        return
    one = _Subject(s.u, s.X[:, :1])
    landed = one.samples.squeeze(-1)  # (n, s)
    levels = torch.tensor([0.02, 0.3, 0.7, 0.98], dtype=torch.float64)
    # a little beside the quantiles, where no jump of a discrete distribution is
    t = landed.quantile(levels, dim=1).T + 0.0123 * landed.std(dim=1, keepdim=True)  # (n, 4)
    said = one.u.cdf(one.X, t)
    seen = (landed.unsqueeze(-1) < t.unsqueeze(-2)).double().mean(dim=1)
    error = ERRORS * 0.5 * math.sqrt(1 / N_SAMPLES + 1 / N_DEFAULT)
    if _farthest(said, seen) > error:
        yield f"cdf is off by {_farthest(said, seen):.3g} from the share of samples below."


def _characteristic_function(s: _Subject) -> Iterator[str]:
    # of an additive deviation: E exp(i ω·δ)
    if s.u.is_additive:
        yield from _off(
            "characteristic", s.u.characteristic(s.frequencies),
            s.seen(s.samples[:1] - s.X[:1].unsqueeze(1)),
        )  # fmt: skip


def _gaussians(s: _Subject) -> Iterator[str]:
    parts = s.u.landing(s.X, GAUSSIANS)
    if sorted(c for part in parts for c in part.columns) != list(range(s.d)):
        yield f"the columns of its Gaussians are {[p.columns for p in parts]}, not all {s.d} once."
        return
    for part in parts:
        if _farthest(part.weights.sum(-1), torch.ones(())) > 1e-9:
            yield f"the weights of the Gaussians of columns {part.columns} do not sum to 1."
    # φ(ω) = Π_b φ_b(ω_b) over independent blocks b
    factors = [part.characteristic(s.frequencies[list(part.columns)]) for part in parts]
    yield from _off(
        "the sum of its Gaussians", math.prod(factors[1:], start=factors[0]), s.seen(s.samples)
    )


def _off(what: str, said: Tensor, seen: Tensor) -> Iterator[str]:
    away = _farthest(said, seen)
    if away > ERRORS / math.sqrt(N_SAMPLES) + BLUR:
        yield f"{what} is off by {away:.3g} from the samples, in units of φ."


def _bounds(s: _Subject) -> Iterator[str]:
    if not s.u.is_bounded(s.d) or _has_limits(s.u):
        return
    reach = []
    for tail in (1e-3, 1e-15):
        base = s.draws(512, seed=5)
        ends = torch.where(base < 0.5, tail, 1 - tail)  # all base numbers at their ends
        samples = torch.cat([s.u.perturb(s.X, b) for b in (base, ends)], dim=1)
        reach.append((samples - s.X.unsqueeze(1)).abs().amax(dim=(0, 1)))
    # the quantiles of a normal at these two levels are 3.1 and 7.9 standard deviations out
    if bool((reach[1] > 2 * reach[0] + 1e-12).any()):
        yield "is_bounded says True, but draws in the tails lie more than twice as far out."


# -- what it says about its columns


def _claims(s: _Subject) -> Iterator[str]:
    base, shift = s.draws(16), torch.linspace(0.5, 2.5, s.d, dtype=torch.float64)
    samples = s.u.perturb(s.X, base)
    if s.u.is_additive and not torch.allclose(
        s.u.perturb(s.X + shift, base), samples + shift.to(samples)
    ):
        yield "is_additive says True, but deviations change with the design."
    if s.u.is_multiplicative and not torch.allclose(s.u.perturb(3 * s.X, base), 3 * samples):
        yield "is_multiplicative says True, but x' / x changes with the design."
    if s.u.is_exact and not torch.equal(samples, s.X.unsqueeze(1).expand_as(samples)):
        yield "is_exact says True, but samples are not the design."


def _own_numbers(s: _Subject) -> Iterator[str]:
    base = s.draws(16)
    if not s.u.independent_columns or not base.shape[1]:
        return
    if base.shape[1] != s.d:
        yield f"independent_columns needs n_base(d) = d, got {base.shape[1]} for d = {s.d}."
        return
    for j in range(s.d):
        other = 1 - base
        other[:, j] = base[:, j]
        if not torch.allclose(s.u.perturb(s.X, other)[..., j], s.u.perturb(s.X, base)[..., j]):
            yield f"column {j} is made from the base numbers of other columns."


def _blocks(s: _Subject) -> Iterator[str]:
    blocks = s.u.independent_blocks(s.d)
    if sorted(c for _, own in blocks for c in own) != list(range(s.d)):
        yield f"its blocks have the columns {[own for _, own in blocks]}, not each of {s.d} once."


def _refusals(s: _Subject) -> Iterator[str]:
    needed = s.u.n_base(s.d)
    wrong: dict[str, Callable[[], Any]] = {}
    if s.u.dim is not None:
        wider = torch.cat([s.X, s.X[:, :1]], dim=1)
        wrong["a design with a column more"] = lambda: s.u.perturb(wider, base_draws(4, needed + 9))
    if needed:
        few = base_draws(4, needed - 1)
        wrong["base draws with a number less"] = lambda: s.u.perturb(s.X, few)
    for what, attempt in wrong.items():
        try:
            attempt()
        except ValueError:
            continue
        yield f"{what} is not refused with a ValueError."


# -- multiples, copies, words


def _scales(s: _Subject) -> Iterator[str]:
    base = s.draws(32)

    def deviations(factor: float) -> Tensor:
        return s.u.scaled(factor).perturb(s.X, base) - s.X.unsqueeze(1)

    plain = s.u.perturb(s.X, base) - s.X.unsqueeze(1)
    for factor in (1.0,) if _has_limits(s.u) else (0.0, 0.5, 1.0, 2.0):
        if not torch.allclose(deviations(factor), factor * plain, atol=1e-9, rtol=1e-6):
            yield f"scaled({factor:g}) does not multiply the deviations by {factor:g}."


def _has_limits(value: Any) -> bool:
    if isinstance(value, tuple):
        return any(map(_has_limits, value))
    if isinstance(value, Clipped | Rounded) or not isinstance(value, InputUncertainty):
        return isinstance(value, InputUncertainty)
    held: list[str] = [f.name for f in fields_of(value)] if is_dataclass(value) else []
    return any(_has_limits(getattr(value, name)) for name in held)


def _copies(s: _Subject) -> Iterator[str]:
    found = {"a deep copy": copy.deepcopy(s.u)}
    if _is_possible(s.u.to_json, "cannot be saved"):
        found["what JSON gives back"] = from_json(s.u.to_json())
        own = type(s.u)
        if getattr(sys.modules.get(own.__module__), own.__name__, None) is own:  # can be imported
            found["what pickle gives back"] = pickle.loads(pickle.dumps(s.u))  # noqa: S301
    base = s.draws(16)
    for what, other in found.items():
        if other != s.u or hash(other) != hash(s.u):
            yield f"{what} is not equal to it."
        elif not torch.equal(other.perturb(s.X, base), s.u.perturb(s.X, base)):
            yield f"{what} has other samples."
    if s.u == object() or s.u == s.u.scaled(0.5).clipped(low=-1e9):
        yield "it is equal to another uncertainty."


def _words(s: _Subject) -> Iterator[str]:
    text = s.u.words(lambda numbers, unit=True: str(numbers))
    if not text.strip() or "\n" in text:
        yield f"words should be one line, got {text!r}."


_LAWS: dict[str, Law] = {
    "shapes": _shapes,
    "batch = loop": _batches,
    "same draws, same samples": _repeats,
    "gradients": _gradients,
    "moments = samples": _moments,
    "cdf = samples": _distribution_function,
    "characteristic function = samples": _characteristic_function,
    "Gaussians = samples": _gaussians,
    "bounds": _bounds,
    "claims": _claims,
    "own base numbers": _own_numbers,
    "independent blocks": _blocks,
    "refusals": _refusals,
    "scaled": _scales,
    "copies": _copies,
    "words": _words,
}


# -- surrogates


def check_surrogate(
    cls: Callable[..., UncertainInputGP],
    uncertainty: InputUncertainty | None = None,
    d: int | None = None,
) -> None:
    """Check that a surrogate keeps the laws that airbo and BoTorch rely on.

    A batch has to equal a loop, a fit has to see the kernel of predictions, a question must not
    change the model, and copies have to predict the same.

    >>> from airbo.models import ExpectationGP
    >>> check_surrogate(ExpectationGP)

    Args:
        cls: Makes a model from train_X, train_Y, uncertainty and bounds.
        uncertainty: Of all observations; by default a skewed one.
        d: Number of columns; by default what the uncertainty says, or 2.

    Raises:
        AssertionError: If it breaks a law. The message names every law that it breaks.
    """
    uncertainty = uncertainty or Beta(0.4, 0.2, scale=0.1)
    subject = _Model(cls, uncertainty, d or uncertainty.dim or 2)
    _check(getattr(cls, "__name__", repr(cls)), subject, _LAWS_OF_MODELS)


@dataclass(frozen=True)
class _Model:
    """How to make a model, data X and Y for it, and designs Q to ask about."""

    cls: Callable[..., UncertainInputGP]
    u: InputUncertainty
    d: int

    @cached_property
    def X(self) -> Float[Tensor, "n d"]:
        return 2 * base_draws(9, self.d, seed=4) - 1

    @cached_property
    def Y(self) -> Float[Tensor, "n 1"]:
        return torch.sin(3 * self.X).sum(-1, keepdim=True)

    @cached_property
    def Q(self) -> Float[Tensor, "q d"]:
        return 2 * base_draws(5, self.d, seed=5) - 1

    def model(self, n: int | None = None) -> UncertainInputGP:
        bounds = torch.tensor([[-1.0] * self.d, [1.0] * self.d], dtype=torch.float64)
        return self.cls(self.X[:n], self.Y[:n], self.u, bounds=bounds).eval()

    def seen(self, model: UncertainInputGP, X: Tensor) -> tuple[Tensor, Tensor]:
        """Return means and variances."""
        with torch.no_grad():
            posterior = model.posterior(X)
            return posterior.mean, posterior.variance


def _apart(one: tuple[Tensor, Tensor], two: tuple[Tensor, Tensor], limit: float = 1e-6) -> bool:
    return any(a.shape != b.shape or _farthest(a, b) > limit for a, b in zip(one, two, strict=True))


def _predicts(m: _Model) -> Iterator[str]:
    mean, variance = m.seen(m.model(), m.Q)
    if mean.shape != (5, 1) or variance.shape != (5, 1):
        yield f"5 designs have a mean of shape {tuple(mean.shape)}, not (5, 1)."
    elif not bool(mean.isfinite().all() and (variance > 0).all()):
        yield "means are not finite, or variances not positive."


def _one_by_one(m: _Model) -> Iterator[str]:
    model = m.model()
    looped = [m.seen(model, q) for q in m.Q.split(1)]
    one = torch.cat([a for a, _ in looped]), torch.cat([b for _, b in looped])
    if _apart(m.seen(model, m.Q), one):
        yield "designs together and one by one are predicted differently."
    batched = m.seen(model, m.Q.unsqueeze(-2))
    if _apart((batched[0].squeeze(-2), batched[1].squeeze(-2)), one):
        yield "a batch of designs is predicted differently."


def _semidefinite(m: _Model) -> Iterator[str]:
    with torch.no_grad():
        joint = m.model().posterior(torch.cat([m.Q, m.X])).distribution.covariance_matrix
    least = float(torch.linalg.eigvalsh(joint)[0])
    if least < -1e-6 * float(joint.diagonal().max()):
        yield f"a covariance matrix has the eigenvalue {least:.2g}."


def _one_kernel(m: _Model) -> Iterator[str]:
    model = m.model()
    predicted = model.covar_module(model.features(m.X)).to_dense().detach()
    model.train()
    fitted = model.covar_module(model.features(m.X)).to_dense().detach()
    if _farthest(fitted, predicted) > 1e-6 * float(predicted.diagonal().max()):
        yield f"kernels of fit and prediction differ by {_farthest(fitted, predicted):.2g}."


def _questions(m: _Model) -> Iterator[str]:
    model = m.model()
    before = m.seen(model, m.Q)
    with torch.no_grad():
        model.posterior(m.Q, uncertainty=Normal(0.3))
        model.posterior(m.Q, uncertainty=Exact())
        model.posterior(20 * m.Q)
    if _apart(m.seen(model, m.Q), before, limit=0):
        yield "predictions change after other questions."


def _slopes(m: _Model) -> Iterator[str]:
    model, step = m.model(), 1e-4
    q = m.Q[:1].clone().requires_grad_()
    (slope,) = torch.autograd.grad(model.posterior(q).mean.sum(), q)
    ahead, behind = (
        torch.stack([m.seen(model, m.Q[:1] + s * e)[0].sum() for e in torch.eye(m.d)])
        for s in (step, -step)
    )
    expected = (ahead - behind) / (2 * step)
    if _farthest(slope[0], expected) > 1e-3 * (1 + float(expected.abs().max())):
        yield "the gradient of the mean is not that of finite differences."


def _copies_of_models(m: _Model) -> Iterator[str]:
    model = m.model()
    before = m.seen(model, m.Q)
    found = {"a deep copy": copy.deepcopy(model)}
    found["what pickle gives back"] = pickle.loads(pickle.dumps(model))  # noqa: S301
    for what, other in found.items():
        if _apart(m.seen(other, m.Q), before, limit=1e-9):
            yield f"{what} predicts otherwise."


def _further(m: _Model) -> Iterator[str]:
    few = m.model(6)
    state = {name: value.clone() for name, value in few.state_dict().items()}
    few.posterior(m.Q)
    told = few.condition_on_observations(m.X[6:], m.Y[6:])
    transform: Any = getattr(few, "outcome_transform", None)
    known = m.model()
    known.load_state_dict(state)
    if transform is not None:  # the units of the first six
        known.train_targets = transform(m.Y)[0].squeeze(-1)
        known.outcome_transform = transform
    if _apart(m.seen(told, m.Q), m.seen(known, m.Q), limit=1e-4):
        yield "condition_on_observations and a model of all data predict differently."


_LAWS_OF_MODELS: dict[str, Law] = {
    "predictions": _predicts,
    "batch = loop": _one_by_one,
    "positive semi-definite": _semidefinite,
    "fit = prediction": _one_kernel,
    "questions": _questions,
    "gradients": _slopes,
    "copies": _copies_of_models,
    "further observations": _further,
}
