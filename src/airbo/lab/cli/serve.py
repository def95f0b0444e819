"""``airbo serve``: a page to work on, beside the machine."""

import os
from pathlib import Path
from typing import Annotated

import typer

from airbo.lab.cli.command import (
    DEFAULT,
    AsJson,
    File,
    collect_garbage,
    open_campaign,
    reporting,
)
from airbo.lab.errors import CampaignError

TOKEN_VARIABLE = "AIRBO_TOKEN"
"""Environment variable with the token, so that it stays the same when the server starts again."""


def serve(
    host: Annotated[str, typer.Option(help="The address to listen at.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="The port; 0: any free one.", min=0, max=65535)] = 8000,
    read_only: Annotated[
        bool, typer.Option("--read-only", help="Show the campaign, never change it.")
    ] = False,
    name: Annotated[
        list[str] | None, typer.Option(help="Another name by which others reach this machine.")
    ] = None,
    origin: Annotated[
        str | None,
        typer.Option(
            help="The address that browsers see, such as https://lab.example, if a proxy forwards "
            "to this server."
        ),
    ] = None,
    certificate: Annotated[
        Path | None, typer.Option(help="A TLS certificate (PEM); with --key.")
    ] = None,
    key: Annotated[Path | None, typer.Option(help="The key of the certificate.")] = None,
    file: File = DEFAULT,
    as_json: AsJson = False,
) -> None:
    """Open a page to work on: what to run next, a form for the results, the best design, charts.

    Only this machine can open it. For others, use --host 0.0.0.0 and open the link with the token
    that is printed. Several people may work at once; the command line works meanwhile.
    """
    with reporting(as_json) as out:
        files = [path for path in (certificate, key) if path is not None]
        if len(files) == 1:
            raise CampaignError("--certificate and --key go together.")
        for path in files:
            if not path.is_file():
                raise CampaignError(f"There is no file {path}.")
        with open_campaign(file, out):  # what is wrong with it is said here, not in the page
            collect_garbage()
        try:
            from airbo.lab.serve.guard import Access, check_origin
            from airbo.lab.serve.server import answer, listen, own_names
        except ImportError as error:
            raise CampaignError(
                f"The page needs packages that are not installed ({error.name}): "
                "pip install 'airbo[serve]'."
            ) from None
        token = os.environ.get(TOKEN_VARIABLE) or None
        try:
            seen = None if origin is None else check_origin(origin)
        except ValueError as error:
            raise CampaignError(str(error)) from None
        access = Access.of(host, [*own_names(), *(name or [])], token, read_only, seen)
        scheme = "https" if files else "http"
        listening = listen(host, port, access, scheme)
        out.show(
            f"Open {listening.link_to_work}",
            "Press Ctrl-C to stop. Everything that you reported is stored.",
        )
        if origin is not None:
            out.show(f"The proxy passes requests on to {listening.own_link}")
        if listening.link_to_look:
            out.show(f"To look only: {listening.link_to_look}")
        if access.everywhere and not files and origin is None:
            out.note("The connection is not encrypted: use it in a network that you trust.")
        out.result({"url": listening.link_to_work, "read_only_url": listening.link_to_look})
        answer(file, listening, files)
