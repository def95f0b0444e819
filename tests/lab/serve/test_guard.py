"""Who gets in, and who does not."""

import random
import re
import string

import pytest

from airbo.lab import Campaign
from airbo.lab.serve.guard import MOST_BYTES, Access, check_origin, is_loopback
from airbo.lab.serve.pages import make_app
from airbo.lab.serve.server import Listening, listen
from tests.lab.serve.client import Visitor

PAGES = ["/", "/report", "/experiments", "/history", "/run-sheet", "/live"]
POSTS = ["/ask", "/add", "/undo", "/name", "/tell/0", "/fail/0", "/give-up/0", "/note/0",
         "/exclude/0", "/include/0", "/import"]  # fmt: skip
TOKEN = "a-token-of-the-lab"
VALUE = "outcome:roughness"


def everywhere(live, **settings):
    return make_app(live, Access.of("0.0.0.0", ["lab-pc"], TOKEN, **settings))


def n_experiments(live):
    live.wait()
    return len(Campaign.open(live.path).experiments)


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


def test_beyond_this_machine_its_names_and_addresses_count(live):
    app = everywhere(live)
    for host in ("lab-pc:8000", "192.168.1.5:8000", "[fe80::1]:8000", "localhost"):
        assert Visitor(app, host).get(f"/?token={TOKEN}").status == 200
    assert Visitor(app, "evil.example").get(f"/?token={TOKEN}").status == 403


# -- Origin


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "null", "https://127.0.0.1:8000", "http://127.0.0.1:9000",
               "http://localhost:8000", "http://127.0.0.1:8000.evil.example", None, "file://"],
)  # fmt: skip
def test_a_form_from_elsewhere_changes_nothing(ann, live, origin):
    form = ann.get().forms["/ask"]
    assert ann.post("/ask", form, origin=origin).status == 403
    assert n_experiments(live) == 0


def test_a_browser_that_says_cross_site_is_believed(ann, live):
    headers = [
        ("origin", "http://127.0.0.1:8000"),
        ("sec-fetch-site", "cross-site"),
        ("content-type", "application/x-www-form-urlencoded"),
    ]
    assert ann.request("POST", "/ask", b"n=1", headers).status == 403


def test_a_form_from_before_a_restart_counts(live, ann):
    ann.send("/ask")
    live.wait()
    form = ann.get().forms["/tell/0"] | {VALUE: "1.5"}
    ann.app = make_app(live, Access.of("127.0.0.1"))
    assert ann.post("/tell/0", form).said() == ["Experiment 0: 1.5 µm."]


def test_with_a_token_that_stays_open_pages_survive_a_restart(live):
    ann = Visitor(everywhere(live), "lab-pc:8000")
    form = ann.get(f"/?token={TOKEN}").forms["/ask"]
    ann.app = everywhere(live)
    assert ann.post("/ask", form).status == 200
    assert n_experiments(live) == 1


def test_other_methods_are_refused(ann):
    for method in ("PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"):
        assert ann.request(method, "/").status == 405, method


def test_a_form_that_is_too_long_cut_off_or_no_form_is_refused(ann, live):
    kind = ("content-type", "application/x-www-form-urlencoded")
    own = ("origin", "http://127.0.0.1:8000")
    assert ann.request("POST", "/ask", b"n=" + b"1" * MOST_BYTES, [own, kind]).status == 413
    assert ann.request("POST", "/ask", b"n=1", [own, ("content-type", "text/plain")]).status == 415
    assert ann.request("POST", "/ask", b"&".join([b"a=1"] * 600), [own, kind]).status == 400
    assert ann.request("POST", "/ask", b"\xff\xfe=1", [own, kind]).status == 400
    cut = [{"type": "http.request", "body": b"n=1", "more_body": True}]
    assert ann.request("POST", "/ask", headers=[own, kind], pieces=cut).status == 400
    assert n_experiments(live) == 0


# -- tokens


@pytest.mark.parametrize("token", [None, "", "wrong", TOKEN[:-1], TOKEN + "x", "ä"])
def test_beyond_this_machine_nothing_is_shown_without_the_token(live, token):
    app = everywhere(live)
    for path in [*PAGES, "/static/0/serve.js", "/experiment/0", "/nothing"]:
        stranger = Visitor(app, "lab-pc:8000")
        answer = stranger.request("GET", path if token is None else f"{path}?token={token}")
        assert answer.status == (401 if token is None else 403), path
        assert "milling" not in answer.text
        stranger.cookies["airbo-token-8000"] = token or "none"
        assert stranger.request("GET", path).status == 401


