"""Who gets in, and who does not."""

import pytest

from airbo import Campaign
from airbo.serve.guard import MOST_BYTES, Doors, is_loopback
from airbo.serve.web import make_app
from tests.serve.client import Visitor

PAGES = ["/", "/charts", "/experiments", "/history", "/live"]
POSTS = ["/ask", "/add", "/undo", "/name", "/tell/0", "/fail/0", "/give-up/0", "/note/0",
         "/exclude/0", "/include/0"]  # fmt: skip
TOKEN = "a-token-of-the-lab"


def everywhere(desk, **settings):
    return make_app(desk, Doors.of("0.0.0.0", ["lab-pc"], TOKEN, **settings))


def n_experiments(desk):
    desk.wait()
    return len(Campaign.open(desk.path).experiments)


# -- Host


def test_names_of_this_machine_are_answered(app):
    for host in ("127.0.0.1:8000", "localhost:8000", "[::1]:8000", "LOCALHOST", "127.0.0.1"):
        assert Visitor(app, host).get().status == 200, host


FOREIGN = [
    "evil.example", "evil.example:8000", "127.0.0.1.evil.example", "192.168.1.5", "", "[::1", "a b",
    "localhost@evil.example", "127.0.0.1:8000@evil.example", "0x7f000001.evil.example", None,
]  # fmt: skip


def test_a_foreign_name_that_points_here_is_refused(app):
    for host in FOREIGN:
        for path in PAGES:
            answer = Visitor(app, host).request("GET", path)
            assert answer.status == 403, (host, path)
            assert "milling" not in answer.text


def test_two_hosts_in_one_request_are_refused(app):
    assert Visitor(app).request("GET", "/", headers=[("host", "evil.example")]).status == 403


def test_beyond_this_machine_its_names_and_addresses_count(desk):
    app = everywhere(desk)
    for host in ("lab-pc:8000", "192.168.1.5:8000", "[fe80::1]:8000", "localhost"):
        assert Visitor(app, host).get(f"/?token={TOKEN}").status == 200
    assert Visitor(app, "evil.example").get(f"/?token={TOKEN}").status == 403


# -- Origin and CSRF


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "null", "https://127.0.0.1:8000", "http://127.0.0.1:9000",
               "http://localhost:8000", "http://127.0.0.1:8000.evil.example", None, "file://"],
)  # fmt: skip
def test_a_form_from_elsewhere_changes_nothing(ann, desk, origin):
    form = ann.get().forms["/ask"]
    assert ann.post("/ask", form, origin=origin).status == 403
    assert n_experiments(desk) == 0


def test_a_browser_that_says_cross_site_is_believed(ann, desk):
    headers = [
        ("origin", "http://127.0.0.1:8000"),
        ("sec-fetch-site", "cross-site"),
        ("content-type", "application/x-www-form-urlencoded"),
    ]
    assert ann.request("POST", "/ask", b"n=1", headers).status == 403


@pytest.mark.parametrize("path", POSTS)
def test_without_the_token_of_its_own_page_no_form_changes_anything(ann, bob, desk, path):
    theirs = bob.get().forms["/ask"]["csrf"]
    before = Campaign.open(desk.path).history()
    for csrf in ({}, {"csrf": ""}, {"csrf": "0" * 64}, {"csrf": theirs}):
        ann.post(path, {"n": "1", "value": "1", **csrf})
    assert n_experiments(desk) == 0
    assert Campaign.open(desk.path).history() == before


def test_a_form_from_before_a_restart_is_shown_again_with_its_entries(desk, ann):
    ann.send("/ask")
    desk.wait()
    form = ann.get().forms["/tell/0"] | {"value": "1.5"}
    ann.app = make_app(desk, Doors.of("127.0.0.1"))
    page = ann.post("/tell/0", form)
    assert page.status == 422
    assert "started again" in page.words
    assert page.forms["/tell/0"]["value"] == "1.5"
    assert "1.5 µm" in ann.post("/tell/0", page.forms["/tell/0"]).said()[0]


def test_with_a_token_that_stays_open_pages_survive_a_restart(desk):
    ann = Visitor(everywhere(desk), "lab-pc:8000")
    form = ann.get(f"/?token={TOKEN}").forms["/ask"]
    ann.app = everywhere(desk)
    assert ann.post("/ask", form).status == 200
    assert n_experiments(desk) == 1


def test_other_methods_are_refused(ann):
    for method in ("PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"):
        assert ann.request(method, "/").status == 405, method


def test_a_form_that_is_too_long_cut_off_or_no_form_is_refused(ann, desk):
    kind = ("content-type", "application/x-www-form-urlencoded")
    own = ("origin", "http://127.0.0.1:8000")
    assert ann.request("POST", "/ask", b"n=" + b"1" * MOST_BYTES, [own, kind]).status == 413
    assert ann.request("POST", "/ask", b"n=1", [own, ("content-type", "text/plain")]).status == 415
    assert ann.request("POST", "/ask", b"&".join([b"a=1"] * 600), [own, kind]).status == 400
    assert ann.request("POST", "/ask", b"\xff\xfe=1", [own, kind]).status == 400
    csrf = ann.get().forms["/ask"]["csrf"]
    cut = [{"type": "http.request", "body": f"csrf={csrf}&n=1".encode(), "more_body": True}]
    assert ann.request("POST", "/ask", headers=[own, kind], pieces=cut).status == 400
    assert n_experiments(desk) == 0


