"""How an MMD is estimated: values that users pass to models and to ``mmd2``, and what they make.

Notation: j points u of a design, with weights w (n, j) and places (n, j, d) in the unit cube; s
samples, h landmarks among them; ψ_P ≈ Σ_j w_j k(u_j, ·).
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import torch
from gpytorch.kernels import Kernel
from jaxtyping import Float, Int64
from torch import Tensor

from airbo.embeddings.base_kernels import RationalQuadraticSum, gaussian_sum
from airbo.embeddings.features import PORTION, Embedding
from airbo.embeddings.inner_product import GaussianEmbedding
from airbo.uncertainty import InputUncertainty, base_draws

_POINTS_PER_ATOM = 4
"""Plain samples that stand in for one quadrature node under a base kernel without closed forms."""
STEPS = 5
"""Results of single steps of the base kernel that are held at a time."""


class Estimator(ABC):
    """A way to make features out of P_x."""

    @abstractmethod
    def embed(
        self,
        uncertainties: Sequence[InputUncertainty],
        base_kernel: Kernel,
        bounds: Float[Tensor, "2 d"],
        seed: int = 0,
    ) -> Embedding:
        """Build the embedding that a model uses; all its draws are fixed by ``seed``."""


@dataclass(frozen=True)
class Quadrature(Estimator):
    """Integrate over P_x in closed form where it is Gaussian, by quadrature where it is not.

    The default: there is nothing random in it, and MMD² is exactly the squared distance of two
    points in the Hilbert space of the base kernel.
    """

    n_atoms: int = 12
    """Quadrature nodes per block of dependent columns; Gaussian blocks need none."""

    def __post_init__(self) -> None:
        _check_at_least(1, n_atoms=self.n_atoms)

    def embed(
        self,
        uncertainties: Sequence[InputUncertainty],
        base_kernel: Kernel,
        bounds: Float[Tensor, "2 d"],
        seed: int = 0,
    ) -> Embedding:
        """Build the embedding; ``seed`` matters only where P_x has to be sampled."""
        if gaussian_sum(base_kernel) is None:
            samples = Empirical(_POINTS_PER_ATOM * self.n_atoms)
            return samples.embed(uncertainties, base_kernel, bounds, seed)
        return GaussianEmbedding(self.n_atoms, uncertainties, base_kernel, bounds)


@dataclass(frozen=True)
class Empirical(Estimator):
    r"""Average the base kernel over all pairs of samples, as the paper's first estimator.

    ``mmd2`` gives the U-statistic of the paper. A model holds one fixed set of samples per design;
    there the U-statistic is :math:`\mathrm{MMD}^2_V - b_P - b_Q`, where the first term, the
    V-statistic, is a squared distance and :math:`b_P \ge 0` is what makes the estimate between P
    and itself negative. Dividing :math:`\exp(-\alpha\,\mathrm{MMD}^2)` by the square roots of its
    two diagonal values, so that :math:`\hat k(P, P) = 1`, cancels both: the model's kernel is that
    of the V-statistic, and positive semi-definite.
    """

    n_samples: int
    """Samples per design."""

    def __post_init__(self) -> None:
        _check_at_least(1, n_samples=self.n_samples)

    def embed(
        self,
        uncertainties: Sequence[InputUncertainty],
        base_kernel: Kernel,
        bounds: Float[Tensor, "2 d"],
        seed: int = 0,
    ) -> Embedding:
        """Build the embedding from ``n_samples`` scrambled Sobol draws."""
        return SampledEmbedding(self.n_samples, None, seed, uncertainties, base_kernel, bounds)


@dataclass(frozen=True)
class Nystrom(Estimator):
    r"""Compress samples into landmarks among them, as the paper's second estimator.

    .. math:: \psi_P \approx \sum_i \alpha_i k(\tilde u_i, \cdot), \quad
              \alpha = K_h^{+} K_{hm} \mathbf 1_m / m

    with the ``n_landmarks`` sub-samples :math:`\tilde u` of every distribution fixed per model.
    Written as an embedding it is positive semi-definite by construction.
    """

    n_samples: int
    """Samples per design, m in the paper."""
    n_landmarks: int
    """Sub-samples per design, h in the paper."""

    def __post_init__(self) -> None:
        _check_at_least(1, n_samples=self.n_samples, n_landmarks=self.n_landmarks)
        if self.n_landmarks > self.n_samples:
            raise ValueError(
                f"n_landmarks must not exceed n_samples, got {self.n_landmarks} landmarks "
                f"for {self.n_samples} samples."
            )

    def embed(
        self,
        uncertainties: Sequence[InputUncertainty],
        base_kernel: Kernel,
        bounds: Float[Tensor, "2 d"],
        seed: int = 0,
    ) -> Embedding:
        """Build the embedding from fixed draws and a fixed choice of landmarks among them."""
        landmarks = self.landmarks(self.n_samples, seed)
        return SampledEmbedding(self.n_samples, landmarks, seed, uncertainties, base_kernel, bounds)

    def landmarks(self, n_samples: int, seed: int = 0) -> Tensor:
        """Choose which of the samples are landmarks."""
        generator = torch.Generator().manual_seed(seed)
        return torch.randperm(n_samples, generator=generator)[: self.n_landmarks]


def _check_at_least(least: int, **counts: int) -> None:
    for name, count in counts.items():
        if not isinstance(count, int) or isinstance(count, bool) or count < least:
            raise ValueError(f"{name} must be a whole number >= {least}, got {count!r}.")


# -- embeddings by samples of P_x


class SampledEmbedding(Embedding):
    """Embeds P_x as weighted points: right for every uncertainty and every base kernel.

    The points are samples of P_x, which all count alike, or a few of them, the landmarks, which
    stand for all.
    """

    def __init__(self, n_samples: int, landmarks: Tensor | None, seed: int, *args: object) -> None:
        """Draw ``n_samples`` scrambled Sobol samples per design; ``landmarks`` chooses among them.

        Further arguments are those of ``Embedding``.
        """
        super().__init__(*args)  # type: ignore[arg-type]
        self.n_samples, self.seed = n_samples, seed
        self.n_points = n_samples if landmarks is None else len(landmarks)
        """Points per design."""
        self.register_buffer("landmarks", landmarks)
        self.depends_on_hyperparameters = landmarks is not None

    def points(
        self, Z: Float[Tensor, "*batch n d"], uncertainty: InputUncertainty
    ) -> tuple[Float[Tensor, "*#batch #n j"], Float[Tensor, "*batch n j d"]]:
        """Return the weights of points and the points themselves, in the unit cube."""
        if self.landmarks is None:
            # ψ_P ≈ (1/s) Σ_i k(u_i, ·)
            samples = draw(Z, uncertainty, self.n_samples, self.seed)
            return torch.full_like(samples[..., 0], 1 / self.n_points), samples
        if uncertainty.is_additive and getattr(self.base_kernel, "is_stationary", False):
            # the same weights and deviations for all designs; while hyper-parameters are taken for
            # given they stay the same
            hyperparameters = list(self.base_kernel.parameters())
            compute = partial(self._landmarks, self.low.new_zeros(1, self.d), uncertainty)
            if not hyperparameters or any(p.requires_grad for p in hyperparameters):
                weights, deviations = compute()
            else:
                key = torch.cat([p.flatten() for p in hyperparameters])
                name = f"landmarks {self.in_cube.index(uncertainty)}"
                weights, deviations = self.remembered(name, key, compute)
            return weights, Z.unsqueeze(-2) + deviations
        return self._landmarks(Z, uncertainty)

    def _landmarks(self, Z: Tensor, uncertainty: InputUncertainty) -> tuple[Tensor, Tensor]:
        # ψ_P ≈ Σ_j α_j k(u_j, ·) with α = K_h⁺ K_hs 1 / s
        samples = draw(Z, uncertainty, self.n_samples, self.seed)  # (..., n, s, d)
        landmarks = samples[..., self.landmarks, :]
        return nystrom_weights(self.base_kernel, landmarks, samples), landmarks

    def compute(
        self, X: Float[Tensor, "*batch n d"], choice: Int64[Tensor, "*batch n"]
    ) -> Float[Tensor, "*batch n f"]:
        """Pack the points of P_x."""

        def packed(Z: Tensor, number: int) -> Tensor:
            weights, points = self.points(Z, self.in_cube[number])
            return torch.cat([weights.expand(points.shape[:-1]), points.flatten(-2)], dim=-1)

        return self.under_own((X - self.low) / self.width, choice, packed)

    def inner(
        self,
        f1: Float[Tensor, "*#batch n f"],
        f2: Float[Tensor, "*#batch k f"],
        diag: bool = False,
    ) -> Float[Tensor, "..."]:
        r"""Sum the base kernel over pairs of points: :math:`\sum_{jk} w_j w_k k(u_j, v_k)`."""
        batch = torch.broadcast_shapes(f1.shape[:-2], f2.shape[:-2])
        per_row = STEPS * self.n_points**2 * batch.numel() * (1 if diag else f2.shape[-2])
        # rows of the first designs, so many at a time as fit in the cache
        parts = f1.split(max(1, PORTION // per_row), dim=-2)
        if not diag:
            return torch.cat([self._by_pairs(a, f2, diag) for a in parts], dim=-2)
        pairs = zip(parts, f2.split(parts[0].shape[-2], dim=-2), strict=True)
        return torch.cat([self._by_pairs(a, b, diag) for a, b in pairs], dim=-1)

    def _unpack(self, f: Tensor) -> tuple[Tensor, Tensor]:
        # f = (w_1 ... w_j, u_1 ... u_j)
        weights, points = f.split([self.n_points, self.n_points * self.d], dim=-1)
        return weights, points.unflatten(-1, (self.n_points, self.d))

    def _by_pairs(self, f1: Tensor, f2: Tensor, diag: bool) -> Tensor:
        # P = Σ_j w_j at u_j, Q = Σ_k v_k at x_k
        (w, u), (v, x) = self._unpack(f1), self._unpack(f2)
        if diag:
            # Σ_jk w_j v_k k(u_j, x_k), design by design
            gram = self.base_kernel(u, x).to_dense()  # (..., n, j, k)
            return torch.einsum("...j,...jk,...k->...", w, gram, v)
        gram = self.base_kernel(u.flatten(-3, -2), x.flatten(-3, -2)).to_dense()
        gram = gram.unflatten(-1, v.shape[-2:]).unflatten(-3, w.shape[-2:])
        # first Σ_j w_j, then Σ_k v_k
        half = (gram * w[..., None, None]).sum(-3)  # (..., n, q, k)
        return (half * v.unsqueeze(-3)).sum(-1)


def draw(
    Z: Float[Tensor, "*batch n d"], uncertainty: InputUncertainty, n_samples: int, seed: int
) -> Float[Tensor, "*batch n s d"]:
    """Draw samples of P_x: a fixed function of the designs."""
    # x' = perturb(x, base), with the same base draws for all designs and all calls
    n_base = uncertainty.n_base(Z.shape[-1])
    base = base_draws(n_samples, n_base, seed, dtype=Z.dtype, device=Z.device)
    return uncertainty.perturb(Z, base)


def nystrom_weights(
    kernel: Kernel, landmarks: Float[Tensor, "*batch h d"], samples: Float[Tensor, "*batch m d"]
) -> Float[Tensor, "*batch h"]:
    """Return the weights that make landmarks stand for the mean of all samples."""
    # α = (K_h + ε I)⁻¹ K_hm 1 / m
    K_h = kernel(landmarks).to_dense()
    trace = K_h.diagonal(dim1=-2, dim2=-1).mean(-1)[..., None, None]
    jitter = 1e-8 * trace * torch.eye(landmarks.shape[-2]).to(K_h)
    mean = kernel(landmarks, samples).to_dense().mean(-1, keepdim=True)
    return torch.cholesky_solve(mean, torch.linalg.cholesky(K_h + jitter)).squeeze(-1)


# -- the distance by itself


def mmd2(
    x: Float[Tensor, "*batch s d"],
    y: Float[Tensor, "*batch t d"],
    kernel: Kernel | None = None,
    estimator: Estimator | None = None,
) -> Float[Tensor, "*batch"]:
    """Estimate the squared MMD between two sets of samples.

    Without an estimator this is the V-statistic: biased upwards by O(1/s), but never negative and
    exactly zero when the two sets coincide. ``Empirical`` gives the paper's U-statistic: unbiased,
    sometimes negative. ``Nystrom`` gives the paper's approximation with landmarks among the
    samples. All the samples given are used, whatever number the estimator names for models.

    Args:
        x: Samples of the first distribution.
        y: Samples of the second distribution.
        kernel: The base kernel; by default the paper's sum of rational quadratics with length
            scale 1.
        estimator: None, ``Empirical(...)`` or ``Nystrom(...)``.

    Returns:
        One estimate per batch.
    """
    _check_samples("x", x, at_least=2 if isinstance(estimator, Empirical) else 1)
    _check_samples("y", y, at_least=2 if isinstance(estimator, Empirical) else 1)
    if x.shape[-1] != y.shape[-1]:
        raise ValueError(f"x has {x.shape[-1]} columns but y has {y.shape[-1]}.")
    kernel = (RationalQuadraticSum(1.0) if kernel is None else kernel).to(x)
    if estimator is None:
        return _v_statistic(x, y, kernel)
    if isinstance(estimator, Empirical):
        return _u_statistic(x, y, kernel)
    if isinstance(estimator, Nystrom):
        return _nystrom(x, y, kernel, estimator)
    raise TypeError(f"mmd2 takes Empirical, Nystrom or None as estimator, got {estimator!r}.")


def _v_statistic(x: Tensor, y: Tensor, kernel: Kernel) -> Tensor:
    k_xx, k_yy, k_xy = (
        _dense(kernel, a, b).mean(dim=(-2, -1)) for a, b in ((x, x), (y, y), (x, y))
    )
    return k_xx + k_yy - 2 * k_xy  # ‖μ_x − μ_y‖²


def _u_statistic(x: Tensor, y: Tensor, kernel: Kernel) -> Tensor:
    def within(z: Tensor) -> Tensor:  # Σ_{i≠j} k(z_i, z_j) / s (s - 1)
        K, s = _dense(kernel, z, z), z.shape[-2]
        return (K.sum(dim=(-2, -1)) - K.diagonal(dim1=-2, dim2=-1).sum(-1)) / (s * (s - 1))

    return within(x) + within(y) - 2 * _dense(kernel, x, y).mean(dim=(-2, -1))


def _nystrom(x: Tensor, y: Tensor, kernel: Kernel, estimator: Nystrom) -> Tensor:
    z_x, z_y = (s[..., estimator.landmarks(s.shape[-2]).to(s.device), :] for s in (x, y))
    a_x, a_y = nystrom_weights(kernel, z_x, x), nystrom_weights(kernel, z_y, y)

    # ‖Σ α k(u, ·) − Σ β k(v, ·)‖² as one quadratic form
    points, weights = torch.cat([z_x, z_y], dim=-2), torch.cat([a_x, -a_y], dim=-1)
    return torch.einsum("...i,...ij,...j->...", weights, _dense(kernel, points, points), weights)


def _dense(kernel: Kernel, a: Tensor, b: Tensor) -> Tensor:
    return kernel(a, b).to_dense()


def _check_samples(name: str, samples: Tensor, at_least: int) -> None:
    if samples.dim() < 2 or samples.shape[-2] < at_least:
        raise ValueError(
            f"{name} must hold at least {at_least} sample(s) in rows, (..., s, d), "
            f"got shape {tuple(samples.shape)}."
        )
    if not bool(torch.isfinite(samples).all()):
        raise ValueError(f"{name} contains values that are not finite.")
