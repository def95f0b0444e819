"""Who may come in, and what they may do: checked before anything else sees a request.

A page on this machine can be reached by every other page that the same browser has open. So the
guard asks of each request:

- Is it meant for us? The ``Host`` must be one of our own names; a foreign name that was made to
  point here (DNS rebinding) is refused.
- Who is it? Beyond this machine, a token is needed, once in the address and then in a cookie.
- Does it come from our own page? What changes something must have our own ``Origin`` and carry the
  CSRF token of the visitor.
"""

import hashlib
import hmac
import ipaddress
import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from http.cookies import CookieError, SimpleCookie
from typing import Any
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

VISIT = "airbo.visit"
"""Key of a request under which its sender is kept."""
CSRF, TOKEN = "csrf", "token"
MOST_BYTES = 64 * 1024
"""A larger form was not filled in by a person."""
MOST_FIELDS = 500
COOKIE_SECONDS = 30 * 24 * 3600

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)
POLICY_FOR_CHARTS = POLICY.replace("style-src 'self'", "style-src 'self' 'unsafe-inline'")
"""Plotly sets styles; it needs nothing else."""
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    # not "no-referrer": browsers would then send our own forms with `Origin: null`
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), microphone=(), geolocation=()",
}


def is_loopback(host: str) -> bool:
    """Say whether only this machine reaches an address."""
    address = _address(host)
    return host.lower() == "localhost" or (address is not None and address.is_loopback)


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        return None


@dataclass(frozen=True)
class Doors:
    """Which names the server answers to, and which tokens open it."""

    names: frozenset[str] = frozenset({"localhost"})
    """Names of this machine, in lower case."""
    everywhere: bool = False
    """Whether other machines may connect by any IP address; DNS rebinding needs a name."""
    token: str | None = None
    """Token of those who work; None if none is needed."""
    token_to_look: str | None = None
    """Token of those who only look."""
    read_only: bool = False
    """Whether everybody may only look."""
    key: bytes = field(default_factory=lambda: secrets.token_bytes(32), repr=False)
    """Key that CSRF tokens are made with."""

    @classmethod
    def of(
        cls,
        host: str,
        names: Iterable[str] = (),
        token: str | None = None,
        read_only: bool = False,
    ) -> "Doors":
        """Open the doors for an address to listen at; beyond this machine there is a token."""
        everywhere = not is_loopback(host)
        if everywhere and token is None:
            token = secrets.token_urlsafe(24)
        own = {"localhost", *(name.lower() for name in names)}
        if _address(host) is None:
            own.add(host.lower())
        doors = cls(frozenset(own), everywhere, token, read_only=read_only)
        if token is None:
            return doors
        # the same token makes the same keys, so that open pages survive a restart
        return replace(
            doors, key=_derived(token, "key").encode(), token_to_look=_derived(token, "look")[:32]
        )

    def answers_to(self, host: str | None) -> bool:
        """Say whether a ``Host`` header means us."""
        try:
            name = urlsplit(f"//{host}").hostname or ""
        except ValueError:
            return False
        address = _address(name)
        if address is not None:
            return self.everywhere or address.is_loopback
        return name in self.names

    def role(self, token: str | None) -> str | None:
        """Say what a token opens: ``work``, ``look``, or nothing."""
        if self.token is None or _same(token, self.token):
            return "look" if self.read_only else "work"
        return "look" if _same(token, self.token_to_look) else None

    def csrf(self, session: str) -> str:
        """Return what the forms of a visitor carry."""
        return hmac.new(self.key, session.encode(), hashlib.sha256).hexdigest()


def _derived(token: str, purpose: str) -> str:
    return hmac.new(token.encode(), f"airbo serve: {purpose}".encode(), hashlib.sha256).hexdigest()


def _same(given: str | None, expected: str | None) -> bool:
    if given is None or expected is None:
        return False
    return hmac.compare_digest(given.encode(), expected.encode())


@dataclass(frozen=True)
class Visit:
    """Who sent a request, and what the form holds."""

    role: str
    session: str
    csrf: str
    form: Mapping[str, str] = field(default_factory=dict)
    is_stale: bool = False
    """Whether the form is our own, and from before the server was started again."""
    name: str = ""
    """Name with which the visitor signs changes."""
    name_cookie: str = ""
    """Where the browser keeps that."""

    @property
    def may_change(self) -> bool:
        """Whether this visitor works, and does not only look."""
        return self.role == "work"


class Refused(Exception):
    """A request that is not let in."""

    def __init__(self, status: int, text: str) -> None:
        """Say why."""
        super().__init__(text)
        self.status = status


