"""What is optimized: a problem, the uncertainty of its experiments, and the truth about both.

A case has a budget of evaluations and a kind, which says why it can help to know P. Draws of a
repeat come from streams of their own, one per purpose and evaluation: the executed input of
evaluation i depends on the case, the repeat, i and the design, and on nothing else. So all methods
meet the same errors, and no error is a function of anything that a method has drawn.
"""

import json
import zlib
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import torch
from botorch.test_functions.synthetic import Ackley, Levy, Shekel, SixHumpCamel, StyblinskiTang
from scipy import stats
from torch import Tensor
from torch.quasirandom import SobolEngine

import airbo
from airbo import problems
from airbo import uncertainty as unc
from airbo.problems import Problem
from airbo.seeds import stream, stream_seed
from experiments.subjects.landscapes import Formula, Function, box, landscape, values_of
from experiments.subjects.published import CHIRP, POLYNOMIAL, ThreeBumps
from experiments.subjects.push import RobotPush
from experiments.subjects.tolerances import toleranced

TRUTHS = Path(__file__).with_name("truths.json")
Design = list[float]


@dataclass(frozen=True)
class Case:
    """A problem, whose uncertainty is that in use, and the setting of its experiments."""

    name: str
    kind: str
    problem: Problem
    experiments: unc.InputUncertainty | None = None
    """The uncertainty of the experiments; None: the same as in use."""
    noise: float = 0.0
    """Standard deviation of the observed value around f(x')."""
    n_first: int | None = None
    """Designs before a model chooses; None: as many as the library takes."""
    n_evaluations: int | None = None
    """All of them; None: as many as the number of parameters suggests."""

    @property
    def d(self) -> int:
        return self.problem.bounds.shape[-1]

    @property
    def n_initial(self) -> int:
        return self.n_first or min(max(5, 2 * (self.d + 1)), 20)

    @property
    def budget(self) -> int:
        return self.n_evaluations or self.n_initial + 20 + 2 * min(self.d, 5)

    @property
    def same_use(self) -> bool:
        """Whether experiments and use have the same uncertainty."""
        return self.experiments is None

    @property
    def tried_under(self) -> unc.InputUncertainty:
        return self.problem.uncertainty if self.experiments is None else self.experiments

    @property
    def sign(self) -> int:
        return 1 if self.problem.direction == "maximize" else -1

    @cached_property
    def space(self) -> airbo.Space:
        low, high = self.problem.bounds.tolist()
        return airbo.Space({f"x{i}": b for i, b in enumerate(zip(low, high, strict=True))})

    def designs(self, Z: Tensor) -> Tensor:
        """Return the designs at points of the unit cube."""
        low, high = self.problem.bounds
        return low + (high - low) * Z

    # -- draws, each from a stream of its own

    def seed(self, repeat: int) -> int:
        """Return the number that all streams of a repeat branch off from."""
        return 1000 * zlib.crc32(self.name.encode()) + repeat

    def first_designs(
        self, repeat: int, n: int | None = None, uniform: bool = False
    ) -> list[Design]:
        """Return the designs that every method starts from: scrambled Sobol, or uniform."""
        n = n or self.n_initial
        if uniform:
            random = stream(self.seed(repeat), "first designs")
            Z = torch.from_numpy(random.random((n, self.d)))
        else:
            seed = stream_seed(self.seed(repeat), "first designs") % 2**31
            Z = SobolEngine(self.d, scramble=True, seed=seed).draw(n, dtype=torch.float64)
        designs: list[Design] = self.designs(Z).tolist()
        return designs

    def executed(self, design: Design, repeat: int, i: int) -> Design:
        """Return where evaluation number i lands if this design is asked for."""
        X, P = torch.tensor([design], dtype=torch.float64), self.tried_under
        random = stream(self.seed(repeat), "executed input", i)
        base = torch.from_numpy(random.random((1, P.n_base(self.d)))).clamp(1e-12, 1 - 1e-12)
        landed: Design = P.perturb(X, base)[0, 0].tolist()
        return landed

    def value(self, executed: Design, repeat: int, i: int) -> float:
        """Return what evaluation number i measures there."""
        noise = stream(self.seed(repeat), "noise", i).standard_normal()
        true = self.problem(torch.tensor([executed], dtype=torch.float64)).item()
        return float(true + self.noise * noise)

    # -- truth

    @property
    def truth(self) -> dict[str, Any]:
        """The best design in use, its value, and the mean value of all designs."""
        known = truths()
        if self.name not in known:
            raise KeyError(f"{self.name} has no truth: run `python -m experiments truths`.")
        return known[self.name]

    @property
    def gain(self) -> float:
        """How much better than an average design the best one is."""
        return self.sign * (self.truth["value"] - self.truth["mean"])

    def expected(self, designs: Any) -> Tensor:
        """Return the true E f of designs in use."""
        return self.problem.expected(torch.as_tensor(designs, dtype=torch.float64))

    def regrets(self, designs: Any) -> list[float]:
        """Return how much worse than the best design each design is in use."""
        gaps: list[float] = (self.sign * (self.truth["value"] - self.expected(designs))).tolist()
        return gaps


