"""What runs will cost, from the processor time of a few evaluations half way through a run.

``python -m experiments costs`` measures what is not known. Every number of ``costs.json`` is the
processor time of one evaluation: to fit, to ask and to be told, on one core.
"""

import json
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

import torch

from airbo.seeds import stream
from experiments.benchmark.plan import Start
from experiments.harness import table
from experiments.harness.experiment import Task
from experiments.subjects.cases import Case, find_case

COSTS = Path(__file__).with_name("costs.json")
N_TIMED = 2


def seconds_per_evaluation(case: Case, start: Start, n: int, logged: bool = False) -> float:
    """Tell a method random designs until it is half way to n, and time what follows."""
    loop, half = start(case, 0), (case.n_initial + n) // 2
    random = torch.from_numpy(stream(0, "timed designs").random((half, case.d)))
    asked = case.designs(random).tolist()
    spent = 0.0
    for i in range(half + N_TIMED):
        begun = time.process_time()
        design = asked[i] if i < half else loop.ask()
        executed = case.executed(design, 0, i)
        loop.tell(design, case.value(executed, 0, i), executed if logged else None)
        spent += time.process_time() - begun if i >= half else 0.0
    return float(f"{spent / N_TIMED:.3g}")


def key_of(task: Task) -> tuple[str, str]:
    """Return the case and the method under which the cost of a task is kept."""
    config = task.config
    logged = ", logged" if config.get("logged") else ""
    if "slip" not in config:
        return config["case"], config["method"]
    size = "15%" if config["slip"] else "0%"  # all slips cost the same
    return f"slip {size} {config['case']}", f"{config['method']}{logged}"


def known() -> dict[str, dict[str, float]]:
    """Return the costs that were measured before."""
    text = COSTS.read_text(encoding="utf-8") if COSTS.exists() else "{}"
    costs: dict[str, dict[str, float]] = json.loads(text)
    return costs


def measure(tasks: Sequence[Task], methods: dict[str, Start]) -> Iterator[tuple[str, str, float]]:
    """Measure and keep the costs of tasks that are not known, one case and method at a time."""
    for task in {key_of(task): task for task in tasks}.values():
        case, label = key_of(task)
        if label in known().get(case, {}):
            continue
        start, logged = methods[task.config["method"]], bool(task.config.get("logged"))
        cost = seconds_per_evaluation(find_case(case), start, task.config["budget"], logged)
        costs = known()
        costs.setdefault(case, {})[label] = cost
        lines = [f"  {json.dumps(c)}: {json.dumps(costs[c])}" for c in sorted(costs)]
        COSTS.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
        yield case, label, cost


def estimate(tasks: Sequence[Task]) -> str:
    """Tabulate what tasks will cost, by method, and say the hours in all."""
    costs, spent, unknown = known(), defaultdict(list), 0
    for task in tasks:
        case, label = key_of(task)
        cost = costs.get(case, {}).get(label)
        if cost is None:
            unknown += 1
        else:
            n = task.config["budget"] - find_case(case).n_initial
            spent[task.config["method"]].append(n * cost)
    rows = [
        [method, str(len(each)), f"{sum(each) / len(each):.1f}", f"{sum(each) / 3600:.2f}"]
        for method, each in spent.items()
    ]
    total = sum(map(sum, spent.values())) / 3600
    missing = f" The costs of {unknown} runs are not known." if unknown else ""
    header = ["method", "runs", "processor seconds a run", "hours"]
    return f"{table.markdown(header, rows)}\n\n{total:.1f} processor hours.{missing}"
