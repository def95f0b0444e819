"""Processor time of jobs that take turns, so that noise affects all of them equally."""

import time
from collections.abc import Callable, Mapping
from functools import partial
from statistics import median
from typing import Any

MAX_SECONDS = 4.0
"""A job that has taken this long in total gets no further turn."""


def interleaved(
    jobs: Mapping[str, Callable[[Any], object]],
    given: Callable[[int], Any],
    n_rounds: int,
    warm_up: Callable[[], Any],
) -> dict[str, float]:
    """Return the median seconds per job.

    Args:
        jobs: What is timed, by name.
        given: Makes the argument of all jobs in a round; not timed.
        n_rounds: How often every job has its turn.
        warm_up: Makes the argument of a first turn that does not count.
    """
    early = warm_up()
    for job in jobs.values():
        job(early)
    times: dict[str, list[float]] = {name: [] for name in jobs}
    for number in range(n_rounds):
        argument = given(number)
        first = number % len(jobs)  # no job always follows the same neighbour
        order = [*jobs][first:] + [*jobs][:first]
        for name in order:
            job = jobs[name]
            if sum(times[name]) < MAX_SECONDS:
                times[name].append(seconds(partial(job, argument)))
    return {name: median(values) for name, values in times.items()}


def seconds(job: Callable[[], object]) -> float:
    """Time one call in processor time, so that other programs do not count."""
    start = time.process_time()
    job()
    return time.process_time() - start
