"""The next point of the unit cube: an initial one, or one that maximizes an acquisition.

Notation
    d, m       parameters of a design, columns of the unit cube: a category has one per choice
    Z (n m)    points of the unit cube, which models see
    F (n d)    the same in the folded cube, one column per parameter, which searches move in
"""

import math
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import count, islice, product
from typing import Any, cast

import torch
from botorch.acquisition.acquisition import AcquisitionFunction
from botorch.exceptions.warnings import BotorchWarning
from botorch.models.model import Model
from botorch.optim.optimize import optimize_acqf
from botorch.utils.sampling import draw_sobol_samples
from jaxtyping import Bool, Float
from linear_operator.utils.warnings import NumericalWarning
from torch import Tensor
from torch.quasirandom import SobolEngine

from airbo.acquisition import Acquisition, InformationAbout, Situation, most_promising, with_pending
from airbo.acquisition.gain import ExpectedGain
from airbo.acquisition.improvement import LogImprovement
from airbo.embeddings.features import Nominal
from airbo.measures.posterior import SEARCH, MeasureModel
from airbo.models import UncertainInputGP
from airbo.optimizer.goal import OutcomeDraws, OutcomeModel
from airbo.optimizer.mixed import search_mixed
from airbo.optimizer.record import SAME, History
from airbo.optimizer.surrogate import MOST_ROWS
from airbo.optimizer.within import Within, best_of, values_at
from airbo.seeds import stream_seed
from airbo.space.cube import Section

N_RESTARTS, N_RAW = 8, 256
N_RESTARTS_MEASURED, N_RAW_MEASURED, N_STEPS_MEASURED = 4, 128, 12
"""The same for measures that are computed from draws: these cost more and are less smooth."""
CLOSER, N_FAVOURITES, N_CLOSE = (0.1, 0.03), 8, 6
"""Where such a search looks before it climbs: at so many points this close to each of the best."""
MAX_STEPPED = 20
"""Parameters with more values than this are searched as if continuous, and rounded."""
MAX_ENUMERATED = 2000
"""Discrete spaces with up to this many designs are searched completely."""
NEARBY = 0.01
"""Designs closer than this, relative to the ranges of the parameters, count as similar."""
INITIAL = "initial designs"
"""The stream that scrambles them."""


def initial_design(history: History, seed: int) -> Float[Tensor, "1 m"]:
    """Return the next point of the initial sequence, skipping designs that are taken."""
    points, cube = history.points, history.points.cube
    # the sequence goes on where the last design was asked for; a design that is taken is skipped
    pending = points.of([o.design for o in history.pending])
    taken = torch.cat([pending, points.of([o.design for o in history.observations])])
    for F in islice(initial_points(cube, seed, history.n_asked), 100):
        Z = cube.unfold(F)
        if not near(Z, taken).any():
            return Z
    # a small discrete space is full: a free design, or one that is not pending, or any
    for excluded in (taken, pending):
        free = free_designs(cube, excluded)
        if len(free):
            return free[torch.randint(len(free), (1,))]
    return Z


def initial_points(
    cube: Section, seed: int, start: int
) -> Iterator[Float[Tensor, "1 {cube.space.d}"]]:
    """Yield the initial points of the folded cube, from number ``start`` on."""
    d, counts = cube.space.d, cube.space.n_values
    even = [column for column in counts if column not in cube.space.log_columns]
    n = torch.tensor([counts[column] for column in even], dtype=torch.float64)

    def uniform(first: int, last: int) -> Tensor:
        # one scrambled Sobol sequence: point i is the same in every process
        engine = SobolEngine(d, scramble=True, seed=stream_seed(seed, INITIAL))
        U = engine.fast_forward(first).draw(last - first, dtype=torch.float64)
        # value k of n gets the interval [k / n, (k + 1) / n]; rounding u alone halves the ends
        U[:, even] = (U[:, even] * n - 0.5) / (n - 1)
        return U

    if not cube.space.constraints:
        return (cube.round(uniform(i, i + 1)) for i in count(start))

    # points of the sequence that meet the constraints
    return islice(Within(cube).spread(uniform, seed), start, None)


