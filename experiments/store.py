"""Finished repeats on disk: each is written once, in one piece, with where it comes from."""

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from experiments.experiment import Results, Task

RESULTS = Path(__file__).parent / "results"


@dataclass(frozen=True)
class Store:
    """A folder with one folder per experiment and configuration, and in it one file per seed."""

    folder: Path = RESULTS

    def path(self, task: Task) -> Path:
        return self.folder / task.experiment / task.set_name / f"{task.seed:03d}.json"

    def has(self, task: Task) -> bool:
        return self.path(task).exists()

    def write(self, task: Task, result: dict[str, Any], provenance: dict[str, Any]) -> None:
        """Keep a result, unless there is one already.

        The file appears under its name only when all of it is on the disk.
        """
        path = self.path(task)
        path.parent.mkdir(parents=True, exist_ok=True)
        content = {
            "experiment": task.experiment,
            "label": task.label,
            "seed": task.seed,
            "config": task.config,
            "provenance": provenance,
            "result": result,
        }
        part = path.with_name(f".{path.stem}.{os.getpid()}.part")
        try:
            with part.open("w", encoding="utf-8") as file:
                json.dump(content, file, separators=(",", ":"), allow_nan=False)
                file.flush()
                os.fsync(file.fileno())
            os.link(part, path)
        except FileExistsError:
            pass  # somebody else was faster
        finally:
            part.unlink(missing_ok=True)  # a full disk may have refused it

    def read(self, task: Task) -> dict[str, Any]:
        """Return the whole content of a file."""
        content: dict[str, Any] = json.loads(self.path(task).read_text(encoding="utf-8"))
        if content["config"] != task.config:
            raise ValueError(f"{self.path(task)} was made with another configuration.")
        return content

    def results(self, tasks: list[Task]) -> Results:
        """Read what there is of some tasks."""
        return Results([(t, self.read(t)["result"]) for t in tasks if self.has(t)])

    def commits(self, tasks: list[Task]) -> list[str]:
        """Return which versions of the code the results were made with."""
        found = {self.read(t)["provenance"]["commit"] for t in tasks if self.has(t)}
        return sorted(found)
