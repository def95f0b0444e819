"""The verbs of a campaign as JSON: the same answers as the command line, behind the same guard."""

import json
import shutil
import subprocess

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from airbo.lab import Campaign
from airbo.lab.serve.guard import Access
from airbo.lab.serve.pages import make_app
from tests.lab.cli.common import data
from tests.lab.common import write
from tests.lab.serve.client import Visitor
from tests.lab.serve.common import QUICK
from tests.lab.serve.processes import serving

OVEN = (
    QUICK
    + """
[environment.humidity]
low = 20
high = 90
unit = "%"
law = { kind = "normal", std = 8.0 }
"""
)
DESIGN = {"speed": 120.0, "depth": 0.5, "passes": 2, "tool": "B"}


@pytest.fixture
def file(tmp_path):
    return write(tmp_path, OVEN)


def call(visitor, verb, said=None, code=200, **headers):
    """Send JSON, or ask by GET; return what is answered."""
    body = b"" if said is None else json.dumps(said).encode()
    sent = [("content-type", "application/json"), *headers.items()] if body else [*headers.items()]
    found = visitor.request("POST" if body else "GET", f"/api/{verb}", body, sent)
    assert found.status == code, found.text
    assert found.header("content-type") == "application/json"
    return json.loads(found.text)


def test_a_day_by_json_is_what_the_command_line_shows(ann, file):
    [asked] = call(ann, "ask", {"given": {"humidity": 63, "tool": "A"}, "by": "PLC"})["asked"]
    assert (asked["design"]["tool"], asked["given"]) == ("A", {"humidity": 63.0})
    said = {"trial": 0, "value": 1.25, "executed": {"humidity": 61.0}, "noise": {"roughness": 0.1}}
    [told] = call(ann, "tell", said)["told"]
    assert (told["done"], told["executed"], told["noise"]) == (
        "told", {"humidity": 61.0}, {"roughness": 0.1},
    )  # fmt: skip
    [added] = call(ann, "tell", {"design": DESIGN, "outcomes": {"roughness": 2.0}})["told"]
    assert added["done"] == "added"
    call(ann, "ask", {"n": 2.0})
    [failed] = call(ann, "fail", {"trial": 2, "why": "the tool broke"})["told"]
    assert (failed["outcome"], failed["notes"]) == ("failed", ["the tool broke"])
    assert call(ann, "status") == data("status", "-f", file)
    by = [change.by for change in Campaign.open(file).history() if change.what == "asked"]
    assert by[0] == "PLC"


def test_answers_of_the_model_are_those_of_the_command_line(ann, file):
    c = Campaign.open(file)
    for i in range(8):
        design = DESIGN | {"speed": 60.0 + 15 * i}
        c.tell(design, 1 + (i - 4) ** 2 / 10, executed={"humidity": 40.0 + 3 * i})
    there = data("recommend", "--given", "humidity=60", "-f", file)
    assert call(ann, "recommend", {"given": {"humidity": 60}}) == there
    assert call(ann, "recommend?humidity=60") == there
    assert call(ann, "recommend") == data("recommend", "-f", file)
    words = [f"{name}={value}" for name, value in DESIGN.items()]
    expected = data("predict", *words, "humidity=45", "-f", file)
    assert call(ann, "predict", {"design": {**DESIGN, "humidity": 45}}) == expected
    assert call(ann, f"predict?{'&'.join(words)}&humidity=45") == expected


def test_the_same_key_twice_counts_once(ann, file):
    first = call(ann, "ask", {"n": 2, "key": "monday"})
    assert call(ann, "ask", {"n": 2, "key": "monday"}) == first
    told = {"design": DESIGN, "value": 1.0}
    for _ in range(2):
        call(ann, "tell", told, **{"idempotency-key": "tuesday"})
    assert len(Campaign.open(file).experiments) == 3