def next_design(
    history: History, outcomes: Sequence[OutcomeModel], acquisition: Acquisition
) -> Float[Tensor, "1 m"]:
    """Return the most promising experiment.

    The measure of one objective is searched by the acquisition; with limits or several objectives,
    what counts is the expected improvement of the front. If the uncertainty in use differs from
    that of the experiments, the maximum is the design to learn about, and what is returned is the
    experiment that teaches most about it.
    """
    # all outcomes have the same points, P and Q: those of the first serve
    points, surrogate = history.points, outcomes[0].surrogate
    # P of the experiments and Q in use, both in the unit cube
    waiting = points.landed(history.waiting[-MOST_ROWS:])
    experiments, deployment = surrogate.experiments_in_cube, surrogate.deployment_in_cube
    pending = points.landed(history.pending)
    taken = {"exclude": pending, "avoid": points.of(history.recently_failed)}
    X = points.of(history.designs)
    function: AcquisitionFunction
    with without_numerical_warnings():
        # argmax of the acquisition: the next design if it is used as it is tried
        if len(outcomes) == 1:
            measured = outcomes[0].of_measure(SEARCH)
            X = X[most_promising(measured, X, MOST_ROWS)]
            situation = Situation(X, waiting if len(waiting) else None, experiments)
            function = acquisition(measured, situation)
        else:
            situation = Situation(X, waiting if len(waiting) else None, experiments)
            draws = OutcomeDraws(outcomes, SEARCH)
            function = LogImprovement(draws, torch.cat([X, waiting]))
        Z = best_design(function, points.cube, **taken)
        if experiments == deployment or isinstance(function, ExpectedGain):
            return Z  # the maximum is an experiment already
        models = [o.model for o in outcomes if knows_where_inputs_land(o.model)]
        if not models:
            return Z
        # argmax of the information about that design, by an experiment under P
        informed = [cast(UncertainInputGP, with_pending(model, situation)) for model in models]
        teaching = InformationAbout(informed, Z, deployment, experiments)
        return best_design(teaching, points.cube, start=Z, **taken)


def knows_where_inputs_land(model: Model) -> bool:
    """Say whether a model tells a design that is used from the same one in an experiment."""
    return isinstance(model, UncertainInputGP) and not isinstance(model.features, Nominal)


def best_design(
    function: AcquisitionFunction,
    cube: Section,
    exclude: Float[Tensor, "n {cube.m}"] | None = None,
    avoid: Float[Tensor, "k {cube.m}"] | None = None,
    start: Float[Tensor, "s {cube.m}"] | None = None,
) -> Float[Tensor, "1 {cube.m}"]:
    """Maximize a BoTorch acquisition over the designs of a space.

    Args:
        function: A function of points of the unit cube.
        cube: The unit cube of the space.
        exclude: Designs that must not be returned, unless there are no others.
        avoid: Designs that must not be returned, nor any close to them, unless there are no others.
        start: Designs to start the search from, besides random ones.
    """
    # the maximum, unless it is taken; then the best of many free designs
    with _constant(function):
        Z = _search(function, cube, start)
    nothing = Z[:0]
    exclude, avoid = (nothing if E is None else E for E in (exclude, avoid))
    for avoided in (avoid, nothing):
        if not _taken(Z, exclude, avoided).any():
            return Z
        free = free_designs(cube, exclude, avoided)
        if len(free):
            return best_of(function, free)
    return Z


def free_designs(
    cube: Section,
    exclude: Float[Tensor, "n {cube.m}"],
    avoid: Float[Tensor, "k {cube.m}"] | None = None,
) -> Float[Tensor, "free {cube.m}"]:
    """Return designs from all over the space that may be proposed."""
    # random designs, or all of a small space, without those that are taken
    pool = spread_designs(cube)
    return pool[~_taken(pool, exclude, pool[:0] if avoid is None else avoid)]


def between(
    cube: Section, start: Float[Tensor, "1 {cube.m}"], end: Float[Tensor, "1 {cube.m}"], n: int
) -> Float[Tensor, "k {cube.m}"]:
    """Return ``n`` even steps from one design to another; all but the last if they are allowed."""
    # F_i = F_start + i / n (F_end - F_start), in the folded cube
    first, last = cube.fold(start), cube.fold(end)
    t = torch.arange(1, n, dtype=torch.float64).unsqueeze(-1) / n
    F = _allowed(cube, cube.round(first + t * (last - first)))
    return torch.cat([cube.unfold(F), end])


def near(
    Z: Float[Tensor, "n m"], others: Float[Tensor, "k m"], distance: float = SAME
) -> Bool[Tensor, "n"]:
    """Return which points of the unit cube lie within ``distance`` of one of the others."""
    # max_j |z_j - z'_j|
    return torch.cdist(Z, others, p=math.inf).lt(distance).any(-1)


@contextmanager
def without_numerical_warnings() -> Iterator[None]:
    """Silence warnings of line searches that ended early and of jitter on a diagonal.

    The best point found is still usable.
    """
    with warnings.catch_warnings():
        for category in (BotorchWarning, NumericalWarning):
            warnings.simplefilter("ignore", category)
        warnings.filterwarnings("ignore", "Optimization failed", RuntimeWarning)
        yield


@contextmanager
def _constant(function: AcquisitionFunction) -> Iterator[None]:
    """Freeze hyper-parameters: a search needs gradients with respect to designs only."""
    # ∂/∂θ of hyper-parameters θ would be worked out at every step, and thrown away
    learned = [p for p in function.parameters() if p.requires_grad]
    for p in learned:
        p.requires_grad_(False)
    try:
        yield
    finally:
        for p in learned:
            p.requires_grad_(True)


