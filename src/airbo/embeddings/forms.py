"""Polynomials that are the logarithms of what Gaussians see, group by group of columns."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import combinations_with_replacement, product
from typing import Any

import torch
from jaxtyping import Bool, Float, Int64
from torch import Tensor

from airbo.embeddings.columns import Waves, landing_features
from airbo.embeddings.dependent import Quadratics, over_pairs_of_components
from airbo.embeddings.embedding import PORTION
from airbo.embeddings.plan import Group, Plan
from airbo.uncertainty import base_draws
from airbo.uncertainty.gaussians import Mixture, difference

MOST_POWERS = 130
"""Polynomials of one group at the most: beyond, sums of Gaussians cost less."""
DEGREES, HIGHER = (2, 4, 6, 8, 10), (12, 16, 20)
"""The higher ones are for P_x that changes with one column."""
WEIGHTED = (6, 8, 10)
"""Degrees at which what is faint counts less, if that helps."""
N_NODES, N_CHECKS = 24, 7
"""Designs of one column that a polynomial is fitted to, and further ones where it is checked."""
N_SCATTERED = 32
"""The same for several columns, as a multiple of their number."""
EXPONENTIAL, WAVES = 120, 4
"""What an exponential costs, in multiplications, and what waves cost, in exponentials."""
TAIL, PRECISE, LOST = 6.0, 8.0, 1e-10
"""Standard deviations beyond which a Gaussian is not followed, and where it counts as 0 if its
logarithm is needed; value below which waves do not give that logarithm."""
FAINT = 1e-3
"""Least weight of a difference in a fit: polynomials must not grow where a Gaussian is 0."""


@dataclass(frozen=True)
class LogForms:
    """Logarithms within one group, under every Gaussian."""

    powers: Int64[Tensor, "f b"]
    """Of every column of the group, in every polynomial."""
    forms: Float[Tensor, "q kf kf"]
    """M_q, kind by kind."""
    good: Bool[Tensor, " q"]
    """Whether the polynomial is good enough."""
    is_difference: bool = True
    """Whether only the difference of two designs matters, so that no design differs from itself."""

    def only_good(self) -> "LogForms":
        """Return the same with 0 where the polynomial is not good enough."""
        return replace(self, forms=self.forms * self.good.to(self.forms)[:, None, None])


def no_forms(precisions: Tensor) -> tuple[Tensor, Tensor]:
    """Return forms, and marks, of the constant 0."""
    q = len(precisions)
    good = torch.ones(q, dtype=torch.bool, device=precisions.device)
    return precisions.new_zeros(q, 1, 1), good


def of_normal(group: Group, precisions: Tensor, half: Tensor) -> LogForms:
    """Write log E exp(-½ λ (x - x' + δ)²), δ ~ N(0, v), which is quadratic."""
    [c] = group.columns
    assert group.deviations is not None
    widening = 1 + precisions[:, c] * 2 * group.deviations[0].variances[0, 0, 0].to(half)
    a = precisions[:, c] / widening * half[c].square()  # in the units of z
    # -½ log(1 + λv) - ½ a (z - z')², as a form of (1, z, z²) and (1, z', z'²)
    forms = a.new_zeros(len(a), 3, 3)
    forms[:, 0, 0] = -0.5 * widening.log()
    forms[:, 1, 1] = a
    forms[:, 0, 2] = forms[:, 2, 0] = -0.5 * a
    return LogForms(torch.arange(3).unsqueeze(-1), forms, a.isfinite())


def of_difference(group: Group, precisions: Tensor, half: Tensor, tolerances: Tensor) -> LogForms:
    """Fit polynomials of the difference."""
    b = len(group.columns)
    t = _differences(b).to(half)
    whole = group.rule if b == 1 else group.views.views[-1]
    at = (t * 2 * half).mT
    e = torch.cat([Quadratics.of([whole], own)(at) for own in precisions.split(1)])
    e = e.clamp_min(1e-300).log()
    n = len(t) // 2  # the others are to check
    # u - v and v - u are alike, so that only even powers of the difference are needed
    tried = []
    for degree in DEGREES:
        if degree > 2 and math.comb(b + degree, b) > MOST_POWERS:
            break
        even = _even_powers(b, degree)
        V = _monomials(t, even)
        c, errors = _fitted(V, e, n)
        tried.append((degree, c, errors <= group.slack * tolerances))
    others = group.views.enough(precisions, tolerances.reciprocal(), group.slack) if b > 1 else []
    degree, c, good = _enough(tried, b, [v.n_components for v in others])
    all_powers = _powers(b, degree)
    every = c.new_zeros(len(c), len(all_powers))
    every[:, all_powers.sum(-1) % 2 == 0] = c
    return LogForms(all_powers, _of_both(every, b, degree), good)


def of_kinds(group: Group, precisions: Tensor, half: Tensor, tolerances: Tensor) -> LogForms:
    """Fit polynomials of the difference, one for each pair of kinds."""
    assert group.deviations is not None
    b, kinds = len(group.columns), group.deviations
    pairs = list(combinations_with_replacement(range(len(kinds)), 2))
    t = _differences(b).to(half)
    at, n = (t * 2 * half).mT, len(t) // 2
    seen = [
        torch.cat([Quadratics.of([difference(kinds[i], kinds[j])], own)(at) for i, j in pairs])
        for own in precisions.split(1)
    ]
    e = torch.stack(seen).clamp_min(1e-300).log()  # (q, pairs, t)
    tried = []
    for degree in DEGREES:
        if degree > 2 and math.comb(b + degree, b) > MOST_POWERS:
            break
        V = _monomials(t, _powers(b, degree))
        c, errors = _fitted(V, e, n)
        tried.append((degree, c, errors.amax(-1) <= tolerances))
    largest = max(k.n_components for k in kinds) ** 2
    degree, c, good = _enough(tried, b, [largest] * len(precisions))
    powers = _powers(b, degree)
    opposite = torch.where(powers.sum(-1) % 2 == 0, 1.0, -1.0).to(c)
    size = len(powers)
    forms = c.new_zeros(len(c), len(kinds) * size, len(kinds) * size)
    for place, (i, j) in enumerate(pairs):
        one, two = slice(i * size, (i + 1) * size), slice(j * size, (j + 1) * size)
        forms[:, one, two] = _of_both(c[:, place], b, degree)
        forms[:, two, one] = _of_both(c[:, place] * opposite, b, degree)
    return LogForms(powers, forms, good, is_difference=False)


def _fitted(V: Float[Tensor, "p f"], e: Float[Tensor, "*q p"], n: int) -> tuple[Tensor, Tensor]:
    """Fit logarithms at the first ``n`` points, where a Gaussian counts; return errors at all."""
    # min_c Σ_i (w_i (V c - e)_i)², w = exp e: an error of the logarithm counts times the value
    weights = e[..., :n].exp().clamp_min(FAINT)
    sides = weights.unsqueeze(-1) * V[:n], (weights * e[..., :n]).unsqueeze(-1)
    c = torch.linalg.lstsq(*sides).solution.squeeze(-1)
    return c, ((c @ V.mT).exp() - e.exp()).abs().amax(-1)


def _of_both(c: Float[Tensor, "q f"], b: int, degree: int) -> Float[Tensor, "q f f"]:
    """Write polynomials of (z - z') / 2 as forms of powers of z and of z'."""
    where, factors = _binomial(b, degree)
    padded = torch.cat([c, torch.zeros_like(c[:, :1])], dim=-1)
    return padded[:, where] * factors.to(c)


def of_designs(
    plan: Plan, group: Group, precisions: Tensor, seen: Tensor, tolerances: Tensor
) -> LogForms:
    """Fit polynomials of two designs."""
    b, n_kinds = len(group.columns), group.n_kinds
    z, n = _nodes(b)
    z = z.to(seen)
    x = (seen[0] + seen[1]) / 2 + (seen[1] - seen[0]) / 2 * z
    kinds = torch.arange(n_kinds, device=x.device).repeat_interleave(len(x))
    landing = plan.landing_of(group, x.repeat(n_kinds, 1), kinds)
    shape = (n_kinds, len(x), n_kinds, len(x))
    e = _log_between(landing, precisions).reshape(-1, *shape)
    values = e.exp()
    at_nodes = e[:, :, :n, :, :n]
    tried = []
    for degree in (*DEGREES, *HIGHER):
        if degree > 2 and math.comb(b + degree, b) > (N_NODES if b == 1 else 0.75 * n):
            break
        V = _monomials(z, _powers(b, degree))
        # M = V⁺ E V⁺ᵀ is the least-squares solution of V M Vᵀ = E, logarithms at pairs of nodes
        fit = torch.linalg.pinv(V[:n])
        forms = torch.einsum("pi,qkilj,rj->qkplr", fit, at_nodes, fit)
        errors = _largest_error(V, forms, values)
        bad = errors > tolerances
        if b == 1 and degree in WEIGHTED and bool(bad.any()):
            forms[bad] = _weighted_forms(V[:n], at_nodes[bad])
            errors = _largest_error(V, forms, values)
        tried.append((degree, forms.flatten(3, 4).flatten(1, 2), errors <= tolerances))
    others = [group.n_components**2] * len(precisions) if b > 1 else []
    degree, forms, good = _enough(tried, b, others)
    return LogForms(_powers(b, degree), forms, good, is_difference=False)


@lru_cache(maxsize=16)
def _nodes(b: int) -> tuple[Float[Tensor, "z b"], int]:
    """Return designs in [-1, 1]: so many to fit polynomials to, the others to check them."""
    if b == 1:
        nodes = torch.cos(math.pi * (torch.arange(N_NODES, dtype=torch.float64) + 0.5) / N_NODES)
        checks = torch.linspace(-0.97, 0.93, N_CHECKS, dtype=torch.float64)
        return torch.cat([nodes, checks]).unsqueeze(-1), N_NODES
    # dense near the bounds, where polynomials go astray
    nodes = -torch.cos(math.pi * base_draws(N_SCATTERED * b, b, seed=0))
    checks = 0.98 * (2 * base_draws(N_CHECKS * b, b, seed=1) - 1)
    return torch.cat([nodes, checks]), len(nodes)


def _largest_error(V: Tensor, forms: Tensor, values: Tensor) -> Float[Tensor, " q"]:
    fitted = torch.einsum("ip,qkplr,jr->qkilj", V, forms, V)
    return (fitted.exp() - values).abs().amax((1, 2, 3, 4))


def _weighted_forms(
    V: Float[Tensor, "z p"], e: Float[Tensor, "q kinds z kinds z"]
) -> Float[Tensor, "q kinds p kinds p"]:
    """Fit forms where a Gaussian counts: where it is nearly 0, its logarithm does not matter."""
    both = torch.einsum("ip,jr->ijpr", V, V).flatten(2, 3).flatten(0, 1)
    e = e.transpose(2, 3)  # (q, kinds, kinds, z, z)
    flat = e.flatten(-2)
    weights = flat.exp().clamp_min(FAINT).unsqueeze(-1)
    found = torch.linalg.lstsq(weights * both, weights * flat.unsqueeze(-1)).solution
    forms = found.squeeze(-1).unflatten(-1, (V.shape[1], V.shape[1])).transpose(2, 3)
    return (forms + forms.movedim((1, 2), (3, 4))) / 2


def _enough(
    tried: Sequence[tuple[int, Any, Tensor]], b: int, n_gaussians: Sequence[int]
) -> tuple[int, Any, Tensor]:
    """Return the degree that costs least, with the sums of Gaussians that it leaves."""

    def cost(found: tuple[int, Any, Tensor]) -> float:
        degree, _, good = found
        left = [n for n, is_good in zip(sizes, good.tolist(), strict=True) if not is_good]
        return float(math.comb(b + degree, b) * len(good) + EXPONENTIAL * sum(left))

    sizes = n_gaussians or [WAVES] * len(tried[0][-1])
    return min(tried, key=cost)


def _log_between(landing: Mixture, precisions: Float[Tensor, "q b"]) -> Float[Tensor, "q r r"]:
    """Return the logarithm of what Gaussians see between designs."""
    if len(landing.columns) > 1:
        n = landing.means.shape[-3]
        e = precisions.new_zeros(len(precisions), n, n)
        size = landing.n_components**2 * len(precisions)
        for pairs in torch.triu_indices(n, n).split(max(1, PORTION // size), dim=-1):
            i, j = pairs
            seen = over_pairs_of_components(landing.rows(i), landing.rows(j), precisions, diag=True)
            e[:, i, j] = e[:, j, i] = seen.clamp_min(1e-300).log()
        return e
    m, spread = landing.means, TAIL * landing.variances.sqrt()
    reach = ((m + spread).max() - (m - spread).min()).item()
    each = []
    for precision in precisions[:, 0]:
        f = landing_features(landing, Waves.of(precision.unsqueeze(0), reach, PRECISE))
        seen = f @ f.mT
        # where little is seen its logarithm is lost, and all pairs of components give it
        lost = seen.triu().lt(LOST) & torch.ones_like(seen).triu().bool()
        i, j = lost.nonzero().unbind(-1)
        e = seen.clamp_min(LOST).log()
        e[i, j] = e[j, i] = _by_pairs(landing, precision, i, j)
        each.append(e)
    return torch.stack(each)


def _by_pairs(landing: Mixture, precision: Tensor, i: Tensor, j: Tensor) -> Float[Tensor, " p"]:
    """Return the same from all pairs of components, for some pairs of designs."""
    # log Σ_jk w_j w_k (1 + λV)^(-½) exp(-½ λ (m_j - m_k)² / (1 + λV)), V = v_j + v_k
    w, m, v = landing.weights.log(), landing.means.squeeze(-1), landing.variances.squeeze(-1)
    widening = 1 + precision * (v[i].unsqueeze(-1) + v[j].unsqueeze(-2))
    t = m[i].unsqueeze(-1) - m[j].unsqueeze(-2)
    exponents = -0.5 * (precision * t.square() / widening + widening.log())
    exponents = exponents + w[i].unsqueeze(-1) + w[j].unsqueeze(-2)
    return torch.logsumexp(exponents.flatten(-2), dim=-1)


@lru_cache(maxsize=16)
def _powers(b: int, degree: int) -> Int64[Tensor, "f b"]:
    """Return the powers of all polynomials of several variables, the constant first."""
    powers = [p for p in product(range(degree + 1), repeat=b) if sum(p) <= degree]
    return torch.tensor(sorted(powers, key=sum))


@lru_cache(maxsize=16)
def _even_powers(b: int, degree: int) -> Int64[Tensor, "f b"]:
    """Return those that do not change where all variables change sign."""
    powers = _powers(b, degree)
    return powers[powers.sum(-1) % 2 == 0]


def _monomials(t: Float[Tensor, "p b"], powers: Int64[Tensor, "f b"]) -> Float[Tensor, "p f"]:
    return (t.unsqueeze(1) ** powers.to(t)).prod(-1)


@lru_cache(maxsize=16)
def _binomial(b: int, degree: int) -> tuple[Int64[Tensor, "f f"], Float[Tensor, "f f"]]:
    """Say how a polynomial of (z - z') / 2 is made of products of powers of z and of z'.

    Returns:
        The place of the coefficient of every product, and what it is multiplied with.
    """
    # ((z - z') / 2)^p = Σ_{i + j = p} C(p, i) (-1)^|j| 2^(-|p|) z^i z'^j
    powers = _powers(b, degree).tolist()
    place = {tuple(p): i for i, p in enumerate(powers)}
    where = torch.full((len(powers), len(powers)), len(place))
    factors = torch.zeros(len(powers), len(powers), dtype=torch.float64)
    for i, one in enumerate(powers):
        for j, two in enumerate(powers):
            both = tuple(k + m for k, m in zip(one, two, strict=True))
            if both in place:
                where[i, j] = place[both]
                choices = math.prod(map(math.comb, both, one))
                factors[i, j] = choices * (-1) ** sum(two) / 2 ** sum(both)
    return where, factors


@lru_cache(maxsize=16)
def _differences(b: int) -> Float[Tensor, "p b"]:
    """Return differences of two designs, in units of the largest: one half to fit, one to check."""
    if b == 1:
        t = torch.linspace(0, 1, 129, dtype=torch.float64).unsqueeze(-1)
        return torch.cat([t[::2], t[1::2]])
    u = base_draws(512, b + 1, seed=0)
    corners = torch.tensor(list(product((-1.0, 0.0, 1.0), repeat=min(b, 4)))).to(u)
    corners = torch.nn.functional.pad(corners, (0, b - corners.shape[-1]))
    t = (2 * u[:, :-1] - 1) * u[:, -1:].sqrt()
    return torch.cat([corners, t])