@pytest.mark.parametrize(
    ("verb", "said", "code", "match"),
    [
        ("tell", {"trial": 0, "value": 9.0}, 409, "was reported before: 1.25"),
        ("tell", {"trial": 7, "value": 1.0}, 422, "There is no experiment 7"),
        ("tell", {"trial": 0}, 422, "Send either value or outcomes"),
        ("tell", {"value": 1.0}, 422, "the number of the trial, or a design"),
        ("tell", {"trial": 0, "valeu": 1.0}, 422, "did you mean 'value'"),
        ("tell", {"trial": True, "value": 1.0}, 422, "trial must be a whole number"),
        ("tell", {"design": {"speed": 1}, "value": 1.0}, 422, "'speed'"),
        ("tell", {"trial": 0, "value": 1.25, "executed": {"humidity": 99}}, 422, "bounds are 20"),
        ("fail", {}, 422, "trial is missing"),
        ("ask", {"n": 0}, 422, "n must have 1 to 20"),
        ("ask", {"n": 2.5}, 422, "n must be a whole number, got 2.5"),
        ("ask", {"given": {"humidty": 1}}, 422, "did you mean 'humidity'"),
        ("ask", [], 422, "Send a JSON object"),
        ("predict?humidity=wet", None, 422, "humidity must be a number"),
        ("nothing", {}, 404, "no such page"),
        ("tell", None, 405, "Another method"),
    ],
)
def test_a_mistake_has_a_status_and_the_sentence_of_the_command_line(
    ann, file, verb, said, code, match
):
    Campaign.open(file).ask()
    Campaign.open(file).tell(0, 1.25)
    n = len(Campaign.open(file).record().events)
    assert match in call(ann, verb, said, code)["error"]
    assert len(Campaign.open(file).record().events) == n


def test_the_guard_stands_before_it(live):
    access = Access.of("0.0.0.0", token="secret")
    program = Visitor(make_app(live, access))
    assert "token" in call(program, "status", code=401)["error"]
    assert call(program, "status", code=401, authorization="Bearer wrong")
    told = {"design": DESIGN, "value": 1.0}
    assert call(program, "tell", told, authorization="Bearer secret")["told"]
    look = f"Bearer {access.token_to_look}"
    assert "only shows" in call(program, "tell", told, code=403, authorization=look)["error"]
    assert call(program, "status", authorization=look)["ok"] == 1


@pytest.mark.parametrize(
    ("headers", "code"),
    [
        ({"origin": "http://evil.example"}, 403),
        ({"origin": "null"}, 403),
        ({"sec-fetch-site": "cross-site"}, 403),
        ({"content-type": "text/plain"}, 415),
        ({"content-type": "application/x-www-form-urlencoded"}, 415),
        ({"host": "evil.example"}, 403),
    ],
)
def test_another_page_cannot_send_json(ann, live, headers, code):
    if "host" in headers:
        ann.host = headers.pop("host")
    sent = {"content-type": "application/json", **headers}
    found = ann.request("POST", "/api/tell", json.dumps({"design": DESIGN, "value": 1.0}).encode(),
                        list(sent.items()))  # fmt: skip
    assert found.status == code
    assert live.snapshot().record.experiments == []


def test_the_document_and_the_page_name_every_verb(ann):
    document = call(ann, "openapi.json")
    assert document["openapi"] == "3.1.0"
    verbs = {"ask", "tell", "fail", "recommend", "predict", "status"}
    assert {*document["paths"]} == {f"/api/{verb}" for verb in verbs}
    body = document["paths"]["/api/ask"]["post"]["requestBody"]["content"]["application/json"]
    assert {*body["schema"]["properties"]["given"]["properties"]} == {*DESIGN, "humidity"}
    shown = ann.get("/api").words
    assert all(f"/api/{verb}" in shown for verb in verbs)


_any = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)  # fmt: skip
_names = st.sampled_from(
    ["trial", "design", "value", "outcomes", "executed", "noise", "n", "given", "key", "by", "why"]
)
_near = st.dictionaries(st.sampled_from([*DESIGN, "humidity", "roughness"]), _any, max_size=6)


@given(
    verb=st.sampled_from(["ask", "tell", "fail", "predict", "recommend"]),
    said=st.dictionaries(_names, _any | _near, max_size=5) | _any,
)
@settings(max_examples=60, deadline=None,
          suppress_health_check=[HealthCheck.function_scoped_fixture])  # fmt: skip
def test_whatever_is_sent_is_answered_in_words(ann, verb, said):
    body = json.dumps(said).encode()
    sent = [("content-type", "application/json")]
    found = ann.request("POST", f"/api/{verb}", body, sent)
    assert found.status in (200, 409, 422), found.text
    assert found.status == 200 or json.loads(found.text)["error"]


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
def test_curl_takes_part(file):
    with serving(file) as (_, link):

        def curl(verb, *options):
            words = ["curl", "-sS", *options, f"{link}api/{verb}"]
            return json.loads(subprocess.check_output(words, timeout=60))

        as_json = ["-H", "Content-Type: application/json", "-d"]
        [asked] = curl("ask", *as_json, '{"key": "1"}')["asked"]
        told = {"trial": asked["trial"], "value": 1.5, "executed": {"humidity": 55}}
        assert curl("tell", *as_json, json.dumps(told))["told"][0]["value"] == 1.5
        assert "was reported before" in curl("tell", *as_json, '{"trial": 0, "value": 2}')["error"]
        assert curl("status")["ok"] == 1
