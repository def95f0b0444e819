"""Write the tutorials: ``python -m experiments.figures.tutorials [NAME ...]``.

A tutorial is a script ``docs/tutorials/NAME.py`` in the percent format that editors know: text
after ``# %% [markdown]``, code after ``# %%``. This program runs it from top to bottom and writes
the page ``NAME.md`` beside it, with what each cell printed and the pictures that it drew.
"""

import contextlib
import io
import re
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import matplotlib
import matplotlib.pyplot as plt
import torch

from experiments.harness.draw import STYLE
from experiments.harness.places import DOCS, IMAGES

SCRIPTS = DOCS / "tutorials"
PICTURES = IMAGES / "tutorials"
DPI = 100


@dataclass(frozen=True)
class Cell:
    """A piece of a script: text, or code that begins at a line of it."""

    is_text: bool
    content: str
    line: int

    def __str__(self) -> str:
        """Return the cell as Markdown."""
        return self.content if self.is_text else f"```python\n{self.content}\n```"


@dataclass(frozen=True)
class Shown:
    """What a cell printed, and the pictures that it drew."""

    printed: str
    pictures: tuple[str, ...] = ()
    about: str = ""
    """The heading above the cell, for those who do not see the pictures."""

    def __str__(self) -> str:
        """Return both as Markdown."""
        texts = [f"```text\n{self.printed}\n```"] if self.printed else []
        return "\n\n".join([*texts, *(f"![{self.about}]({picture})" for picture in self.pictures)])


def names() -> list[str]:
    """Return the names of all tutorials."""
    return sorted(path.stem for path in SCRIPTS.glob("*.py"))


def cells(name: str) -> list[Cell]:
    """Divide a script into its cells."""
    script = (SCRIPTS / f"{name}.py").read_text(encoding="utf-8")
    found, line = [], 1
    for part in re.split(r"^(?=# %%)", script, flags=re.MULTILINE):
        head, _, body = part.partition("\n")
        is_text = "[markdown]" in head
        content = re.sub(r"^# ?", "", body, flags=re.MULTILINE) if is_text else body
        if content.strip():
            found.append(Cell(is_text, content.strip("\n"), line + 1))
        line += part.count("\n")
    return found


def run(name: str, pictures: Path) -> tuple[list[tuple[Cell, Shown]], float]:
    """Run a tutorial in an empty folder; return what its cells showed and the processor time."""
    namespace: dict[str, object] = {"__name__": "__main__"}
    shown: list[tuple[Cell, Shown]] = []
    begun, about = time.process_time(), name
    pictures.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        for cell in cells(name):
            headings = re.findall(r"^#+ (.*)", cell.content, re.MULTILINE) if cell.is_text else []
            about = headings[-1] if headings else about
            printed = "" if cell.is_text else _printed(cell, name, namespace)
            n_before = sum(len(each.pictures) for _, each in shown)
            drawn = _drawn(pictures, name, n_before)
            shown.append((cell, Shown(printed, drawn, about)))
    return shown, time.process_time() - begun


def _printed(cell: Cell, name: str, namespace: dict[str, object]) -> str:
    """Run a cell and return what it printed; lines keep their number in the script."""
    code = "\n" * (cell.line - 1) + cell.content
    with contextlib.redirect_stdout(io.StringIO()) as out:
        exec(compile(code, str(SCRIPTS / f"{name}.py"), "exec"), namespace)
    return out.getvalue().rstrip()


def _drawn(folder: Path, name: str, n_before: int) -> tuple[str, ...]:
    """Save and close all open pictures; return where they stand for the page."""
    paths = []
    for i, number in enumerate(plt.get_fignums(), n_before + 1):
        plt.figure(number).savefig(folder / f"{name}-{i}.png", dpi=DPI)
        paths.append(f"../images/tutorials/{name}-{i}.png")
    plt.close("all")
    return tuple(paths)


def page(name: str, shown: list[tuple[Cell, Shown]], seconds: float) -> str:
    """Return a tutorial as Markdown."""
    parts = [text for pair in shown for text in map(str, pair) if text]
    note = (
        f"*`docs/tutorials/{name}.py` makes this page: `python -m experiments.figures.tutorials "
        f"{name}`. It took {max(1, round(seconds))} s of processor time.*"
    )
    return "\n\n".join([*parts, note]) + "\n"


def main() -> None:
    """Write all tutorials, or those that are named."""
    torch.set_num_threads(1)
    matplotlib.use("agg")
    with plt.style.context(STYLE):
        for name in sys.argv[1:] or names():
            text = page(name, *run(name, PICTURES))
            (SCRIPTS / f"{name}.md").write_text(text, encoding="utf-8")
            print(f"wrote {SCRIPTS / name}.md")


if __name__ == "__main__":
    main()
