"""A base kernel as a sum of Gaussians of different widths."""

import math
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
import torch
from gpytorch.kernels import Kernel, MaternKernel, RBFKernel
from jaxtyping import Float
from scipy.linalg import qr, solve_triangular
from torch import Tensor

SHORTER = 2e-5
"""Largest change of a base kernel, as a share of its value at distance 0, when it is shortened."""
MATERN_TOLERANCE = 2e-5
"""How far the Gaussians that stand for a Matérn kernel are from it, where its value at 0 is 1."""
DEPENDENT = 1e-7
"""Difference of two Gaussians, on average, below which one may stand for the other."""
_LENGTHS = range(4, 26)
_NEGLIGIBLE = 1e-9


@dataclass(frozen=True)
class GaussianSum:
    r"""A base kernel written as a sum of Gaussians of different widths.

    .. math:: k(x, x') = c_0 + \sum_q c_q \exp\Big(-\tfrac12 \lambda_q
              \sum_c \rho_c (x_c - x'_c)^2\Big), \qquad \rho_c = 1 / \ell_c^2

    Hyper-parameters that all parameters share may be in the weights; those of single parameters
    are in the relevances.
    """

    constant: Float[Tensor, ""]
    weights: Float[Tensor, " q"]
    precisions: Float[Tensor, " q"]
    relevances: Float[Tensor, " d"]
    """One per column of the unit cube, or one for all."""

    @property
    def at_zero(self) -> Float[Tensor, ""]:
        """The value at distance 0."""
        return self.constant + self.weights.sum()

    @property
    def moves(self) -> bool:
        """Whether a fit changes the widths of the Gaussians, and not only their weights."""
        return self.precisions.requires_grad or self.relevances.requires_grad

    @property
    def widths(self) -> Float[Tensor, " k"]:
        """All numbers that the widths of the Gaussians follow from."""
        return torch.cat([self.precisions, self.relevances]).detach()

    def by_column(self, d: int) -> Float[Tensor, "q d"]:
        """Return the precision of every Gaussian in every column."""
        return self.precisions.unsqueeze(-1) * self.relevances.expand(d)

    def detached(self) -> "GaussianSum":
        """Take the hyper-parameters for constants."""
        fields = (self.constant, self.weights, self.precisions, self.relevances)
        return GaussianSum(*(v.detach() for v in fields))

    def shortened(self, farthest: float = 10.0) -> "GaussianSum":
        r"""Return a sum of as few Gaussians as change the kernel by no more than ``SHORTER``.

        With :math:`A = \mathrm{diag}(\lambda)` and :math:`b = \sqrt c`, the sum is
        :math:`b^\top e^{-s A / 2} b` at squared distance s. Projecting A on the space of
        :math:`b` and :math:`(A + z_k)^{-1} b` leaves a small matrix whose eigenvalues are the new
        precisions; their weights are squares, so that the kernel stays positive semi-definite. An
        expectation over any P changes no more than the kernel itself.

        Hyper-parameters count as constants here. Distances beyond ``farthest``, in the unit cube,
        do not count.
        """
        whole = self.detached()
        farthest = farthest**2 * whole.relevances.max().item()
        kept = whole.weights > _NEGLIGIBLE * whole.weights.sum()
        if kept.sum() <= _LENGTHS[0]:
            return replace(whole, weights=whole.weights[kept], precisions=whole.precisions[kept])
        weights, precisions = whole.weights[kept].double(), whole.precisions[kept].double()
        limit = SHORTER * whole.at_zero.item()
        for n in _LENGTHS:
            short = _projected(weights, precisions, n, farthest)
            if _distance((weights, precisions), short, farthest) <= limit:
                break
        return replace(
            whole, weights=short[0].to(whole.weights), precisions=short[1].to(whole.weights)
        )