@cache
def truths() -> dict[str, dict[str, Any]]:
    """Return the truths that were worked out before."""
    found: dict[str, dict[str, Any]] = json.loads(TRUTHS.read_text(encoding="utf-8"))
    return found


# -- the cases

GAMMA = unc.SciPy(stats.gamma(1.0, scale=0.1))
"""A machine that overshoots, mostly by little and sometimes by much."""
SKEWED, HEAVY = unc.Beta(0.8, 2.5, scale=2.0), unc.SciPy(stats.t(3, scale=0.15))
TWO_MODES = unc.GaussianMixture([[-0.15, -0.1], [0.15, 0.1]], [[0.001, 0.0], [0.0, 0.001]])
"""A machine with play: every design lands on one of two sides."""
PLAY_OF_CAMEL = unc.GaussianMixture([[-0.4, 0.1], [0.4, -0.1]], [[0.01, 0.0], [0.0, 0.01]])
PLAY_OF_BRANIN = unc.GaussianMixture([[-2.0, -1.0], [2.0, 1.0]], [[0.2, 0.0], [0.0, 0.2]])
TARGETS = {"circuit": 5.0, "spring": 10.0, "piston": 4.0, "cantilever": 2.0, "borehole": 60.0,
           "controller": 3.0}  # fmt: skip
"""What is wanted of products: 5 V, 10 N/mm, 0.4 s, 2 units, 60 m³ a year and 3 kΩ."""


def known(name: str, kind: Any, ranges: Any, P: unc.InputUncertainty, **settings: int) -> Formula:
    """Return one of BoTorch's test functions, minimized, on a box of its own."""
    return Formula(name, lambda X: values_of(kind, X, **settings), ranges, "minimize", P)


GOLEM_1D = ((1.0, 100.0, 0.1), (-1.0, 100.0, 0.2), (0.7, 80.0, 0.5), (-0.7, 80.0, 0.9))


def golem_1d(X: Tensor) -> Tensor:
    """Return a narrow plateau and a lower, wide one (Aldeghi et al. 2021)."""
    x = X.squeeze(-1)
    # Σ l / (1 + e^(-k (x - c)))
    return torch.stack([height * torch.sigmoid(k * (x - c)) for height, k, c in GOLEM_1D]).sum(0)


def golem_2d(X: Tensor) -> Tensor:
    """Return a valley beside a wall: Σ 10 / (1 + 0.3 e^(6x)) + 0.2 x²."""
    return (10 / (1 + 0.3 * torch.exp(6 * X)) + 0.2 * X.square()).sum(-1)


def qing_1d(X: Tensor) -> Tensor:
    """Return a wide hill and a high, narrow one."""
    x = X.squeeze(-1)
    wide, narrow = ((x - 0.35) / 0.25).square(), ((x - 0.8) / 0.05).square()
    return -20 * (0.5 - 0.8 * torch.exp(-wide) - torch.exp(-narrow))


def golem(name: str, P: unc.InputUncertainty) -> Formula:
    return Formula(name, golem_2d, box(0.0, 5.0, 2), "minimize", P)


def on_a_line(name: str, f: Function, P: unc.InputUncertainty) -> Formula:
    return Formula(name, f, box(0.0, 1.0, 1), uncertainty=P)


def of(kind: str, problem: Problem, noise: float = 0.0) -> Case:
    """Return a problem as a case of its own name."""
    return Case(problem.name, kind, problem, noise=noise)


