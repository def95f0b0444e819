"""Which design to try next, as a point of the unit cube."""

from typing import cast

import torch
from botorch.models.gpytorch import GPyTorchModel
from jaxtyping import Float
from torch import Tensor

from airbo.acquisition import Acquisition, InformationAbout, Situation, believing
from airbo.cube import Cube
from airbo.embeddings.features import Nominal
from airbo.models import UncertainInputGP
from airbo.optimizer.history import History
from airbo.optimizer.search import best_design, free_designs, near, without_numerical_warnings
from airbo.optimizer.seeding import initial_point
from airbo.optimizer.surrogate import Surrogate


def initial_design(history: History, kind: str, seed: int) -> Float[Tensor, "1 d"]:
    """Return the next point of the initial sequence, skipping designs that are taken."""
    space = history.space
    pending = history.unit(history.pending)
    taken = torch.cat([pending, history.unit([o.design for o in history.observations])])
    for i in range(history.n_asked, history.n_asked + 100):
        Z = Cube(space).round(initial_point(kind, i, space.d, seed))
        if not near(Z, taken).any():
            return Z
    for excluded in (taken, pending):
        free = free_designs(space, excluded)
        if len(free):
            return free[torch.randint(len(free), (1,))]
    return Z


def next_design(
    history: History, model: GPyTorchModel, surrogate: Surrogate, acquisition: Acquisition
) -> Float[Tensor, "1 d"]:
    """Maximize the acquisition over the space.

    Where designs are tried under another uncertainty than they will be used under, this is the
    design to learn about, and what is proposed is the experiment that teaches most about it.
    """
    waiting = history.waiting
    experiments, deployment = (
        surrogate.in_model_coordinates(u) for u in (surrogate.uncertainty, surrogate.deployment)
    )
    situation = Situation(
        surrogate.model_designs([o.design for o in history.known]),
        surrogate.model_designs(waiting) if waiting else None,
        experiments,
    )
    taken = {
        "exclude": history.unit(history.pending),
        "avoid": history.unit(history.recently_failed),
    }
    with without_numerical_warnings():
        Z = best_design(acquisition(model, situation), history.space, **taken)
        if experiments == deployment or not isinstance(model, UncertainInputGP):
            return Z
        if isinstance(model.features, Nominal):
            return Z
        informed = cast(UncertainInputGP, believing(model, situation))
        target = Cube(history.space).unfold(Z)
        teaching = InformationAbout(informed, target, deployment, experiments)
        return best_design(teaching, history.space, start=Z, **taken)
