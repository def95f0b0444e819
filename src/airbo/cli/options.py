"""What all commands share."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from airbo.campaign import Campaign, Settings

File = Annotated[Path, typer.Option("--file", "-f", help="The campaign file.", envvar="AIRBO_FILE")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]
DEFAULT = Path("campaign.toml")


def open_campaign(file: Path) -> "Campaign":
    """Open a campaign, with PyTorch and Optuna set up for single commands."""
    import optuna
    import torch

    from airbo.campaign import Campaign

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    torch.set_num_threads(1)  # the matrices are small: more threads only wait for each other
    return Campaign.open(file)


def read_under(settings: "Settings", text: str | None) -> Any:
    """Read what single experiments were made under, if that was said."""
    if text is None:
        return None
    from airbo.campaign.settings import parse_uncertainty

    return parse_uncertainty(text, settings)


def as_data(e: Any) -> dict[str, Any]:
    """Describe an experiment for programs."""
    return {
        "trial": e.number,
        "design": e.design,
        "outcome": e.outcome,
        "value": e.value,
        "executed": dict(e.executed),
        "asked": e.asked,
    }