def skeleton(seen: Float[Tensor, "q p"]) -> tuple[Tensor, Float[Tensor, "q r"]]:
    """Find Gaussians of which all others are sums.

    Args:
        seen: Values of every Gaussian at many pairs of designs.

    Returns:
        The numbers of those to keep, and how much of each is in every one: seen = shares seen[kept]
        to about ``DEPENDENT``.
    """
    _, R, order = qr(seen.mT.cpu().numpy(), mode="economic", pivoting=True)
    size = np.abs(R.diagonal())
    r = int((size > DEPENDENT * np.sqrt(seen.shape[1])).sum())
    shares = np.empty((r, len(order)))
    shares[:, order] = solve_triangular(R[:r, :r], R[:r])
    kept = torch.from_numpy(order[:r].astype(np.int64)).to(seen.device)
    return kept, torch.from_numpy(shares.T.copy()).to(seen)


def _projected(w: Tensor, lam: Tensor, n: int, farthest: float) -> tuple[Tensor, Tensor]:
    """Return weights and precisions of n Gaussians."""
    root = w.sqrt().unsqueeze(-1)
    share = w.cumsum(0) / w.sum()
    # what is wider than the farthest distance is flat, and the narrowest hardly count
    smallest = max(10 / farthest, lam[share >= 1e-3].min().item() / 30)
    largest = 3 * lam[(share <= 0.97) | (share == share[0])].max().item()
    z = torch.logspace(math.log10(smallest), math.log10(largest), n - 1).to(lam)
    basis = torch.cat([root, root / (1 + lam.unsqueeze(-1) / z)], dim=1)
    Q, _ = torch.linalg.qr(basis / basis.norm(dim=0))
    precisions, axes = torch.linalg.eigh(Q.mT @ (lam.unsqueeze(-1) * Q))
    return (axes.mT @ Q.mT @ root).squeeze(-1).square(), precisions


def _distance(a: tuple[Tensor, Tensor], b: tuple[Tensor, Tensor], farthest: float) -> float:
    """Return the largest difference of two sums, over squared distances s."""
    s = torch.cat([torch.zeros(1), torch.logspace(-8, math.log10(farthest), 250)]).to(a[0])
    kernels = [torch.exp(-0.5 * s.unsqueeze(-1) * lam) @ w for w, lam in (a, b)]
    return (kernels[0] - kernels[1]).abs().max().item()


def gaussian_sum(kernel: Kernel) -> GaussianSum | None:
    """Return a kernel as a sum of Gaussians, or None where that is not known.

    Known are the paper's rational quadratics, the squared exponential, and Matérn kernels with
    ν = 3/2 and 5/2, with one length scale or one per column.
    """
    own = getattr(kernel, "gaussian_sum", None)
    if own is not None:
        result: GaussianSum = own()
        return result
    if kernel.batch_shape or kernel.active_dims is not None:
        return None
    if isinstance(kernel, RBFKernel):
        relevances = kernel.lengthscale.reshape(-1).square().reciprocal()
        one = relevances.new_ones(1)
        return GaussianSum(one.new_zeros(()), one, one, relevances)
    if isinstance(kernel, MaternKernel) and kernel.nu in (1.5, 2.5):
        relevances = kernel.lengthscale.reshape(-1).square().reciprocal()
        weights, precisions = (relevances.new_tensor(v) for v in _matern(kernel.nu))
        return GaussianSum(relevances.new_zeros(()), weights, precisions, relevances)
    return None


@lru_cache(maxsize=4)
def _matern(nu: float) -> tuple[list[float], list[float]]:
    r"""Return weights and precisions of Gaussians that stand for a Matérn kernel.

    A Matérn kernel is a Gamma mixture of Gaussians; with :math:`u = \log s`

    .. math:: k(r) = \int g(u) \exp(-r^2 / 4 e^u) \, du, \quad
              g(u) = \exp(\nu u + \nu \log 2\nu - 2 \nu e^u) / \Gamma(\nu)

    and the trapezoidal rule converges fast.
    """
    u = torch.arange(-24.0 / nu, 3.0, 0.3, dtype=torch.float64)
    g = torch.exp(nu * (u + math.log(2 * nu)) - 2 * nu * u.exp() - math.lgamma(nu))
    one = u.new_ones(1)
    precisions, weights = (0.5 * torch.exp(-u)).flip(0), (g / g.sum()).flip(0)
    short = GaussianSum(one.new_zeros(()), weights, precisions, one).shortened(1e3)
    return (short.weights / short.weights.sum()).tolist(), short.precisions.tolist()
