"""Several columns that depend on each other: sums of Gaussians, as functions or pair by pair.

Notation: ``q`` Gaussians of the base kernel with diagonal precisions Λ (q, b); ``b`` columns; P and
Q sums of ``j`` and ``l`` Gaussians with weights w, means m and covariances C; t (b, pairs) the
difference of two designs, or of two means; V = C_j + C_l.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from airbo.uncertainty.gaussians import Mixture


@dataclass(frozen=True)
class Quadratics:
    r"""A Gaussian base kernel between designs that deviate alike: a function of their difference.

    With P - Q a sum of Gaussians with weights :math:`w_j`, means :math:`s_j` and covariances V_j,

    .. math:: g(t) = \sum_j w_j |I + \Lambda V_j|^{-1/2}
              \exp\left(-\tfrac12 (t + s_j)^\top (\Lambda^{-1} + V_j)^{-1} (t + s_j)\right)

    The exponents are linear in the products of two entries of t, and in t: one matrix product.
    """

    coefficients: Float[Tensor, "q j f"]
    offsets: Float[Tensor, "q j"]
    heights: Float[Tensor, "q j"]

    @classmethod
    def of(cls, difference: Mixture, precisions: Float[Tensor, "q b"]) -> "Quadratics":
        """Integrate every Gaussian base kernel over the difference of two deviations."""
        own = difference.to(precisions)
        w, s, V = own.weights[0], own.means[0], own.covariances[0]
        # with R = Λ^½ and L Lᵀ = I + R V R: (Λ⁻¹ + V)⁻¹ = R (L Lᵀ)⁻¹ R and |I + Λ V| = |L|²
        R = precisions.sqrt().unsqueeze(1)
        RR = (R.unsqueeze(-1) * R.unsqueeze(-2)).expand(-1, len(w), -1, -1)  # (q, j, b, b)
        L = torch.linalg.cholesky(torch.eye(s.shape[-1]).to(RR) + RR * V)
        A = RR * torch.cholesky_inverse(L)
        heights = w / L.diagonal(dim1=-2, dim2=-1).prod(-1)
        # -½ (t + s)ᵀ A (t + s) = -½ tᵀ A t - (A s)ᵀ t - ½ sᵀ A s
        i, k = torch.triu_indices(s.shape[-1], s.shape[-1])
        quadratic = A[..., i, k] * torch.where(i == k, -0.5, -1.0).to(A)
        linear = -(A @ s.unsqueeze(-1)).squeeze(-1)
        return cls(torch.cat([quadratic, linear], dim=-1), 0.5 * (linear * s).sum(-1), heights)

    def __call__(self, t: Float[Tensor, "b *pairs"]) -> Float[Tensor, "q *pairs"]:
        """Evaluate all sums."""
        i, k = torch.triu_indices(len(t), len(t))
        flat = t.flatten(1)
        rows = torch.cat([flat[i] * flat[k], flat])  # (f, pairs)
        linear, offsets = self.coefficients.flatten(0, 1), self.offsets.reshape(-1, 1)
        terms = torch.addmm(offsets, linear, rows).exp().unflatten(0, self.heights.shape)
        # Σ_j h_j exp(...)
        return (self.heights.unsqueeze(1) @ terms).squeeze(1).unflatten(-1, t.shape[1:])


def over_pairs_of_components(
    p: Mixture, q: Mixture, precisions: Float[Tensor, "q b"], diag: bool
) -> Float[Tensor, "q ..."]:
    r"""Integrate every Gaussian base kernel over two sums of Gaussians.

    .. math:: \sum_{jk} w_j w_k \, |I + \Lambda V|^{-1/2}
              \exp\left(-\tfrac12 (m_j - m_k)^\top (\Lambda^{-1} + V)^{-1} (m_j - m_k)\right),
              \quad V = C_j + C_k
    """
    # t = m_j - m_l, and -2 log of every term of the sum but its weights
    t = torch.sub(*_against(p.means, q.means, 1, diag))  # (..., [n, k | n], j, l, b)
    if p.spread is None or q.spread is None:
        exponent = t.square() @ precisions.mT
    else:
        exponent = _quadratic(t, torch.add(*_against(p.spread, q.spread, 2, diag)), precisions)
    # Σ_jl w_j w_l exp(-½ ...)
    w_p, w_q = _against(p.weights.unsqueeze(-1), q.weights.unsqueeze(-1), 1, diag)
    return (exponent.mul(-0.5).exp() * (w_p * w_q)).sum(dim=(-3, -2)).movedim(-1, 0)


def _quadratic(
    t: Float[Tensor, "*j b"], V: Float[Tensor, "*j b b"], precisions: Float[Tensor, "q b"]
) -> Float[Tensor, "*j q"]:
    """Return tᵀ (Λ⁻¹ + V)⁻¹ t + log |I + Λ V|.

    Elimination, written out, is many times faster than LAPACK for matrices of a few rows.
    """
    root, columns = precisions.sqrt(), range(t.shape[-1])
    # M = I + R V R, s = R t
    M = {
        (i, k): root[:, i] * root[:, k] * V[..., i, k].unsqueeze(-1) + float(i == k)
        for i in columns
        for k in columns[: i + 1]
    }
    s = [root[:, i] * t[..., i].unsqueeze(-1) for i in columns]
    total = torch.zeros_like(s[0])
    # M = L D Lᵀ: sᵀ M⁻¹ s = Σ_i (L⁻¹ s)_i² / D_i and log |M| = Σ_i log D_i
    for i in columns:
        total = total + s[i].square() / M[i, i] + M[i, i].log()
        for j in columns[i + 1 :]:
            factor = M[j, i] / M[i, i]
            s[j] = s[j] - factor * s[i]
            for k in columns[i + 1 : j + 1]:
                M[j, k] = M[j, k] - factor * M[k, i]
    return total


def _against(s: Tensor, t: Tensor, n_event: int, diag: bool) -> tuple[Tensor, Tensor]:
    """Line up (..., n, j, *event) and (..., k, l, *event) for all pairs, or matching ones."""
    s, t = s.unsqueeze(-1 - n_event), t.unsqueeze(-2 - n_event)  # components j and l
    return (s, t) if diag else (s.unsqueeze(-3 - n_event), t.unsqueeze(-4 - n_event))
