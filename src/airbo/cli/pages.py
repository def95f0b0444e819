"""Pages for a browser: the report, and Optuna's dashboard."""

import datetime
import ipaddress
from pathlib import Path

from airbo.campaign import Campaign
from airbo.campaign.errors import CampaignError, StorageError
from airbo.cli.output import Output


def write_page(campaign: Campaign, path: Path, history: int, out: Output) -> None:
    """Write the report of a campaign."""
    from airbo.report import write_report

    settings = campaign.settings
    try:
        write_report(
            campaign.optimizer(),
            path,
            title=settings.name,
            value_name=settings.value_name,
            value_unit=settings.value_unit,
            date=datetime.date.today(),
            history=history,
            progress=out.err.is_terminal and not out.as_json,
        )
    except OSError as error:
        raise StorageError(f"{path} cannot be written: {error.strerror or error}.") from None


def serve(campaign: Campaign, host: str, port: int, out: Output) -> None:
    """Serve optuna-dashboard until Ctrl-C."""
    try:
        from optuna_dashboard import run_server  # type: ignore[import-untyped]
    except ImportError:
        raise CampaignError(
            "The dashboard is not installed: pip install 'airbo[dashboard]'."
        ) from None
    if not _is_loopback(host):
        out.note(f"Everybody who reaches this machine at {host}:{port} can see the campaign.")
    out.show(f"http://{host}:{port}/ shows the campaign; Ctrl-C ends it.")
    out.result({"url": f"http://{host}:{port}/"})
    try:
        run_server(campaign.storage, host=host, port=port)
    except OSError as error:
        raise StorageError(f"Cannot listen at {host}:{port}: {error.strerror}.") from None


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
