"""What derivatives of the base kernel cost in a search: ``python -m benchmarks.derivatives``."""

from functools import partial
from typing import Any

import torch
from gpytorch.kernels import Kernel
from torch import Tensor

from airbo.embeddings import RationalQuadraticSum
from benchmarks import record, table
from benchmarks.timing import interleaved

N_STARTS = 8
"""Designs that a search moves at a time."""
SHAPES = ((50, 10, 1), (50, 40, 1), (100, 10, 10), (100, 40, 10))
"""Observations, samples or landmarks of each, columns."""
N_ROUNDS = 30


class ByAutograd(RationalQuadraticSum):
    """The same values by the same operations; derivatives are left to autograd."""

    def forward(self, x1: Tensor, x2: Tensor, diag: bool = False, **params: Any) -> Tensor:
        r2 = self.covar_dist(x1, x2, square_dist=True, diag=diag, **params)
        inverse_widths = 0.5 / (self.exponents * self.lengthscales**2)
        fifth_root, half, one, two, five = (1 + r2 * w for w in inverse_widths)
        squared = five * five
        return (
            torch.exp(-0.2 * fifth_root.log())
            + half.rsqrt()
            + one.reciprocal()
            + (two * two).reciprocal()
            + (squared * squared * five).reciprocal()
        )


def points(n: int, n_samples: int, d: int, number: int) -> tuple[Tensor, Tensor]:
    """Draw what the designs of a search and the observations land on."""
    generator = torch.Generator().manual_seed(number + 1)
    draw = partial(torch.rand, generator=generator, dtype=torch.float64)
    return draw(N_STARTS, n_samples, d).requires_grad_(), draw(n * n_samples, d)


def value_and_gradient(kernel: Kernel, given: tuple[Tensor, Tensor]) -> None:
    U, V = given
    kernel(U, V).to_dense().sum().backward()


def main() -> None:
    torch.set_num_threads(1)
    where = record.provenance()
    kernels = {
        "ours": RationalQuadraticSum().double().requires_grad_(False),
        "by autograd": ByAutograd().double().requires_grad_(False),
    }
    jobs = {name: partial(value_and_gradient, kernel) for name, kernel in kernels.items()}
    rows, times = [], {}
    for n, n_samples, d in SHAPES:
        label = f"{n} observations, {n_samples} samples, {d}-D"
        took = times[label] = interleaved(jobs, partial(points, n, n_samples, d), N_ROUNDS)
        ours, theirs = took["ours"], took["by autograd"]
        rows.append([label, f"{1e3 * ours:.1f}", f"{1e3 * theirs:.1f}", f"{theirs / ours:.2f}"])

    path = record.store("derivatives", where, {"seconds": times})
    header = ["", "ours, ms", "by autograd, ms", "by autograd over ours"]
    text = (
        "# Derivatives of the base kernel\n\n"
        f"Value and gradient at {N_STARTS} designs of a search: median processor time of "
        f"{N_ROUNDS} turns.\n\n{table.markdown(header, rows)}\n\n{record.describe(where)}\n"
    )
    record.publish(path, text)


if __name__ == "__main__":
    main()