def test_a_token_in_the_address_becomes_a_cookie_and_leaves_the_address(live):
    ann = Visitor(everywhere(live), "lab-pc:8000")
    answer = ann.request("GET", f"/history?token={TOKEN}&a=1")
    assert (answer.status, answer.header("location")) == (303, "/history")
    assert "HttpOnly" in answer.header("set-cookie")
    assert "SameSite=Lax" in answer.header("set-cookie")
    page = ann.get("/")
    assert page.status == 200
    assert TOKEN not in page.text


ODD_TOKENS = ["x; Domain=evil", 'a+/=;&% "b', "€ and ä", "a b", "x\r\nSet-Cookie: y=1"]


@pytest.mark.parametrize("token", ODD_TOKENS)
def test_any_token_makes_a_link_that_works_and_no_header_of_its_own(live, token):
    access = Access.of("0.0.0.0", ["lab-pc"], token)
    with listen("127.0.0.1", 0, access).socket as opened:
        link = Listening(opened, access, "http", "lab-pc").link_to_work
    ann = Visitor(make_app(live, access), "lab-pc")
    answer = ann.request("GET", "/" + link.rpartition("/")[2])
    assert answer.status == 303
    for name, value in answer.headers:
        if name == "set-cookie":
            assert re.fullmatch(r"airbo-(token|session)-8000=[\w-]+; Path=/; .*SameSite=Lax", value)
            assert "evil" not in value
    assert ann.get().status == 200


@pytest.mark.parametrize(
    "query",
    ["token=x;%20Domain=evil", "token=%E2%82%AC", "token=%ff", "token=%00", "token", "token="],
)
def test_a_token_that_is_not_ours_is_refused_whatever_it_is(live, query):
    answer = Visitor(everywhere(live), "lab-pc").request("GET", f"/?{query}")
    assert answer.status == 403
    assert not [v for n, v in answer.headers if n == "set-cookie" and "token" in v]


def test_a_cookie_that_holds_the_token_itself_opens_nothing(live):
    stranger = Visitor(everywhere(live), "lab-pc", cookies={"airbo-token-8000": TOKEN})
    assert stranger.request("GET", "/").status == 401


def test_a_session_that_a_visitor_made_up_is_replaced(live):
    ann = Visitor(everywhere(live), "lab-pc", cookies={"airbo-session-8000": "x" * 4000})
    ann.get(f"/?token={TOKEN}")
    assert len(ann.cookies["airbo-session-8000"]) == 22


# -- behind a proxy that ends TLS


ORIGIN = "https://lab.example"


@pytest.mark.parametrize("host", ["lab.example", "127.0.0.1:8000"])  # passed on, or not
def test_behind_a_proxy_its_origin_counts_and_a_token_is_needed(live, host):
    access = Access.of("127.0.0.1", origin=ORIGIN)
    app = make_app(live, access)
    assert Visitor(app, host).get().status == 401
    ann = Visitor(app, host)
    answer = ann.request("GET", f"/?token={access.token}")
    assert answer.header("set-cookie").endswith("; Secure")
    form = ann.get().forms["/ask"]
    assert ann.post("/ask", form, origin="http://127.0.0.1:8000").status == 403
    assert ann.post("/ask", form, origin="https://evil.example").status == 403
    assert ann.post("/ask", form, origin=ORIGIN).status == 200
    assert n_experiments(live) == 1


def test_an_origin_is_written_as_browsers_send_it():
    for text in ("https://lab.example", "https://LAB.example/", "https://lab.example:443"):
        assert check_origin(text) == ORIGIN
    assert check_origin("http://[::1]:81") == "http://[::1]:81"
    odd = ["lab.example", "https://", "ftp://lab", "https://lab.example/airbo", "https://a@lab", "",
           "https://lab:x", "https://lab.example?x=1", "https://[lab"]  # fmt: skip
    for text in odd:
        with pytest.raises(ValueError, match="The origin is the address that browsers show"):
            check_origin(text)


@pytest.mark.parametrize("number", ["9" * 10, "9" * 18, "9" * 5000, "-1", "²", "1.5", "%00"])
def test_a_number_that_no_experiment_can_have_is_no_page(ann, number):
    assert ann.request("GET", f"/experiment/{number}").status == 404
    form = ann.get().forms["/ask"]
    assert ann.post(f"/tell/{number}", form).status in (404, 405)


