"""Who may come in, and what they may do: checked before anything else sees a request.

A page on this machine can be reached by every other page that the same browser has open. So the
guard asks of each request:

- Is it meant for us? The ``Host`` must be one of our own names; a foreign name that was made to
  point here (DNS rebinding) is refused.
- Who is it? Beyond this machine, a token is needed, once in the address and then in a cookie. The
  cookie holds a digest of the token: nothing that a visitor sends goes into a header.
- Does it come from our own page? What changes something must have our own ``Origin``, which every
  browser sends with every form, and no ``Sec-Fetch-Site`` that says otherwise. Programs send none:
  below ``/api`` it may be missing, but then only JSON is read, which no foreign page can send.
"""

import hashlib
import hmac
import ipaddress
import json
import re
import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from hmac import compare_digest
from http.cookies import CookieError, SimpleCookie
from typing import Any
from urllib.parse import parse_qsl, quote, unquote, unquote_to_bytes, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

VISIT = "airbo.visit"
"""Key of a request under which its sender is kept."""
TOKEN = "token"
"""Name of the token in the address, and of its cookie."""
MOST_BYTES = 1024 * 1024
"""A larger form was not filled in by a person; one may hold a table."""
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
class Access:
    """Which names the server answers to, and which tokens let visitors in."""

    names: frozenset[str] = frozenset({"localhost"})
    """Names of this machine, in lower case."""
    everywhere: bool = False
    """Whether other machines may connect by any IP address; DNS rebinding needs a name."""
    token: str | None = None
    """Token of those who work; None if none is needed."""
    read_only: bool = False
    """Whether everybody may only look."""
    origin: str | None = None
    """The address that browsers see where a proxy stands before the server; None: no proxy."""

    @classmethod
    def of(
        cls,
        host: str,
        names: Iterable[str] = (),
        token: str | None = None,
        read_only: bool = False,
        origin: str | None = None,
    ) -> "Access":
        """Return the rules for an address to listen at; beyond this machine there is a token.

        Args:
            host: The address.
            names: Other names of this machine.
            token: The token; None: a random one where one is needed.
            read_only: Whether everybody may only look.
            origin: The address that browsers see, such as ``https://lab.example``, where a proxy
                stands before the server.
        """
        own = {"localhost", *(name.lower() for name in names)}
        if _address(host) is None:
            own.add(host.lower())
        public = None if origin is None else urlsplit(origin).hostname or ""
        if public is not None and _address(public) is None:
            own.add(public)
        everywhere = not is_loopback(host)
        if token is None and (everywhere or not (public is None or is_loopback(public))):
            token = secrets.token_urlsafe(24)
        return cls(frozenset(own), everywhere, token, read_only, origin)

    @property
    def token_to_look(self) -> str | None:
        """Token of those who only look; the same token makes the same one after a restart."""
        return None if self.token is None else _digest(self.token, "look")[:32]

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

    def is_own(self, origin: str, scheme: str, host: str) -> bool:
        """Say whether an ``Origin`` header means a page of ours."""
        own = self.origin if self.origin is not None else f"{scheme}://{host}"
        return origin.lower() == own.lower()

    def cookie(self, token: bytes) -> str | None:
        """Return what a token in the address becomes; None if it is not one of ours."""
        ours = (self.token, self.token_to_look)
        found = [own for own in ours if own is not None and compare_digest(token, own.encode())]
        return _digest(found[0], "cookie") if found else None

    def role(self, cookie: str | None) -> str | None:
        """Say what a cookie allows: ``work``, ``look``, or nothing."""
        if self.token is None:
            return "look" if self.read_only else "work"
        given = (cookie or "").encode()
        if compare_digest(given, _digest(self.token, "cookie").encode()):
            return "look" if self.read_only else "work"
        assert self.token_to_look is not None
        to_look = _digest(self.token_to_look, "cookie").encode()
        return "look" if compare_digest(given, to_look) else None


