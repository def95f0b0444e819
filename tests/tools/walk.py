"""Count what a call walks through: functions, files and calls under ``src/airbo``.

``python -m tests.tools.walk`` walks the README example: one ``ask`` and one ``tell`` after the
initial designs. ``walk(some_callable)`` serves for any other way.
"""

import math
import sys
import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

import airbo

SOURCE = Path(airbo.__file__).parent


@dataclass(frozen=True)
class Walk:
    """How often each function was called, by (file, name)."""

    calls: Counter[tuple[str, str]]

    def inside(self, package: str) -> "Walk":
        """Return the part that lies in one package, or one module, of ``airbo``."""
        own = {f: n for f, n in self.calls.items() if package_of(f[0]) == package}
        return Walk(Counter(own))

    @property
    def packages(self) -> list[str]:
        """Names of the packages and modules that were walked through."""
        return sorted({package_of(file) for file, _ in self.calls})

    def __str__(self) -> str:
        n_files = len({file for file, _ in self.calls})
        n_calls = sum(self.calls.values())
        return f"{len(self.calls):4} functions in {n_files:2} files, {n_calls:6} calls"


def walk(call: Callable[[], object]) -> Walk:
    """Run something and count the calls of our own functions, lambdas and comprehensions aside."""
    calls: Counter[tuple[str, str]] = Counter()

    def count(frame: FrameType, event: str, argument: Any) -> None:
        code = frame.f_code
        ours = code.co_filename.startswith(str(SOURCE)) and not code.co_name.startswith("<")
        if event == "call" and ours:
            file = str(Path(code.co_filename).relative_to(SOURCE))
            calls[file, code.co_qualname] += 1

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        call()
    finally:
        sys.setprofile(before)
    return Walk(calls)


def package_of(file: str) -> str:
    """Return the package, or the module, that a file of ``airbo`` belongs to."""
    return Path(file).parts[0].removesuffix(".py")


def readme() -> Callable[[], object]:
    """Prepare the README example; return one ``ask`` and one ``tell``."""
    from airbo import uncertainty as unc

    space = airbo.Space({"speed": (50.0, 200.0), "depth": airbo.Float(0.1, 2.0, log=True)})
    P = {"speed": unc.Normal(5.0), "depth": unc.Beta(0.4, 0.2, scale=0.1)}
    optimizer = airbo.Optimizer(space, P, seed=0)

    def step() -> None:
        design = optimizer.ask()
        far = ((design["speed"] - 120.0) / 40.0) ** 2 + math.log(design["depth"] / 0.8) ** 2
        optimizer.tell(design, -far)

    for _ in range(optimizer.n_initial):
        step()
    return step


def main() -> None:
    """Print the walk through the README example, in all and per package."""
    warnings.simplefilter("ignore")
    found = walk(readme())
    print(f"{'all':12} {found}")
    for package in found.packages:
        print(f"{package:12} {found.inside(package)}")
    if "--most" in sys.argv:
        for (file, name), n in found.calls.most_common(40):
            print(f"{n:6} {file}: {name}")


if __name__ == "__main__":
    main()