# -- tokens


@pytest.mark.parametrize("token", [None, "", "wrong", TOKEN[:-1], TOKEN + "x", "ä"])
def test_beyond_this_machine_nothing_is_shown_without_the_token(desk, token):
    app = everywhere(desk)
    for path in [*PAGES, "/static/0/serve.js", "/experiment/0", "/nothing"]:
        stranger = Visitor(app, "lab-pc:8000")
        answer = stranger.request("GET", path if token is None else f"{path}?token={token}")
        assert answer.status == (401 if token is None else 403), path
        assert "milling" not in answer.text
        stranger.cookies["airbo-token-8000"] = token or "none"
        assert stranger.request("GET", path).status == 401


def test_a_token_in_the_address_becomes_a_cookie_and_leaves_the_address(desk):
    ann = Visitor(everywhere(desk), "lab-pc:8000")
    answer = ann.request("GET", f"/history?token={TOKEN}&a=1")
    assert (answer.status, answer.header("location")) == (303, "/history?a=1")
    assert "HttpOnly" in answer.header("set-cookie")
    assert "SameSite=Lax" in answer.header("set-cookie")
    page = ann.get("/")
    assert page.status == 200
    assert TOKEN not in page.text


def test_entering_leads_nowhere_else(desk):
    answer = Visitor(everywhere(desk), "lab-pc").request("GET", f"//evil.example/?token={TOKEN}")
    assert answer.header("location") == "/evil.example/"


def test_any_other_address_than_this_machine_has_a_token():
    assert Doors.of("127.0.0.1").token is None
    for host in ("0.0.0.0", "::", "192.168.1.5", "lab-pc"):
        doors = Doors.of(host)
        assert len(doors.token) >= 32
        assert doors.role(None) is doors.role("") is None
    assert Doors.of("0.0.0.0").token != Doors.of("0.0.0.0").token


@pytest.mark.parametrize(
    ("host", "inside"),
    [("127.0.0.1", True), ("127.8.9.1", True), ("::1", True), ("localhost", True),
     ("0.0.0.0", False), ("::", False), ("192.168.0.1", False), ("localhost.evil", False)],
)  # fmt: skip
def test_loopback_is_recognized(host, inside):
    assert is_loopback(host) is inside


# -- only looking


def test_who_only_looks_changes_nothing(desk):
    worker = Visitor(everywhere(desk), "lab-pc")
    form = worker.get(f"/?token={TOKEN}").forms["/ask"]
    boss = Visitor(everywhere(desk, read_only=True), "lab-pc", cookies=dict(worker.cookies))
    assert boss.get().status == 200
    for path in POSTS:
        assert boss.post(path, form).status == 403, path
    assert n_experiments(desk) == 0


def test_the_link_to_look_shows_all_pages_without_forms(desk):
    desk.ask()
    desk.wait()
    doors = Doors.of("0.0.0.0", ["lab-pc"], TOKEN)
    boss = Visitor(make_app(desk, doors), "lab-pc")
    assert boss.get(f"/?token={doors.token_to_look}").status == 200
    for path in ["/", "/charts", "/experiments", "/history", "/experiment/0"]:
        page = boss.get(path)
        assert "read only" in page.words
        assert not page.forms
    assert doors.token_to_look != doors.token
    assert boss.post("/ask", {"csrf": doors.csrf(boss.cookies["airbo-session-8000"])}).status == 403


# -- headers


@pytest.mark.parametrize("path", [*PAGES, "/nothing", "/static/0/serve.css"])
def test_every_answer_has_its_security_headers(ann, path):
    answer = ann.request("GET", path)
    policy = answer.header("content-security-policy")
    assert "default-src 'none'" in policy
    assert "script-src 'self';" in policy
    assert "frame-ancestors 'none'" in policy
    assert ("unsafe-inline" in policy) is (path == "/charts")
    assert "unsafe-eval" not in policy
    assert answer.header("x-content-type-options") == "nosniff"
    assert answer.header("referrer-policy") == "same-origin"
    if not path.startswith("/static"):
        assert answer.header("cache-control") == "no-store"
    assert answer.header("access-control-allow-origin") is None


def test_something_that_breaks_says_nothing_about_the_inside(app, ann, desk, monkeypatch):
    monkeypatch.setattr(desk, "snapshot", lambda: 1 / 0)
    answer = ann.request("GET", "/")
    assert answer.status == 500
    assert "division" not in answer.text
    assert answer.header("content-security-policy")


def test_only_known_files_are_sent(ann):
    assert ann.get("/static/0/serve.js").status == 200
    for name in ("..%2f..%2fcampaign.toml", "web.py", "../web.py", "templates"):
        assert ann.get(f"/static/0/{name}").status == 404


def test_plotly_comes_from_the_package_and_is_packed(ann):
    answer = ann.get("/static/0/plotly.js", **{"accept-encoding": "gzip, br"})
    assert answer.header("content-encoding") == "gzip"
    assert len(answer.body) < 2_000_000
