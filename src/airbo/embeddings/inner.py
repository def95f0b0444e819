"""Inner products of embedded distributions: ⟨ψ_P, ψ_Q⟩ = E k(u, v) for u ~ P, v ~ Q."""

import torch
from gpytorch.kernels import Kernel
from jaxtyping import Float
from torch import Tensor

from airbo.embeddings.blocks import Block

Pairs = Float[Tensor, "..."]
"""(..., n, q) for all pairs of designs, (..., n) for matching ones (``diag``)."""


def atoms_inner(kernel: Kernel, p: Block, q: Block, diag: bool) -> Pairs:
    r"""Sum the base kernel over all pairs of atoms: :math:`\sum_{jk} w_j w_k k(u_j, v_k)`."""
    if diag:
        gram = kernel(p.means, q.means).to_dense()  # (..., n, j, k)
        return torch.einsum("...j,...jk,...k->...", p.weights, gram, q.weights)
    gram = kernel(p.means.flatten(-3, -2), q.means.flatten(-3, -2)).to_dense()
    gram = gram.unflatten(-1, q.weights.shape[-2:]).unflatten(-3, p.weights.shape[-2:])
    half = (gram * p.weights[..., None, None]).sum(-3)  # (..., n, q, k)
    return (half * q.weights.unsqueeze(-3)).sum(-1)


def gaussian_inner(
    p: list[Block], q: list[Block], precisions: Float[Tensor, "m d"], diag: bool
) -> Float[Tensor, "... m"]:
    r"""Integrate a Gaussian base kernel of every precision in closed form.

    .. math:: \prod_b \sum_{jk} w_j w_k \, |I + \Lambda V|^{-1/2}
              \exp\left(-\tfrac12 (m_j - m_k)^\top (\Lambda^{-1} + V)^{-1} (m_j - m_k)\right),
              \quad V = C_j + C_k

    over independent blocks ``b``; one column of the result per precision.
    """
    result: Tensor | None = None
    for a, b in zip(p, q, strict=True):
        block = _block_inner(a, b, precisions[:, list(a.columns)].mT, diag)
        result = block if result is None else result * block
    assert result is not None
    return result


def _block_inner(p: Block, q: Block, precision: Float[Tensor, "b m"], diag: bool) -> Tensor:
    differences = torch.sub(*_against(p.means, q.means, 1, diag))  # (..., [n, q | n], j, k, b)

    if p.spread is None or q.spread is None:
        exponent = differences.square() @ precision
    else:
        v_p, v_q = _if_constant(p.spread, p.kind), _if_constant(q.spread, q.kind)
        variances = torch.add(*_against(v_p, v_q, p.kind, diag))
        if p.kind == 1:
            exponent = _widened(differences, variances, precision)
        elif variances.requires_grad or bool((precision != precision[:1]).any()):
            exponent = _widened_in_any_direction(differences, variances, precision)
        else:  # turn to the axes in which the sum of covariances is diagonal: much faster
            variances, axes = torch.linalg.eigh(variances)
            differences = (differences.unsqueeze(-2) @ axes).squeeze(-2)
            exponent = _widened(differences, variances.clamp_min(0), precision)

    w_p, w_q = _against(p.weights.unsqueeze(-1), q.weights.unsqueeze(-1), 1, diag)
    return (exponent.mul(-0.5).exp() * (w_p * w_q)).sum(dim=(-3, -2))


def _widened(differences: Tensor, variances: Tensor, precision: Tensor) -> Tensor:
    widening = 1 + variances.unsqueeze(-1) * precision  # (..., j, k, b, m)
    distance = (differences.square().unsqueeze(-2) @ (precision / widening)).squeeze(-2)
    return distance + widening.log().sum(-2)


def _widened_in_any_direction(
    differences: Tensor, covariances: Tensor, precision: Tensor
) -> Tensor:
    # with R = Λ^½: (Λ⁻¹ + V)⁻¹ = R (I + R V R)⁻¹ R
    root = precision.mT.sqrt()  # (m, b)
    RR = root.unsqueeze(-1) * root.unsqueeze(-2)
    eye = torch.eye(len(precision)).to(RR)
    L = torch.linalg.cholesky(eye + RR * covariances.unsqueeze(-3))  # (..., j, k, m, b, b)
    inverse = RR * torch.cholesky_inverse(L)

    outer = differences.unsqueeze(-1) * differences.unsqueeze(-2)  # (..., j, k, b, b)
    distance = (outer.flatten(-2).unsqueeze(-2) @ inverse.flatten(-2).mT).squeeze(-2)
    return distance + 2 * L.diagonal(dim1=-2, dim2=-1).log().sum(-1)


def _against(s: Tensor, t: Tensor, n_event: int, diag: bool) -> tuple[Tensor, Tensor]:
    """Line up (..., n, j, *event) and (..., q, k, *event) for all pairs, or matching ones."""
    s, t = s.unsqueeze(-1 - n_event), t.unsqueeze(-2 - n_event)  # components j and k
    return (s, t) if diag else (s.unsqueeze(-3 - n_event), t.unsqueeze(-4 - n_event))


def _if_constant(spread: Tensor, n_event: int) -> Tensor:
    """Keep one row where all designs have the same spread, as under additive uncertainty."""
    rows = spread.reshape(-1, *spread.shape[-1 - n_event :])
    if not bool((rows == rows[:1]).all()):
        return spread
    return rows[0].reshape(*[1] * (spread.dim() - n_event - 1), *rows.shape[1:])
