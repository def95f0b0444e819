"""How fast eight workers get on with one campaign, on each kind of storage.

    python -m benchmarks.workers

Every worker asks, waits a moment (the experiment) and tells, until the campaign has its trials;
two of them are killed on the way. PostgreSQL is started for this, if it is installed.
"""

import argparse
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from statistics import median, quantiles

from tests.campaign import postgres, processes

RESULT = Path(__file__).parent / "results" / "workers.md"
FILE = """\
name = "{name}"
surrogate = "{surrogate}"
n_initial = 20
storage = "{url}"
[parameters.x]
low = 0.0
high = 1.0
uncertainty = {{ kind = "normal", std = 0.05 }}
"""


def storages(stack: ExitStack) -> Iterator[tuple[str, str]]:
    yield "journal file", "journal:///c.journal"
    yield "SQLite", "sqlite:///c.db"
    if not postgres.missing():
        yield "PostgreSQL", stack.enter_context(postgres.server())


def measure(url: str, surrogate: str, n_trials: int, n_workers: int) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "campaign.toml"
        path.write_text(FILE.format(name=folder, url=url, surrogate=surrogate))
        logs = [Path(folder) / f"{i}.log" for i in range(n_workers)]
        begin = time.perf_counter()
        workers = [processes.start(processes.work, path, log, n_trials, 0.05) for log in logs]
        for victim, part in zip(workers[:2], (0.25, 0.5), strict=True):
            while len(_seconds(logs)) < part * n_trials:
                time.sleep(0.05)
            victim.kill()
        for worker in workers:
            worker.join()
        elapsed = time.perf_counter() - begin
        seconds = _seconds(logs)
    return {
        "trials": len(seconds),
        "elapsed": elapsed,
        "rate": len(seconds) / elapsed,
        "median": median(seconds),
        "high": quantiles(seconds, n=20)[-1],
    }


def _seconds(logs: list[Path]) -> list[float]:
    lines = [line.split() for log in logs if log.exists() for line in log.read_text().splitlines()]
    return [float(line[2]) for line in lines if len(line) == 3]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=200)
    parser.add_argument("--workers", type=int, default=8)
    parser.add_argument("--surrogate", default="nominal")
    args = parser.parse_args()
    rows = [
        "| storage | trials told | seconds | trials per second | seconds per ask: median | 95% |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    print("\n".join(rows))
    with ExitStack() as stack:
        for name, url in storages(stack):
            m = measure(url, args.surrogate, args.trials, args.workers)
            rows.append(
                f"| {name} | {m['trials']:.0f} | {m['elapsed']:.0f} | {m['rate']:.1f} | "
                f"{m['median']:.2f} | {m['high']:.2f} |"
            )
            print(rows[-1], flush=True)
    RESULT.write_text("\n".join(rows) + "\n")


if __name__ == "__main__":
    main()
