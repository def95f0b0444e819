"""Experiments that a program does: ask, run the command, tell, without anybody watching."""

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass

from airbo.campaign.campaign import Campaign
from airbo.campaign.claims import is_orphan, this_process
from airbo.campaign.errors import AlreadyTold, CampaignError
from airbo.campaign.experiment import Experiment
from airbo.campaign.program import Command, CommandResult
from airbo.space import Design

GIVE_WAY_SECONDS = 1.0
"""How long another run may take to see that a place is taken, and to give way."""


@dataclass(frozen=True)
class Step:
    """One experiment of an unattended run."""

    experiment: Experiment
    result: CommandResult
    n_done: int
    """Experiments of the campaign that have an outcome."""


def run_unattended(
    campaign: Campaign,
    command: Command,
    budget: int,
    *,
    max_failures: int = 5,
    on_step: Callable[[Step], object] = lambda step: None,
) -> list[Step]:
    """Do experiments until the campaign has ``budget`` of them; return those done here.

    Experiments that a killed run on this machine left behind are done first. Ctrl-C ends the
    command and gives its experiment up.

    Args:
        campaign: The campaign.
        command: What does an experiment.
        budget: Total number of experiments with an outcome.
        max_failures: After so many failed ones in a row the command itself is taken for broken.
        on_step: Called after each experiment.

    Raises:
        CampaignError: After too many failures.
    """
    steps: list[Step] = []
    while (experiment := _next(campaign, budget)) is not None:
        try:
            result = command.run(experiment)
        except BaseException:
            _give_back(campaign, experiment)
            raise
        _tell(campaign, experiment, result, command.executed(experiment.design))
        done = sum(e.has_outcome for e in campaign.experiments)
        steps.append(Step(experiment, result, done))
        on_step(steps[-1])
        _check_failures(steps, max_failures)
    return steps


def _tell(
    campaign: Campaign, experiment: Experiment, result: CommandResult, design: Design
) -> None:
    """Report a result, and the design that was executed; Ctrl-C waits, so that no value is lost."""
    moved = {name: value for name, value in design.items() if value != experiment.design[name]}

    def tell() -> None:  # a program does not mistype
        campaign.tell(
            experiment.number, result.value, design=moved or None, allow_outside=True, sure=True
        )

    with suppress(AlreadyTold):  # somebody else did the same experiment and was faster
        try:
            tell()
        except KeyboardInterrupt:
            tell()
            raise
        if result.value is None and result.reason:
            campaign.note(experiment.number, result.reason)


def _give_back(campaign: Campaign, experiment: Experiment) -> None:
    """Give an experiment up, unless somebody else has answered it."""
    with suppress(AlreadyTold):
        campaign.give_up(experiment.number)


def _check_failures(steps: Sequence[Step], max_failures: int) -> None:
    last = steps[-max_failures:]
    if len(last) == max_failures and all(step.result.value is None for step in last):
        raise CampaignError(
            f"The last {max_failures} experiments failed, so the run has stopped. The last one: "
            f"{last[-1].result.reason}."
        )


def _next(campaign: Campaign, budget: int) -> Experiment | None:
    """Return an experiment that was left behind, or a new one while the budget allows."""
    while True:
        experiments = campaign.experiments
        running = [e for e in experiments if e.is_pending and e.run is not None]
        left_behind = next(filter(is_orphan, running), None)
        if left_behind is not None:
            if _takes_over(campaign, left_behind):
                return left_behind
        elif _n_counted(experiments) >= budget:
            return None
        else:
            [experiment] = campaign.ask()
            try:
                if _takes_place(campaign, experiment, budget):
                    return experiment
            except BaseException:
                _give_back(campaign, experiment)
                raise
            _give_back(campaign, experiment)


def _takes_over(campaign: Campaign, experiment: Experiment) -> bool:
    """Claim what was left behind; of several runs that do so, the last one has it."""
    process = this_process()
    if not campaign.claim(experiment.number, process):
        return False
    time.sleep(GIVE_WAY_SECONDS)
    now = campaign.experiment(experiment.number)
    return now.is_pending and now.run == process


def _takes_place(campaign: Campaign, experiment: Experiment, budget: int) -> bool:
    """Claim a new experiment, and say whether the budget has a place for it."""
    claimed = campaign.claim(experiment.number, this_process())
    return claimed and _keeps_to(campaign, budget, experiment.number)


def _n_counted(experiments: Sequence[Experiment]) -> int:
    """Return how many experiments are done, or under way in a run."""
    return sum(e.has_outcome or (e.is_pending and e.run is not None) for e in experiments)


def _keeps_to(campaign: Campaign, budget: int, number: int) -> bool:
    """Say whether the last place of a budget is ours, where other runs began at the same time.

    The run that began later gives way at once. The first one looks again: another run may have
    counted before it could see this experiment, and then this one gives way.
    """
    experiments = campaign.experiments
    if _n_counted(experiments) <= budget:
        return True
    begun = {e.number: _since(e) for e in experiments if e.is_pending and e.run is not None}
    if number not in begun:
        return False  # somebody has answered it, or given it up
    earlier = [n for n in begun if (begun[n], n) < (begun[number], number)]
    if sum(e.has_outcome for e in experiments) + len(earlier) >= budget:
        return False
    time.sleep(GIVE_WAY_SECONDS)
    return _n_counted(campaign.experiments) <= budget


def _since(experiment: Experiment) -> float:
    return float((experiment.run or {}).get("since", 0.0))
