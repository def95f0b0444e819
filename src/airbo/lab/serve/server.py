"""Listening: addresses, links to print, and the loop that answers."""

import signal
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import uvicorn

from airbo.lab.errors import StorageError
from airbo.lab.serve.guard import TOKEN, Access
from airbo.lab.serve.jobs import Workers
from airbo.lab.serve.live import LiveCampaign
from airbo.lab.serve.pages import make_app

WILDCARDS = ("0.0.0.0", "::")  # noqa: S104 - compared with, not bound to
"""Addresses that mean: wherever this machine is reached."""


@dataclass(frozen=True)
class Listening:
    """A socket that is open, and the links to it."""

    socket: socket.socket
    access: Access
    scheme: str
    host: str

    @property
    def port(self) -> int:
        """The port, even if any free one was requested."""
        return int(self.socket.getsockname()[1])

    @property
    def own_link(self) -> str:
        """The address of the server itself."""
        name = socket.gethostname() if self.host in WILDCARDS else self.host
        place = f"[{name}]" if ":" in name else name
        return f"{self.scheme}://{place}:{self.port}"

    def link(self, token: str | None) -> str:
        """Return the address of the page, as browsers show it."""
        ending = "" if token is None else f"?{TOKEN}={quote(token, safe='')}"
        return f"{self.access.origin or self.own_link}/{ending}"

    @property
    def link_to_work(self) -> str:
        """The link for those who work with the page."""
        return self.link(self.access.token)

    @property
    def link_to_look(self) -> str | None:
        """The link for those who only look, if there is another one."""
        if self.access.read_only or self.access.token_to_look is None:
            return None
        return self.link(self.access.token_to_look)


def listen(host: str, port: int, access: Access, scheme: str = "http") -> Listening:
    """Open a socket."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    opened = socket.socket(family)
    try:
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        opened.bind((host, port))
        opened.listen(128)
    except OSError as error:
        opened.close()
        raise StorageError(f"Cannot listen at {host}:{port}: {error.strerror}.") from None
    return Listening(opened, access, scheme, host)


def own_names() -> list[str]:
    """Return the names by which others call this machine."""
    name = socket.gethostname().lower()
    return list(dict.fromkeys([name, f"{name}.local", socket.getfqdn().lower()]))


def answer(path: Path, listening: Listening, certificate: Sequence[Path] = ()) -> None:
    """Answer requests until Ctrl-C or SIGTERM; nothing that was begun goes on afterwards."""
    workers = Workers()
    live = LiveCampaign(path, workers)
    workers.warm_up()
    # uvicorn raises the signal again when it has stopped: then the workers still have to be stopped
    signal.signal(signal.SIGTERM, _end)
    config = uvicorn.Config(
        make_app(live, listening.access),
        log_level="warning",
        access_log=False,  # addresses may hold the token
        proxy_headers=False,  # nobody else says who the visitor is
        server_header=False,
        ws="none",
        lifespan="off",
        timeout_graceful_shutdown=2,
        ssl_certfile=certificate[0] if certificate else None,
        ssl_keyfile=str(certificate[1]) if certificate else None,
    )
    try:
        uvicorn.Server(config).run(sockets=[listening.socket])
    finally:
        workers.stop()
        live.close()


def _end(*_: object) -> None:
    raise SystemExit(0)