CASES: dict[str, Case] = {
    case.name: case
    for case in (
        # the paper's
        of("paper", problems.problem("rkhs")),
        Case("rkhs-beta", "skewed", problems.RKHS(unc.Beta(0.4, 0.2, scale=0.1))),
        of("paper", problems.problem("double-peak")),
        of("paper", problems.problem("bumped-bowl")),
        of("paper", RobotPush()),
        # tolerances in percent
        *(of("percent", toleranced(name, target)) for name, target in TARGETS.items()),
        of("percent", toleranced("reactor", direction="maximize")),
        of("percent", toleranced("absorber", n_samples=2**10)),
        # errors that vary with the design
        of("varies", problems.Wave()),
        of("varies", problems.Hills(), noise=0.05),
        of("varies", golem("golem-2d-growing", unc.Relative(unc.Normal(0.3)))),
        # skewed and heavy-tailed errors
        Case("hartmann-3-gamma", "skewed", problems.Hartmann(3, GAMMA)),
        of("skewed", known("styblinski", StyblinskiTang, box(-4.0, 4.0, 4), SKEWED, dim=4)),
        of("skewed", problems.Cliff(), noise=0.1),
        of("wide", known("ackley", Ackley, box(-2.0, 3.0, 3), HEAVY, dim=3)),
        # two modes
        of("two modes", known("camel", SixHumpCamel, ((-2.0, 2.0), (-1.0, 1.0)), PLAY_OF_CAMEL)),
        Case("branin-two-modes", "two modes", problems.Branin(PLAY_OF_BRANIN)),
        Case("hills-machines", "used otherwise", problems.Hills(TWO_MODES), unc.Normal(0.03)),
        # wide errors in several smooth parameters
        Case("bumps-wide", "wide", landscape("bumps", unc.Normal(0.15))),
        Case("hartmann-3-wide", "wide", problems.Hartmann(3, unc.Normal(0.15))),
        Case("shekel-wide", "wide", landscape("shekel-10", unc.Normal(1.0))),
        Case("hartmann-6", "wide", problems.Hartmann()),
        of("wide", known("levy", Levy, box(-5.0, 5.0, 5), unc.Normal(0.5), dim=5)),
        # negligible errors
        Case("hartmann-3-precise", "negligible", problems.Hartmann(3, unc.Normal(0.002))),
        Case("branin-precise", "negligible", problems.Branin(unc.Normal(0.03))),
        Case("hartmann-6-precise", "negligible", problems.Hartmann(6, unc.Normal(0.002))),
        # exact now, imprecise later
        *(
            Case(f"{problem.name}-exact", "exact now", problem, unc.Exact())
            for problem in (
                problems.Branin(),
                ThreeBumps(),
                problems.DoublePeak(),
                CHIRP,
                POLYNOMIAL,
                known("shekel", Shekel, box(0.0, 10.0, 4), unc.Normal(0.7), m=5),
            )
        ),
        # published with their robust optima
        of("published", on_a_line("golem-1d", golem_1d, unc.Normal(0.1))),
        of("published", golem("golem-2d", unc.Normal(0.5))),
        of("published", golem("golem-2d-wide", unc.Normal(1.0))),
        of("published", on_a_line("qing-1d", qing_1d, unc.Uniform(-0.05, 0.05))),
    )
}
"""By the name under which their results are stored."""


def slip_case(name: str, slip: float, n_evaluations: int = 50) -> Case:
    """Return a landscape whose experiments slip, and whose answer is used exactly.

    As in the study there are 50 evaluations, the first five among them, and all of them slip.
    """
    problem = landscape(name)
    low, high = problem.bounds
    slipping = unc.Normal((slip * (high - low)).tolist()).clipped(low.tolist(), high.tolist())
    return Case(
        f"{name}-slips", "slips", problem, slipping if slip else None, 0.0, 5, n_evaluations
    )


def find_case(name: str) -> Case:
    """Return a case by name; ``slip 15% branin`` is a short run with slips of that size."""
    if not name.startswith("slip "):
        return CASES[name]
    _, slip, landscape_name = name.split(" ")
    return slip_case(landscape_name, float(slip.removesuffix("%")) / 100, n_evaluations=35)