class Guard:
    """Lets requests in, or not; adds security headers to every answer."""

    def __init__(self, app: ASGIApp, doors: Doors) -> None:
        """Stand before an application."""
        self.app, self.doors = app, doors

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request in, or answer it."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
        elif scope["type"] == "http":
            await self._http(scope, receive, send)

    async def _http(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = Headers(scope=scope)
        cookies = self._cookies(scope, headers)
        session = cookies.get("session") or secrets.token_urlsafe(16)
        fresh = {} if "session" in cookies else {"session": session}
        answer: ASGIApp = self.app
        try:
            self._check_host(headers)
            entering = self._entering(scope)
            if entering is not None:
                answer, fresh = entering
            else:
                name = unquote(cookies.get("name", ""))[:40]
                visit = self._visit(cookies, session)
                visit = replace(visit, name=name, name_cookie=_cookie_name(scope, "name"))
                scope[VISIT] = await self._let_in(scope, headers, receive, visit)
        except Refused as refusal:
            answer = _refusal(refusal)
        await answer(scope, receive, self._decorated(scope, send, fresh))

    # -- is it meant for us, and who is it

    def _check_host(self, headers: Headers) -> None:
        hosts = headers.getlist("host")
        if len(hosts) != 1 or not self.doors.answers_to(hosts[0]):
            raise Refused(
                403,
                "This address is not known here. Use the address that `airbo serve` printed; "
                "--name adds another name of this machine.",
            )

    def _entering(self, scope: Scope) -> tuple[Response, dict[str, str]] | None:
        """Turn a token in the address into a cookie, so that it does not stay in sight."""
        query = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        given = [value for name, value in query if name == TOKEN]
        if not given or scope["method"] not in ("GET", "HEAD"):
            return None
        if self.doors.role(given[-1]) is None:
            raise Refused(403, _NEEDS_TOKEN)
        rest = urlencode([(name, value) for name, value in query if name != TOKEN])
        path = "/" + quote(scope["path"].lstrip("/"))  # never //elsewhere
        response = RedirectResponse(f"{path}?{rest}" if rest else path, 303)
        return response, {TOKEN: given[-1], "session": secrets.token_urlsafe(16)}

    def _visit(self, cookies: Mapping[str, str], session: str) -> Visit:
        role = self.doors.role(cookies.get(TOKEN))
        if role is None:
            raise Refused(401, _NEEDS_TOKEN)
        return Visit(role, session, self.doors.csrf(session))

    # -- may it change something

    async def _let_in(
        self, scope: Scope, headers: Headers, receive: Receive, visit: Visit
    ) -> Visit:
        if scope["method"] in ("GET", "HEAD"):
            return visit
        if scope["method"] != "POST":
            raise Refused(405, "Only GET and POST are understood.")
        self._check_origin(scope, headers)
        if not visit.may_change:
            raise Refused(403, "This page only shows the campaign. Nothing was changed.")
        form = await _form(headers, receive)
        return replace(visit, form=form, is_stale=not _same(form.get(CSRF), visit.csrf))

    def _check_origin(self, scope: Scope, headers: Headers) -> None:
        own = f"{scope['scheme']}://{headers.get('host', '')}".lower()
        fetched = headers.get("sec-fetch-site", "same-origin")
        if headers.get("origin", "").lower() != own or fetched not in ("same-origin", "none"):
            raise Refused(403, "This came from another page. Nothing was changed.")

    # -- cookies and headers

    def _cookies(self, scope: Scope, headers: Headers) -> dict[str, str]:
        try:
            found = SimpleCookie(headers.get("cookie", ""))
        except CookieError:
            return {}
        names = {name: _cookie_name(scope, name) for name in ("session", TOKEN, "name")}
        return {name: found[own].value for name, own in names.items() if own in found}

    def _decorated(self, scope: Scope, send: Send, cookies: Mapping[str, str]) -> Send:
        async def decorated(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
                headers.setdefault("Cache-Control", "no-store")
                for name, value in cookies.items():
                    headers.append("Set-Cookie", _cookie(scope, name, value))
            await send(message)

        return decorated


_NEEDS_TOKEN = (
    "This page needs a token. Open the link that `airbo serve` printed: it ends with ?token=..."
)


def _refusal(refusal: Refused) -> Response:
    return PlainTextResponse(f"{refusal}\n", refusal.status)


def _cookie_name(scope: Scope, name: str) -> str:
    """Name a cookie by the port: a browser sends it to all ports of a host."""
    server: Any = scope.get("server")
    return f"airbo-{name}-{server[1] if server else 0}"


def _cookie(scope: Scope, name: str, value: str) -> str:
    secure = "; Secure" if scope["scheme"] == "https" else ""
    return (
        f"{_cookie_name(scope, name)}={value}; Path=/; Max-Age={COOKIE_SECONDS}; HttpOnly; "
        f"SameSite=Lax{secure}"
    )


async def _form(headers: Headers, receive: Receive) -> dict[str, str]:
    """Read a form as browsers send it; it is short."""
    kind = headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/x-www-form-urlencoded":
        raise Refused(415, "Only forms are understood.")
    body = b""
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":  # a part of a number is another number
            raise Refused(400, "Only a part of the form arrived. Nothing was changed.")
        body += message.get("body", b"")
        if len(body) > MOST_BYTES:
            raise Refused(413, "This form is too long.")
        if not message.get("more_body"):
            break
    try:
        pairs = parse_qsl(body.decode(), keep_blank_values=True, max_num_fields=MOST_FIELDS)
    except ValueError:
        raise Refused(400, "This form cannot be read.") from None
    return dict(pairs)