class _OfFolded(AcquisitionFunction):
    """A function of points of the unit cube, as a function of points of the folded cube."""

    def __init__(self, function: AcquisitionFunction, cube: Section) -> None:
        super().__init__(model=function.model)
        self.function = function
        self.cube = cube

    def forward(self, X: Tensor) -> Tensor:
        return self.function(self.cube.unfold(X))


def _search(
    function: AcquisitionFunction, cube: Section, start: Tensor | None
) -> Float[Tensor, "1 m"]:
    if _is_small(cube):
        return best_of(function, spread_designs(cube))
    # search the folded cube, round to a design, and compare with the given starts
    if cube.space.constraints:
        starts = cube.fold(spread_designs(cube)[:N_RAW])
        F = Within(cube).best(_OfFolded(function, cube), starts).detach()
    else:
        F = _search_folded(function, cube)
    Z = cube.unfold(cube.round(F))
    if start is None:
        return Z
    others = cube.unfold(_allowed(cube, cube.round(cube.fold(start))))
    return best_of(function, torch.cat([Z, others]))


def _search_folded(function: AcquisitionFunction, cube: Section) -> Float[Tensor, "1 d"]:
    """Let BoTorch search the folded cube."""
    space = cube.space
    folded = function if cube.m == space.d else _OfFolded(function, cube)
    measured = isinstance(function.model, MeasureModel)
    n_starts, n_raw = (N_RESTARTS_MEASURED, N_RAW_MEASURED) if measured else (N_RESTARTS, N_RAW)
    # categories and few steps are searched by exchange; many steps like floats, and rounded
    categories = space.categorical_columns
    few = [c for c, n in space.n_values.items() if n <= MAX_STEPPED or c in categories]
    if few:
        levels = {c: torch.tensor(cube.values(c), dtype=torch.float64) for c in few}
        return search_mixed(folded, levels, categories, space.d, n_starts, n_raw)
    box = torch.tensor([[0.0], [1.0]], dtype=torch.float64).repeat(1, space.d)
    settings: dict[str, Any] = {"q": 1, "num_restarts": n_starts, "raw_samples": n_raw}
    n_steps = N_STEPS_MEASURED if measured else getattr(function, "n_steps", None)
    if n_steps is not None:
        settings["options"] = {"maxiter": n_steps, "maxfun": n_steps}
    if measured:
        settings["batch_initial_conditions"] = _starts(folded, box)
    F, _ = optimize_acqf(folded, box, **settings)
    return F.detach()


def _starts(function: AcquisitionFunction, box: Float[Tensor, "2 d"]) -> Float[Tensor, "r 1 d"]:
    """Return where to start climbing: at the best of random points, and of points close to those.

    Designs that keep all limits may lie in a thin band, which few random points hit.
    """
    # the best of a Sobol sequence
    seed = int(torch.randint(2**31, ()))
    F = draw_sobol_samples(box, N_RAW_MEASURED, q=1, seed=seed).squeeze(-2)
    values = values_at(function, F)
    # around the best so far, closer and closer: f + width · N(0, 1)
    for width in CLOSER:
        best = F[values.topk(N_FAVOURITES).indices].repeat(N_CLOSE, 1)
        close = (best + width * torch.randn_like(best)).clamp(0, 1)
        F, values = torch.cat([F, close]), torch.cat([values, values_at(function, close)])
    # the best of all, no two of them close to each other
    chosen = F[:0]
    for f in F[values.argsort(descending=True)].split(1):
        if len(chosen) < N_RESTARTS_MEASURED and not near(f, chosen, NEARBY).any():
            chosen = torch.cat([chosen, f])
    return chosen.unsqueeze(-2)


def _is_small(cube: Section) -> bool:
    """Return whether all designs can be listed."""
    # Π_c n_c designs, if every column has finitely many values
    counts = cube.space.n_values
    return len(counts) == cube.space.d and math.prod(counts.values()) <= MAX_ENUMERATED


def spread_designs(cube: Section) -> Float[Tensor, "n m"]:
    """Return all designs of a small discrete space, or random designs of any other."""
    d = cube.space.d
    # all combinations of few values, or 4 N_RAW uniform points that are rounded to designs
    if _is_small(cube):
        values = product(*(cube.values(column) for column in range(d)))
        F = torch.tensor(list(values), dtype=torch.float64)
        return cube.unfold(_allowed(cube, F))
    if cube.space.constraints:
        return cube.unfold(Within(cube).drawn(4 * N_RAW))
    return cube.unfold(cube.round(torch.rand(4 * N_RAW, d, dtype=torch.float64)))


def _allowed(cube: Section, F: Float[Tensor, "n d"]) -> Float[Tensor, "k d"]:
    """Return the designs that meet the constraints."""
    if not cube.space.constraints:
        return F
    return F[torch.from_numpy(cube.space.polytope.holds(cube.axes.to_columns(F).numpy()))]


def _taken(Z: Tensor, exclude: Tensor, avoid: Tensor) -> Bool[Tensor, "n"]:
    return near(Z, exclude) | near(Z, avoid, NEARBY)
