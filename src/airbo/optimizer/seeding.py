"""Random numbers that depend on the seed of an optimizer and on nothing else."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor
from torch.quasirandom import SobolEngine

_GLOBAL_STATE = threading.RLock()
"""Held by the one thread that has seeded the global generators of torch and NumPy."""


@contextmanager
def reproducible(seed: int, step: int) -> Iterator[None]:
    """Seed the random numbers of a block of code, and leave those outside as they were.

    Such blocks run one at a time, also if they belong to different threads.
    """
    with _GLOBAL_STATE, torch.random.fork_rng(devices=[]):
        numpy_state = np.random.get_state()
        torch.manual_seed(_stream(seed, step))
        np.random.seed(_stream(seed, step) % 2**32)
        try:
            yield
        finally:
            np.random.set_state(numpy_state)


def initial_point(kind: str, i: int, d: int, seed: int) -> Float[Tensor, "1 {d}"]:
    """Return point ``i`` of a scrambled Sobol sequence, or of uniform random ones."""
    if kind == "random":
        generator = torch.Generator().manual_seed(_stream(seed, i))
        return torch.rand(1, d, generator=generator, dtype=torch.float64)
    engine = SobolEngine(d, scramble=True, seed=seed % 2**63)
    return engine.fast_forward(i).draw(1, dtype=torch.float64)


def _stream(seed: int, step: int) -> int:
    return (seed * 1_000_003 + step) % 2**63
