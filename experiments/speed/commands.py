"""Processor time of the commands, of importing a large table, and of the pages of a server.

    python -m experiments.speed.commands [--rounds 5]

Every command runs as a user runs it, in a process of its own, on a campaign with four parameters
and thirty experiments. The server is one on a campaign with two thousand, and its time is that of
its own process: models are fitted in others. The result is a table in ``experiments/results``.
"""

import argparse
import csv
import http.client
import json
import math
import os
import random
import resource
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from urllib.parse import urlsplit

from rich.progress import track

import airbo
from experiments.harness import record, table
from experiments.harness.places import RESULTS

N_EXPERIMENTS = 30
N_ROWS = 10_000
NEW = (
    "init", "--name", "reaction", "--value", "yield:%",
    "--parameter", "temp=40:120:°C", "--parameter", "flow=10:50:l/min",
    "--parameter", "dose=0.1:10:mol%:log", "--parameter", "stages=1:5::integer",
    "--uncertainty", "temp=normal:2", "--uncertainty", "flow=normal:5%",
)  # fmt: skip
COMMANDS: dict[tuple[str, ...], float | None] = {
    NEW: None,
    ("check",): None,
    ("import", "done.csv"): None,
    ("status",): 0.6,
    ("ask",): 4.0,
    ("tell", str(N_EXPERIMENTS), "55"): 0.6,
    ("note", "3", "a new batch"): 0.6,
    ("undo",): 0.6,
    ("recommend",): None,
    ("report",): 10.0,
    ("export", "-o", "all.csv"): None,
}
"""What a user types, in this order, and how many seconds it may take."""
IMPORT = ("import", "many.csv")
IMPORT_TARGET = 10.0
"""For "in seconds"."""
N_SERVED = 2_000
N_REQUESTS = 20
PAGES: dict[tuple[str, ...], float | None] = {("GET /",): 0.2, ("GET /live",): 0.05}
"""Pages of the server, and how many seconds each may take."""
SOURCE = Path(airbo.__file__).parents[1]
"""The package that is measured, whatever is installed."""
YARDSTICK = ("python", "import torch")
"""What says how fast the machine was: it takes 1.1 s where nothing else runs."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    n_rounds = parser.parse_args().rounds
    where = record.provenance()
    rounds = [_round() for _ in track(range(n_rounds), "rounds")]
    text = "\n\n".join([_page(rounds), record.describe(where)])
    (RESULTS / "commands.md").write_text(f"{text}\n", encoding="utf-8")
    print(text)


def _round() -> dict[tuple[str, ...], float]:
    """Work through all commands once; return the processor time of each."""
    with tempfile.TemporaryDirectory() as folder:
        _write(Path(folder) / "done.csv", N_EXPERIMENTS)
        _write(Path(folder) / "many.csv", N_ROWS)
        found = {command: _seconds(command, folder) for command in (YARDSTICK, *COMMANDS, IMPORT)}
    with tempfile.TemporaryDirectory() as folder:
        _write(Path(folder) / "many.csv", N_SERVED)
        for command in (NEW, IMPORT):
            _seconds(command, folder)
        return found | _pages(folder)


def _pages(folder: str) -> dict[tuple[str, ...], float]:
    """Return the processor time of the server for each page, on average, after a change each."""
    server = subprocess.Popen(
        [sys.executable, "-m", "airbo.lab.cli", "serve", "--port", "0", "--json"],
        cwd=folder,
        env=os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(SOURCE)},
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        assert server.stdout is not None
        place = urlsplit(json.loads(server.stdout.readline())["url"]).netloc
        _get(place, "/")  # reads all events
        found = {}
        with airbo.Campaign.open(Path(folder) / "campaign.toml") as campaign:
            for page in PAGES:
                before = _used(server.pid)
                for number in range(N_REQUESTS):
                    campaign.note(number, "a new batch")
                    _get(place, page[0].removeprefix("GET "))
                found[page] = (_used(server.pid) - before) / N_REQUESTS
        return found
    finally:
        os.killpg(server.pid, signal.SIGKILL)
        server.wait()


def _get(place: str, path: str) -> None:
    connection = http.client.HTTPConnection(place, timeout=600)
    connection.request("GET", path)
    answer = connection.getresponse()
    answer.read()
    connection.close()
    if answer.status != 200:
        raise RuntimeError(f"{path} is answered by {answer.status}.")


def _used(process: int) -> float:
    """Return the processor time of a process so far; Linux says it."""
    words = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


def _seconds(command: Sequence[str], folder: str) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    words = ["-c", "import torch"] if command == YARDSTICK else ["-m", "airbo.lab.cli", *command]
    subprocess.run(
        [sys.executable, *words],
        cwd=folder,
        env=os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(SOURCE)},
        stdout=subprocess.DEVNULL,
        check=True,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def _write(path: Path, n: int) -> None:
    """Write the results of a reaction that has its best yield near 85 °C and 30 l/min."""
    chance = random.Random(0)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["temp [°C]", "flow", "dose", "stages", "yield"])
        for _ in range(n):
            temp, flow = round(chance.uniform(40, 120), 1), round(chance.uniform(10, 50), 1)
            dose, stages = round(10 ** chance.uniform(-1, 1), 3), chance.randint(1, 5)
            mean = 60 - ((temp - 85) / 7) ** 2 - ((flow - 30) / 5) ** 2 + stages
            value = mean - 6 * math.log10(dose) ** 2 + chance.gauss(0, 1)
            writer.writerow([temp, flow, dose, stages, round(value, 2)])


def _page(rounds: Sequence[dict[tuple[str, ...], float]]) -> str:
    rows = []
    for command, target in {YARDSTICK: None, **COMMANDS, IMPORT: IMPORT_TARGET, **PAGES}.items():
        seconds = [times[command] for times in rounds]
        what = f"`airbo {'init ...' if command == NEW else ' '.join(command)}`"
        what += f", {N_ROWS:,} rows" if command == IMPORT else ""
        what = "for comparison: `import torch`" if command == YARDSTICK else what
        if command in PAGES:
            what = f"`{command[0]}` of `airbo serve`, {N_SERVED:,} experiments, after a change"
        reached = "" if target is None else "yes" if median(seconds) <= target else "no"
        goal = "" if target is None else f"≤ {target:g}"
        rows.append([what, goal, f"{median(seconds):.2f}", f"{max(seconds):.2f}", reached])
    header = ["command", "target in s", "median in s", f"worst of {len(rounds)}", "reached?"]
    return table.markdown(header, rows)


if __name__ == "__main__":
    main()
