"""What is optimized: problems, and the uncertainty of their experiments."""

from dataclasses import dataclass, replace
from functools import cached_property

import torch
from torch import Tensor

import airbo
from airbo import problems
from airbo import uncertainty as unc
from airbo.problems import Problem
from experiments.subjects import classics, published, tolerances

TWO_MODES = unc.GaussianMixture([[-0.15, -0.1], [0.15, 0.1]], [[0.001, 0.0], [0.0, 0.001]])
"""A machine with play: every design lands on one of two sides."""


APART = 500_000
"""Distance of the seeds of draws from those of random first designs, where they are apart."""


@dataclass(frozen=True)
class Case:
    """A problem, whose uncertainty is that in use, and the setting of its experiments."""

    problem: Problem
    experiments: unc.InputUncertainty | None = None
    """The uncertainty of the experiments; None: the same as in use."""
    noise: float = 0.0
    """Standard deviation of the observed value around f(x')."""

    @property
    def same_use(self) -> bool:
        """Whether experiments and use have the same uncertainty."""
        return self.experiments is None

    @property
    def kind(self) -> str:
        """Why it can help to know P."""
        if not self.same_use:
            return "used otherwise"
        return "same everywhere" if self.problem.uncertainty.is_additive else "varies"

    @property
    def tried_under(self) -> unc.InputUncertainty:
        return self.problem.uncertainty if self.experiments is None else self.experiments

    @cached_property
    def space(self) -> airbo.Space:
        low, high = self.problem.bounds.tolist()
        return airbo.Space({f"x{i}": b for i, b in enumerate(zip(low, high, strict=True))})

    def designs(self, Z: Tensor) -> Tensor:
        """Return the designs at points of the unit cube."""
        low, high = self.problem.bounds
        return low + (high - low) * Z

    def observe(self, design: list[float], seed: int, index: int, apart: bool = False) -> float:
        """Run the experiment of that number; its draw is the same for all methods.

        Args:
            design: What is asked for.
            seed: The repeat.
            index: The number of the experiment in the repeat.
            apart: Whether the draw is independent of a *random* first design of the same number.
                Otherwise both come from the same random numbers, as in runs stored before.
        """
        X = torch.tensor([design], dtype=torch.float64)
        generator = torch.Generator().manual_seed(1_000_003 * seed + index + APART * apart)
        tried = replace(self.problem, uncertainty=self.tried_under)  # type: ignore[type-var]
        value = tried.observe(X, generator)
        noise = torch.randn(1, generator=generator, dtype=torch.float64)
        return (value + self.noise * noise).item()


CASES: dict[str, Case] = {
    **{
        name: Case(problems.problem(name))
        for name in ("rkhs", "double-peak", "bumped-bowl", "push")
    },
    "rkhs-beta": Case(problems.RKHS(unc.Beta(0.4, 0.2, scale=0.1))),
    "wave": Case(problems.Wave()),
    "cliff": Case(problems.Cliff(), noise=0.1),
    "branin": Case(problems.Branin()),
    "hartmann-6": Case(problems.Hartmann()),
    "hills": Case(problems.Hills(), noise=0.05),
    "double-peak-exact": Case(problems.DoublePeak(), unc.Exact()),
    "branin-exact": Case(problems.Branin(), unc.Exact()),
    "hills-machines": Case(problems.Hills(TWO_MODES), unc.Normal(0.03)),
    "hartmann-3-precise": Case(problems.Hartmann(3, unc.Normal(0.002))),
    "chirp-exact": Case(published.Chirp(), unc.Exact()),
    "hartmann-3-exact": Case(problems.Hartmann(3, unc.Normal(0.1)), unc.Exact()),
    "three-bumps-exact": Case(published.ThreeBumps(), unc.Exact()),
    "three-bumps": Case(published.ThreeBumps()),
    "polynomial-exact": Case(published.Polynomial(), unc.Exact()),
    **{
        kind.name: Case(kind())
        for kind in (
            tolerances.Circuit,
            tolerances.Reactor,
            tolerances.Spring,
            tolerances.Borehole,
            tolerances.Piston,
            tolerances.Controller,
            tolerances.Absorber,
            tolerances.Arm,
            classics.Camel,
            classics.Ackley,
            classics.Styblinski,
            classics.Levy,
            classics.Cantilever,
            classics.Wing,
        )
    },
    "shekel-exact": Case(classics.Shekel(), unc.Exact()),
}
"""Cases by the name under which their results are stored."""
