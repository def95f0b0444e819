r"""What Gaussians see of P_x as exponentials of polynomials, as long as hyper-parameters stay.

Between two designs, and within one group of columns, a Gaussian base kernel sees a positive and
smooth function that is nearly a Gaussian itself. So its logarithm is nearly quadratic, and a
polynomial of low degree gives it to 1e-5:

.. math:: \log g_q(x, x') = v(x)^\top M_q \, v(x'), \qquad v(x) = (1, z, z^2, \dots), \quad
          z = 2 (x - \text{low}) / (\text{high} - \text{low}) - 1

Logarithms of independent groups add up. So all groups together take one matrix product and one
exponential. Where a Gaussian is narrower than the shape of P_x, no polynomial does; such pairs of
a Gaussian and a group are left to other ways.
"""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from airbo.embeddings.forms import (
    LogForms,
    no_forms,
    of_designs,
    of_difference,
    of_kinds,
    of_normal,
)
from airbo.embeddings.plan import Plan


class Logarithms:
    """The logarithms of all groups whose designs bring nothing along."""

    def __init__(
        self,
        plan: Plan,
        precisions: Float[Tensor, "q d"],
        seen: Float[Tensor, "2 d"],
        tolerances: Float[Tensor, " q"],
    ) -> None:
        """Find polynomials for designs within a range.

        Args:
            plan: The groups of columns.
            precisions: Of every Gaussian in every column.
            seen: Lowest and highest design in every column.
            tolerances: Largest error of what each Gaussian sees of one group.
        """
        self.d, self.n_gaussians = plan.d, len(precisions)
        self.middle, self.half = (seen[0] + seen[1]) / 2, (seen[1] - seen[0]) / 2
        self.limit = torch.full_like(self.half, torch.inf)
        self.left: dict[int, list[int]] = {}
        """Gaussians that see too much of a group, by the number of the group."""
        one = torch.zeros(1, 1, dtype=torch.long)
        found: list[tuple[tuple[int, ...], LogForms]]
        found = [((0,), LogForms(one, *no_forms(precisions)))]
        known: dict[object, LogForms] = {}
        for number, group in enumerate(plan.groups):
            columns = list(group.columns)
            if not group.is_known_by_columns:
                continue
            if group.is_normal:
                found.append((group.columns, of_normal(group, precisions, self.half)))
                self.left[number] = []
                continue
            self.limit[columns] = 1.0
            own, half = precisions[:, columns], self.half[columns]
            key = (
                group.signature,
                tuple(half.tolist()),
                tuple(self.middle[columns].tolist()),
                tuple(own.flatten().tolist()),
            )
            if key not in known:
                if group.is_difference:
                    known[key] = of_difference(group, own, half, tolerances)
                elif group.is_kindwise and len(columns) > 1:
                    known[key] = of_kinds(group, own, half, tolerances)
                else:
                    known[key] = of_designs(plan, group, own, seen[:, columns], tolerances)
            forms = known[key]
            found.append((group.columns, forms.only_good()))
            self.left[number] = (~forms.good).nonzero().flatten().tolist()
        self._assemble(found)

    def _assemble(self, found: Sequence[tuple[tuple[int, ...], LogForms]]) -> None:
        """Put the polynomials of all groups in one list; they share the constant."""
        self.degree = max(int(f.powers.max()) for _, f in found)
        most = max(f.powers.shape[1] for _, f in found)
        like = found[0][1].forms
        index, kinds, places = [[0] * most], [-1], []
        for columns, f in found:
            n_kinds = f.forms.shape[-1] // len(f.powers)
            own = []
            for kind in range(n_kinds):
                for powers in f.powers.tolist():
                    if n_kinds == 1 and not any(powers):
                        own.append(0)
                        continue
                    own.append(len(index))
                    at = [c * (self.degree + 1) + k for c, k in zip(columns, powers, strict=True)]
                    index.append(at + [0] * (most - len(at)))
                    kinds.append(kind if n_kinds > 1 else -1)
            places.append(torch.tensor(own))
        n = len(index)
        self.forms = like.new_zeros(self.n_gaussians, n, n)
        self.height = like.new_zeros(self.n_gaussians)
        self.moving: list[tuple[Tensor, Tensor]] = []
        """Polynomials, and forms, of groups in which designs differ from themselves."""
        for place, (_, f) in zip(places, found, strict=True):
            self.forms[:, place.unsqueeze(-1), place] += f.forms
            if f.is_difference:
                self.height += f.forms[:, 0, 0]
            else:
                self.moving.append((place, f.forms))
        device = like.device
        self.index = torch.tensor(index, device=device).mT
        self.kinds = torch.tensor(kinds, device=device) if max(kinds) >= 0 else None

    def values(self, f: Float[Tensor, "*batch n f"]) -> Float[Tensor, "*batch n p"]:
        """Evaluate the polynomials at designs."""
        z = (f[..., : self.d] - self.middle) / self.half
        z = z.clamp(-self.limit, self.limit)
        powers = [torch.ones_like(z), z]
        while len(powers) <= self.degree:
            powers.append(powers[-1] * z)
        table = torch.stack(powers, dim=-1).flatten(-2)  # z_c^k
        first, *others = (table[..., at] for at in self.index)
        for other in others:
            first = first * other
        if self.kinds is None:
            return first
        kind = f[..., self.d].unsqueeze(-1)
        return first * ((self.kinds == kind) | (self.kinds < 0))

    def weighed(self, values: Float[Tensor, "*batch n p"]) -> Float[Tensor, "*batch qn p"]:
        """Return M_q v(x') of every Gaussian and design."""
        return _times(values, self.forms).transpose(-2, -3).flatten(-3, -2)

    def terms(
        self, values: Float[Tensor, "*#batch n p"], weighed: Float[Tensor, "*#batch qk p"]
    ) -> Float[Tensor, "q *pairs n k"]:
        """Return exp(v(x)ᵀ M_q v(x')) for all pairs."""
        exponents = (weighed @ values.mT).unflatten(-2, (self.n_gaussians, -1))
        return exponents.exp().movedim(-3, 0).mT

    def matching(
        self, values: Float[Tensor, "*#batch n p"], others: Float[Tensor, "*#batch n p"]
    ) -> Float[Tensor, "q *pairs n"]:
        """Compare matching designs of two lists."""
        sides = self.weighed(others).unflatten(-2, (self.n_gaussians, -1))
        return (sides * values.unsqueeze(-3)).sum(-1).exp().movedim(-2, 0)

    def diagonal(self, values: Float[Tensor, "*batch n p"]) -> Float[Tensor, "q *batch n"]:
        """Compare designs with themselves: Σ v(x)ᵀ M_q v(x) over groups."""
        exponents = self.height.expand(*values.shape[:-1], -1)
        for place, forms in self.moving:
            own = values[..., place]
            exponents = exponents + (_times(own, forms) * own.unsqueeze(-2)).sum(-1)
        return exponents.exp().movedim(-1, 0)


def _times(
    values: Float[Tensor, "*batch n p"], forms: Float[Tensor, "q p p"]
) -> Float[Tensor, "*batch n q p"]:
    """Return M_q v of every Gaussian and design."""
    q, p = forms.shape[:2]
    return (values @ forms.movedim(0, 1).reshape(p, q * p)).unflatten(-1, (q, p))
