"""Somebody with a browser, without a network: pages, cookies and forms of the application."""

import asyncio
import html
import re
import traceback
from dataclasses import dataclass, field
from html.parser import HTMLParser
from urllib.parse import urlencode

HOST = "127.0.0.1:8000"


@dataclass
class Answer:
    status: int
    headers: list[tuple[str, str]]
    body: bytes

    @property
    def text(self):
        return self.body.decode()

    def header(self, name):
        return next((v for k, v in self.headers if k == name.lower()), None)

    @property
    def words(self):
        """What a visitor reads."""
        return html.unescape(re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", self.text)))

    def said(self, kind="message"):
        """Texts in boxes of a kind: message, mistake."""
        pattern = rf'class="{kind}[^"]*"[^>]*>\s*(?:<p>)?(.*?)</p>'
        return [html.unescape(t.strip()) for t in re.findall(pattern, self.text, re.S)]

    @property
    def forms(self):
        parser = _Forms()
        parser.feed(self.text)
        return parser.forms


class _Forms(HTMLParser):
    """Forms by their action, with what stands in their fields."""

    def __init__(self):
        super().__init__()
        self.forms, self._open, self._select, self._text = {}, None, None, None

    def handle_starttag(self, tag, attrs):
        a = dict(attrs)
        if tag == "form":
            self._open = self.forms.setdefault(a["action"], {})
        elif tag == "button" and "formaction" in a:
            self.forms[a["formaction"]] = self._open
        elif tag == "input" and "name" in a and self._open is not None:
            if a.get("type") != "checkbox" or "checked" in a:
                self._open[a["name"]] = a.get("value", "")
        elif tag == "textarea":
            self._text = a["name"]
            self._open[self._text] = ""
        elif tag == "select":
            self._select = a["name"]
        elif tag == "option" and ("selected" in a or self._select not in self._open):
            self._open[self._select] = a.get("value", "")

    def handle_data(self, data):
        if self._text is not None:
            self._open[self._text] += data

    def handle_endtag(self, tag):
        if tag == "textarea":
            self._text = None
        if tag == "form":
            self._open = None


@dataclass
class Visitor:
    app: object
    host: str = HOST
    port: int = 8000
    cookies: dict[str, str] = field(default_factory=dict)

    def request(self, method, path, body=b"", headers=(), pieces=None):
        path, _, query = path.partition("?")
        sent = [("host", self.host), *headers]  # one without a value is not sent
        if self.cookies:
            sent.append(("cookie", "; ".join(f"{k}={v}" for k, v in self.cookies.items())))
        scope = {
            "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": method,
            "scheme": "http", "path": path, "raw_path": path.encode(), "root_path": "",
            "query_string": query.encode(), "server": ("127.0.0.1", self.port),
            "client": ("127.0.0.1", 50000),
            "headers": [(k.lower().encode(), v.encode("latin-1")) for k, v in sent if v],
        }  # fmt: skip
        answer = asyncio.run(_exchange(self.app, scope, pieces or _whole(body)))
        for name, value in answer.headers:
            if name == "set-cookie":
                key, _, rest = value.partition("=")
                self.cookies[key] = rest.partition(";")[0]
        return answer

    def get(self, path="/", **headers):
        """Open a page, as far as it leads."""
        answer = self.request("GET", path, headers=list(headers.items()))
        return self.get(answer.header("location")) if answer.status == 303 else answer

    def post(self, path, form, origin="", follow=True):
        headers = [
            ("origin", f"http://{self.host}" if origin == "" else origin),
            ("content-type", "application/x-www-form-urlencoded"),
        ]
        answer = self.request("POST", path, urlencode(form).encode(), headers)
        return self.get(answer.header("location")) if follow and answer.status == 303 else answer

    def send(self, action, page="/", **entries):
        """Open a page, fill in one of its forms, and send it; ``value`` is its only outcome."""
        form = self.get(page).forms[action]
        if "value" in entries:
            [outcome] = [name for name in form if name.startswith("outcome:")]
            entries[outcome] = entries.pop("value")
        return self.post(action, {**form, **entries})


def _whole(body):
    return [{"type": "http.request", "body": body, "more_body": False}]


async def _exchange(app, scope, pieces):
    sent, waiting = [], list(pieces)

    async def receive():
        return waiting.pop(0) if waiting else {"type": "http.disconnect"}

    async def send(message):
        sent.append(message)

    try:
        await app(scope, receive, send)
    except Exception:
        traceback.print_exc()  # pytest shows it where the test fails
        if not sent:
            raise
    start = sent[0]
    headers = [(k.decode().lower(), v.decode("latin-1")) for k, v in start["headers"]]
    body = b"".join(m.get("body", b"") for m in sent[1:])
    return Answer(start["status"], headers, body)
