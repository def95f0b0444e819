"""Random numbers: one independent stream for every purpose and every step of a run.

Notation
    seed      the one number that a user gives, >= 0
    purpose   what the numbers are for, in words: "initial designs", "ask", "noise", ...
    step      which experiment, design or repetition they are for, >= 0

A stream is the child ``(purpose, step)`` of ``numpy.random.SeedSequence(seed)``. Children of one
seed are independent by construction, so are those of different seeds, and every one can be made
anew at any time: a run that was killed and resumed draws the same numbers as one that was not.
Sums such as ``seed + step`` would not do: two purposes that add alike share all their numbers.
"""

import threading
import zlib
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch

_GLOBAL_STATE = threading.RLock()
"""Held by the thread that has seeded the global generators of torch and NumPy."""


def stream(seed: int, purpose: str, step: int = 0) -> np.random.Generator:
    """Return the generator of one purpose and one step.

    >>> stream(0, "noise", 3).normal() == stream(0, "noise", 3).normal()
    True
    >>> stream(0, "noise", 3).normal() == stream(0, "noise", 4).normal()
    False
    """
    return np.random.default_rng(_child(seed, purpose, step))


def stream_seed(seed: int, purpose: str, step: int = 0) -> int:
    """Return a number below 2⁶³ from the same stream, to seed what takes a single number."""
    return int(_child(seed, purpose, step).generate_state(1, np.uint64)[0] >> np.uint64(1))


def _child(seed: int, purpose: str, step: int) -> np.random.SeedSequence:
    # crc32 turns words into the same 32 bits on every machine, which hash() does not
    return np.random.SeedSequence(seed, spawn_key=(zlib.crc32(purpose.encode()), step))


@contextmanager
def reproducible(seed: int, purpose: str, step: int = 0) -> Iterator[None]:
    """Seed torch and NumPy inside a block of code, and restore both generators afterwards.

    BoTorch and GPyTorch draw from the global generators. Such blocks run one at a time, even in
    different threads.
    """
    number = stream_seed(seed, purpose, step)
    with _GLOBAL_STATE, torch.random.fork_rng(devices=[]):
        numpy_state = np.random.get_state()
        torch.manual_seed(number)
        np.random.seed(number % 2**32)
        try:
            yield
        finally:
            np.random.set_state(numpy_state)