def check_origin(text: str) -> str:
    """Return an address like ``https://lab.example`` in the form that browsers send it.

    Raises:
        ValueError: If it is not one.
    """
    try:
        parts = urlsplit(text)
        port = "" if parts.port is None else f":{parts.port}"
    except ValueError:
        parts, port = urlsplit(""), ""
    host = parts.hostname or ""
    is_whole = parts.path in ("", "/") and not (parts.query or parts.fragment or parts.username)
    if parts.scheme not in ("http", "https") or not host or not host.isascii() or not is_whole:
        raise ValueError(
            f"The origin is the address that browsers show, such as https://lab.example, "
            f"without a path; got {text!r}."
        )
    usual = {"http": ":80", "https": ":443"}[parts.scheme]
    place = f"[{host}]" if ":" in host else host
    return f"{parts.scheme}://{place}{'' if port == usual else port}"


def _digest(token: str, purpose: str) -> str:
    return hmac.new(token.encode(), f"airbo serve: {purpose}".encode(), hashlib.sha256).hexdigest()


@dataclass(frozen=True)
class Visit:
    """Who sent a request, and what the form holds."""

    role: str
    session: str
    form: Mapping[str, str] = field(default_factory=dict)
    name: str = ""
    """Name with which the visitor signs changes."""
    body: Any = None
    """What a program sent as JSON."""
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

    def __init__(self, app: ASGIApp, access: Access) -> None:
        """Stand before an application."""
        self.app, self.access = app, access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request in, or answer it."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
        elif scope["type"] == "http":
            await self._http(scope, receive, send)

    async def _http(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = Headers(scope=scope)
        cookies = self._cookies(scope, headers)
        session = cookies.get("session", "")
        fresh = {} if _SESSION.fullmatch(session) else {"session": secrets.token_urlsafe(16)}
        session = fresh.get("session", session)
        answer: ASGIApp = self.app
        try:
            hosts = headers.getlist("host")
            if len(hosts) != 1 or not self.access.answers_to(hosts[0]):
                raise Refused(403, _UNKNOWN)
            entering = self._entering(scope)
            if entering is not None:
                answer, fresh = entering
            else:
                visit = self._visit(scope, headers, cookies, session)
                scope[VISIT] = await self._let_in(scope, headers, receive, visit)
        except Refused as refusal:
            answer = _refusal(refusal, is_api(scope))
        await answer(scope, receive, self._decorated(scope, send, fresh))

    # -- is it meant for us, and who is it

    def _entering(self, scope: Scope) -> tuple[Response, dict[str, str]] | None:
        """Turn a token in the address into a cookie, so that it does not stay in sight."""
        pairs = [part.partition(b"=") for part in scope["query_string"].split(b"&")]
        given = [value.replace(b"+", b" ") for name, _, value in pairs if name == TOKEN.encode()]
        if not given or scope["method"] not in ("GET", "HEAD") or self.access.token is None:
            return None
        cookie = self.access.cookie(unquote_to_bytes(given[-1]))
        if cookie is None:
            raise Refused(403, _NEEDS_TOKEN)
        path = "/" + quote(scope["path"].lstrip("/"), errors="replace")  # never //elsewhere
        fresh = {TOKEN: cookie, "session": secrets.token_urlsafe(16)}
        return RedirectResponse(path, 303), fresh

    def _visit(
        self, scope: Scope, headers: Headers, cookies: Mapping[str, str], session: str
    ) -> Visit:
        kind, _, token = headers.get("authorization", "").partition(" ")
        is_bearer = is_api(scope) and kind.lower() == "bearer" and self.access.token is not None
        bearer = self.access.cookie(token.strip().encode("latin-1")) if is_bearer else None
        role = self.access.role(bearer if is_bearer else cookies.get(TOKEN))
        if role is None:
            raise Refused(401, _NEEDS_TOKEN)
        name = unquote(cookies.get("name", ""))[:40]
        return Visit(role, session, name=name, name_cookie=_cookie_name(scope, "name"))

    # -- may it change something

    async def _let_in(
        self, scope: Scope, headers: Headers, receive: Receive, visit: Visit
    ) -> Visit:
        if scope["method"] in ("GET", "HEAD"):
            return visit
        if scope["method"] != "POST":
            raise Refused(405, "Only GET and POST are understood.")
        is_program = is_api(scope) and not {"origin", "sec-fetch-site"} & {*headers.keys()}
        if not is_program:
            self._check_origin(scope, headers)
        body = await _json(headers, receive) if is_api(scope) else None
        if not visit.may_change and scope["path"] not in ASKING:
            raise Refused(403, "This page only shows the campaign. Nothing was changed.")
        if is_api(scope):
            return replace(visit, body=body)
        return replace(visit, form=await _form(headers, receive))

    def _check_origin(self, scope: Scope, headers: Headers) -> None:
        origins, fetched = headers.getlist("origin"), headers.getlist("sec-fetch-site")
        host = headers.get("host", "")
        is_own = len(origins) == 1 and self.access.is_own(origins[0], scope["scheme"], host)
        # browsers send Sec-Fetch-Site only by https and to this machine
        if not is_own or any(site not in ("same-origin", "none") for site in fetched):
            raise Refused(403, f"This came from another page. Nothing was changed.{_PROXY}")

    # -- cookies and headers

    def _cookies(self, scope: Scope, headers: Headers) -> dict[str, str]:
        try:
            found = SimpleCookie(headers.get("cookie", ""))
        except CookieError:
            return {}
        names = {name: _cookie_name(scope, name) for name in ("session", TOKEN, "name")}
        return {name: found[own].value for name, own in names.items() if own in found}

    def _cookie(self, scope: Scope, name: str, value: str) -> str:
        seen = self.access.origin or scope["scheme"]
        secure = "; Secure" if seen.startswith("https") else ""
        return (
            f"{_cookie_name(scope, name)}={value}; Path=/; Max-Age={COOKIE_SECONDS}; HttpOnly; "
            f"SameSite=Lax{secure}"
        )

    def _decorated(self, scope: Scope, send: Send, cookies: Mapping[str, str]) -> Send:
        async def decorated(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
                headers.setdefault("Cache-Control", "no-store")
                for name, value in cookies.items():
                    headers.append("Set-Cookie", self._cookie(scope, name, value))
            await send(message)

        return decorated


_UNKNOWN = (
    "This address is not known here. Use the address that `airbo serve` printed; --name adds "
    "another name of this machine."
)
_SESSION = re.compile(r"[\w-]{22}", re.ASCII)
_PROXY = " If a proxy is in front of this page, start it with: airbo serve --origin https://..."
_NEEDS_TOKEN = (
    "This page needs a token. Open the link that `airbo serve` printed: it ends with ?token=..."
)


ASKING = ("/api/recommend", "/api/predict", "/api/status")
"""What programs may send without changing anything."""


def is_api(scope: Scope) -> bool:
    """Say whether a request comes from a program."""
    return scope["path"] == "/api" or scope["path"].startswith("/api/")


def _refusal(refusal: Refused, is_api: bool) -> Response:
    headers = {"Allow": "GET, POST"} if refusal.status == 405 else None
    if is_api:
        return JSONResponse({"error": str(refusal)}, refusal.status, headers)
    return PlainTextResponse(f"{refusal}\n", refusal.status, headers)


def _cookie_name(scope: Scope, name: str) -> str:
    """Name a cookie by the port: a browser sends it to all ports of a host."""
    server: Any = scope.get("server")
    return f"airbo-{name}-{server[1] if server else 0}"


async def _form(headers: Headers, receive: Receive) -> dict[str, str]:
    """Read a form as browsers send it; it is short."""
    _check_kind(headers, "application/x-www-form-urlencoded", "Only forms are understood.")
    try:
        text = (await _body(receive)).decode()
        return dict(parse_qsl(text, keep_blank_values=True, max_num_fields=MOST_FIELDS))
    except ValueError:
        raise Refused(400, "This form cannot be read.") from None


async def _json(headers: Headers, receive: Receive) -> Any:
    """Read what a program sends."""
    said = "Only JSON is understood: Content-Type: application/json."
    _check_kind(headers, "application/json", said)
    try:
        return json.loads(await _body(receive) or b"{}", parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        raise Refused(400, "This is no JSON. Nothing was changed.") from None


def _refuse_constant(number: str) -> None:
    raise ValueError(number)


def _check_kind(headers: Headers, kind: str, said: str) -> None:
    if headers.get("content-type", "").partition(";")[0].strip().lower() != kind:
        raise Refused(415, said)


async def _body(receive: Receive) -> bytes:
    body = b""
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":  # a part of a number is another number
            raise Refused(400, "Only a part of the form arrived. Nothing was changed.")
        body += message.get("body", b"")
        if len(body) > MOST_BYTES:
            raise Refused(413, "This form is too long.")
        if not message.get("more_body"):
            return body
