"""What all experiments have in common: tasks, their results, and a summary."""

import hashlib
import json
import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Task:
    """One repeat of one method: everything that its result depends on, except the code."""

    experiment: str
    label: str
    """Its name in tables and pictures, such as the name of a method."""
    seed: int
    config: dict[str, Any] = field(hash=False)
    """JSON-able; a task with another configuration belongs to another set of results."""

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
    """The figure or table of the paper that it reproduces."""
    title: str
    repeats: int = 12
    """Number of repeats in a full run; 1 if tasks differ only in their settings."""

    @abstractmethod
    def tasks(self, repeats: int) -> list[Task]:
        """List the tasks to run."""

    @abstractmethod
    def run(self, task: Task) -> dict[str, Any]:
        """Run one task and return a JSON-able result."""

    @abstractmethod
    def summary(self, results: "Results") -> str:
        """Return the results as Markdown."""

    def plot(self, results: "Results", folder: Path) -> list[Path]:
        """Draw the results; return the pictures, if there are any."""
        return []

    def excerpts(self, results: "Results") -> dict[str, tuple[Path, str]]:
        """Return what the docs show of the results: by the name of the marks, page and text."""
        return {}


@dataclass(frozen=True)
class Results:
    """The results so far of the tasks of one experiment."""

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
