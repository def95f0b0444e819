"""What every experiment can be asked: its tasks, what one of them gives, what all of them say."""

import hashlib
import json
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

Step = Callable[[int, int], None]
"""To be called with the number of steps done and of all steps, as a task goes on."""


@dataclass(frozen=True)
class Task:
    """One repeat of one method: everything that its result depends on, except the code."""

    experiment: str
    label: str
    """What it is called in tables and pictures, such as the name of a method."""
    seed: int
    config: dict[str, Any] = field(hash=False)
    """JSON-able; a task with another configuration belongs to another set of results."""
    n_steps: int = 1
    """How often it reports that it goes on."""

    @property
    def set_name(self) -> str:
        """The set of results that this one belongs to: those with the same configuration."""
        text = json.dumps([self.experiment, self.label, self.config], sort_keys=True)
        slug = re.sub("[^a-z0-9]+", "-", self.label.lower()).strip("-")
        return f"{slug}-{hashlib.sha256(text.encode()).hexdigest()[:8]}"


class Experiment(ABC):
    """Something to measure: a figure or table of the paper, or of the docs.

    A new experiment is one file: a class with the members below, and a line in ``registry.py``.
    """

    name: str
    paper: str
    """Which figure or table of the paper it is."""
    title: str
    repeats: int = 12
    """In a full run; 1 where only the settings differ between tasks."""

    @abstractmethod
    def tasks(self, repeats: int, quick: bool = False) -> list[Task]:
        """List what there is to run; with ``quick`` in a small version that touches everything."""

    @abstractmethod
    def run(self, task: Task, step: Step) -> dict[str, Any]:
        """Run one task and return a JSON-able result."""

    @abstractmethod
    def summary(self, results: "Results") -> str:
        """Say in Markdown what came out."""

    def plot(self, results: "Results", folder: Path) -> list[Path]:
        """Draw what came out; return the pictures, if there are any."""
        return []


@dataclass(frozen=True)
class Results:
    """The results that there are of the tasks of one experiment."""

    each: Sequence[tuple[Task, dict[str, Any]]]

    @property
    def labels(self) -> list[str]:
        return list(dict.fromkeys(task.label for task, _ in self.each))

    def of(self, label: str) -> list[dict[str, Any]]:
        return [result for task, result in self.each if task.label == label]

    def __bool__(self) -> bool:
        return bool(self.each)

    def __iter__(self) -> Iterator[tuple[Task, dict[str, Any]]]:
        return iter(self.each)
