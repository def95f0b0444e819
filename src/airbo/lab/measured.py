"""What the executed inputs that were measured say about the uncertainty in the file."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from airbo.lab.errors import CampaignError
from airbo.lab.file import Settings
from airbo.lab.record import Experiment
from airbo.space.parameters import Categorical
from airbo.words import hit

if TYPE_CHECKING:
    import pandas as pd

    from airbo.calibrate import Belief


@dataclass(frozen=True)
class MeasuredInputs:
    """Asked and actual values of the experiments with a measured input, in the order of time."""

    experiments: list[Experiment]
    asked: "pd.DataFrame"
    actual: "pd.DataFrame"
    """Nothing where a parameter was not measured."""


def measured_inputs(settings: Settings, experiments: Sequence[Experiment]) -> MeasuredInputs:
    """Collect what was measured.

    Raises:
        CampaignError: If nothing was.
    """
    import pandas as pd

    space = settings.space
    own = sorted((e for e in experiments if e.executed), key=lambda e: e.number)
    names = [
        name
        for name, parameter in space.parameters.items()
        if not isinstance(parameter, Categorical) and any(name in e.executed for e in own)
    ]
    if not names:
        raise CampaignError(
            "No executed input was measured in this campaign yet; for example: airbo tell 3 1.25 "
            f"--executed {space.names[0]}=... With a log of asked and actual values: airbo "
            "calibrate LOG.csv."
        )
    index = [e.number for e in own]
    asked = pd.DataFrame([{n: float(e.design[n]) for n in names} for e in own], index=index)
    actual = pd.DataFrame([{n: e.executed.get(n) for n in names} for e in own], index=index)
    return MeasuredInputs(own, asked, actual.astype(float))


def beliefs(settings: Settings, measured: MeasuredInputs) -> "list[Belief]":
    """Say for each measured parameter whether the uncertainty in the file is believable."""
    import numpy as np

    from airbo.calibrate import believe
    from airbo.uncertainty.in_cube import by_columns

    space = settings.space
    uncertainty = by_columns(space, settings.uncertainty)
    columns = space.to_columns([e.design for e in measured.experiments], allow_outside=True)
    designs = np.asarray(columns, dtype=np.float64)
    found = []
    for name in measured.asked.columns:
        there = measured.actual[name].notna().to_numpy()
        said = hit(space, settings.described_uncertainty, name)
        actual = measured.actual[name].to_numpy()[there]
        column = space.names.index(name)
        found.append(believe(name, uncertainty, designs[there], column, actual, said))
    return found
