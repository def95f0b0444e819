"""Optuna's dashboard on a campaign: trials as they count, for looking only."""

import ipaddress
from collections.abc import Callable, Container, Iterable
from socketserver import ThreadingMixIn
from typing import TYPE_CHECKING, Annotated, Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

import typer

from airbo.cli.command import (
    DEFAULT,
    AsJson,
    File,
    Output,
    collect_garbage,
    open_campaign,
    reporting,
)

if TYPE_CHECKING:
    from airbo.campaign import Campaign

WSGIApplication = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]


def dashboard(
    host: Annotated[str, typer.Option(help="The address to listen at.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="At which port.", min=0, max=65535)] = 8080,
    file: File = DEFAULT,
    as_json: AsJson = False,
) -> None:
    """Open optuna-dashboard on the campaign, for looking only, for this machine only.

    It shows the experiments as they count: corrected, and without those that were undone or
    excluded. It knows nothing of where designs land: its "best trial" is the luckiest run, not the
    recommended design. It has no password: --host 0.0.0.0 shows the campaign to everybody who
    reaches this machine.
    """
    with reporting(as_json) as out:
        _serve(open_campaign(file, out), host, port, out)


def _serve(campaign: "Campaign", host: str, port: int, out: Output) -> None:
    """Serve the page until Ctrl-C."""
    from airbo.campaign.errors import StorageError

    app = page(campaign, host, port)
    collect_garbage()
    if not _is_loopback(host):
        out.note(f"Everybody who reaches this machine at {host}:{port} can see the campaign.")
    try:
        server = make_server(host, port, app, _Server, _Quiet)
    except OSError as error:
        raise StorageError(f"Cannot listen at {host}:{port}: {error.strerror}.") from None
    url = f"http://{host}:{server.server_port}/"
    out.show(f"{url} shows the campaign; reload the page after a change. Ctrl-C ends it.")
    out.result({"url": url})
    with server:
        server.serve_forever()


class _Server(ThreadingMixIn, WSGIServer):
    """Answers several requests at once."""

    daemon_threads = True


class _Quiet(WSGIRequestHandler):
    """Does not write a line for every request."""

    def log_message(self, *args: Any) -> None:
        """Say nothing."""


def page(campaign: "Campaign", host: str, port: int) -> WSGIApplication:
    """Return the pages of a campaign, which nobody can use to change it."""
    from airbo.campaign.errors import CampaignError
    from airbo.campaign.optuna.looking import AsItCounts

    try:
        from optuna_dashboard import wsgi  # type: ignore[import-untyped]
    except ImportError:
        raise CampaignError(
            "The dashboard is not installed: pip install 'airbo[dashboard]'."
        ) from None
    return guarded(wsgi(AsItCounts(campaign.ledger.study)), host, port)


def guarded(app: WSGIApplication, host: str, port: int) -> WSGIApplication:
    """Let through only requests to look, made to the address that we listen at.

    A page of another origin can send requests here, and under a name of its own that leads to this
    machine it could read the answers.
    """
    names = _names(host)

    def guard(environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        if environ["REQUEST_METHOD"] not in ("GET", "HEAD"):
            return _refuse(start, "405 Method Not Allowed", "This page is for looking only.")
        name = environ.get("HTTP_HOST", "").rpartition(":")[0] or environ.get("HTTP_HOST", "")
        if names is not None and name.strip("[]").lower() not in names:
            return _refuse(start, "403 Forbidden", "This page has another address.")
        return app(environ, start)

    return guard


def _names(host: str) -> Container[str] | None:
    """Return the names that a request may use; None: any, where others are let in."""
    return {"localhost", "127.0.0.1", "::1", host.lower()} if _is_loopback(host) else None


def _refuse(start: Callable[..., Any], status: str, text: str) -> Iterable[bytes]:
    start(status, [("Content-Type", "text/plain; charset=utf-8")])
    return [text.encode()]


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