def test_random_requests_break_nothing(app, live):
    rng = random.Random(0)
    odd = ["\x00", "€", "%ff", "../", "{", "'", "9" * 30, ";", "=", "?", "/", "tell", "experiment"]

    def text(n=6):
        return "".join(rng.choices([*odd, *string.printable], k=rng.randrange(n)))

    kinds = ["GET", "POST", "HEAD", "PUT", text()]
    names = ["cookie", "content-type", "origin", "sec-fetch-site", "accept-encoding"]
    paths = [*PAGES, *POSTS, "/static/0/", "/experiment/", "/nothing"]
    for _ in range(300):
        headers = [(name, text().encode().decode("latin-1")) for name in rng.sample(names, 2)]
        if rng.random() < 0.5:
            headers = [("origin", "http://127.0.0.1:8000"),
                       ("content-type", "application/x-www-form-urlencoded")]  # fmt: skip
        body = "&".join(f"{text()}={text()}" for _ in range(3)).encode()
        path = rng.choice(paths) + rng.choice(["", text(), f"?token={text()}"])
        answer = Visitor(app).request(rng.choice(kinds), path, body, headers)
        assert answer.status < 500, (path, headers, body)
    live.wait()
    assert live.look().snapshot.status.n_ok == 0


def test_entering_leads_nowhere_else(live):
    answer = Visitor(everywhere(live), "lab-pc").request("GET", f"//evil.example/?token={TOKEN}")
    assert answer.header("location") == "/evil.example/"


def test_any_other_address_than_this_machine_has_a_token():
    assert Access.of("127.0.0.1").token is None
    for host in ("0.0.0.0", "::", "192.168.1.5", "lab-pc"):
        access = Access.of(host)
        assert len(access.token) >= 32
        assert access.role(None) is access.role("") is access.cookie(b"") is None
    assert Access.of("0.0.0.0").token != Access.of("0.0.0.0").token


@pytest.mark.parametrize(
    ("host", "inside"),
    [("127.0.0.1", True), ("127.8.9.1", True), ("::1", True), ("localhost", True),
     ("0.0.0.0", False), ("::", False), ("192.168.0.1", False), ("localhost.evil", False)],
)  # fmt: skip
def test_loopback_is_recognized(host, inside):
    assert is_loopback(host) is inside


# -- only looking


def test_who_only_looks_changes_nothing(live):
    worker = Visitor(everywhere(live), "lab-pc")
    form = worker.get(f"/?token={TOKEN}").forms["/ask"]
    boss = Visitor(everywhere(live, read_only=True), "lab-pc", cookies=dict(worker.cookies))
    assert boss.get().status == 200
    for path in POSTS:
        assert boss.post(path, form).status == 403, path
    assert n_experiments(live) == 0


def test_the_link_to_look_shows_all_pages_without_forms(live):
    live.ask()
    live.wait()
    access = Access.of("0.0.0.0", ["lab-pc"], TOKEN)
    boss = Visitor(make_app(live, access), "lab-pc")
    assert boss.get(f"/?token={access.token_to_look}").status == 200
    for path in ["/", "/report", "/experiments", "/history", "/experiment/0"]:
        page = boss.get(path)
        assert "read only" in page.words
        assert not page.forms
    assert access.token_to_look != access.token
    assert boss.post("/ask", {"n": "1"}).status == 403


# -- headers


@pytest.mark.parametrize("path", [*PAGES, "/nothing", "/static/0/serve.css"])
def test_every_answer_has_its_security_headers(ann, path):
    answer = ann.request("GET", path)
    policy = answer.header("content-security-policy")
    assert "default-src 'none'" in policy
    assert "script-src 'self';" in policy
    assert "frame-ancestors 'none'" in policy
    assert ("unsafe-inline" in policy) is (path == "/report")
    assert "unsafe-eval" not in policy
    assert answer.header("x-content-type-options") == "nosniff"
    assert answer.header("referrer-policy") == "same-origin"
    if not path.startswith("/static"):
        assert answer.header("cache-control") == "no-store"
    assert answer.header("access-control-allow-origin") is None


def test_something_that_breaks_says_nothing_about_the_inside(app, ann, live, monkeypatch):
    monkeypatch.setattr(live, "look", lambda: 1 / 0)
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
