"""The page in a real browser: ask, tell, undo; two tabs at once; a foreign page."""

import http.server
import threading

import pytest

from airbo.lab import Campaign
from tests.browser import CHROMIUM, MISSING, Browser
from tests.lab.common import MILL, write
from tests.lab.serve.common import TWO
from tests.lab.serve.processes import serving

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason=MISSING),
    pytest.mark.usefixtures("as_without_shape_checks"),
]

CARDS = "document.querySelectorAll('.card').length"
WIDTH = "document.documentElement.scrollWidth"  # a phone shows a wider page smaller


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    with Browser(tmp_path_factory.mktemp("profile")) as browser:
        yield browser


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    file = write(tmp_path_factory.mktemp("lab"), MILL)
    with serving(file) as (_, url):
        yield file, url


FIELD = "document.querySelector('#e{} .big input')"


def fill(browser, number, value):
    field = FIELD.format(number)
    browser.run(f"{field}.value = {value!r}; {field}.focus()")


def press(browser, selector):
    browser.run(f"document.querySelector({selector!r}).click()")


def check_silent(browser, url):
    assert browser.problems == []
    foreign = [u for u in browser.requests if not u.startswith((url, "data:", "about:"))]
    assert foreign == []


def outcomes(file):
    with Campaign.open(file) as campaign:
        return {e.number: (e.outcome, e.outcomes.get("roughness")) for e in campaign.experiments}


def test_a_day_with_two_tabs(browser, server):
    file, url = server
    browser.open(url)
    other = browser.tab(390, 800)
    other.open(url)

    # one asks: both see it
    press(browser, ".ask button")
    browser.wait(f"{CARDS} == 1")
    other.wait(f"{CARDS} == 1")

    # what is typed in one tab stays while the other asks for more
    fill(other, 0, "12,5")
    press(browser, ".ask button")
    for tab in (browser, other):
        tab.wait(f"{CARDS} == 2")
    assert other.run(f"{FIELD.format(0)}.value") == "12,5"

    # a mistake is explained in place, then mended
    fill(browser, 1, "1.2.3")
    press(browser, "#e1 .main")
    browser.wait("document.querySelector('#e1 .mistake')")
    assert browser.run(f"{FIELD.format(1)}.value") == "1.2.3"
    fill(browser, 1, "1.23")
    press(browser, "#e1 .main")
    browser.wait(f"{CARDS} == 1")
    assert outcomes(file)[1] == ("ok", 1.23)

    # both answer the same experiment: the second is asked
    fill(browser, 0, "7")
    press(browser, "#e0 .main")
    browser.wait(f"{CARDS} == 0")
    other.wait("document.querySelector('#e0.gone')")
    press(other, "#e0 .main")
    other.wait("document.querySelector('#e0 .mistake')")
    assert outcomes(file)[0] == ("ok", 7.0)
    press(other, "#e0 [name=correct]")
    press(other, "#e0 .main")
    other.wait(f"{CARDS} == 0")
    assert outcomes(file)[0] == ("ok", 12.5)

    # undo brings back what was before, in both tabs
    press(other, "#messages form button")
    other.wait("document.querySelector('#messages').innerText.includes('Taken back')")
    assert outcomes(file)[0] == ("ok", 7.0)
    browser.wait("document.querySelector('[data-part=recent]').innerText.includes('7 µm')")

    for tab, width in ((browser, 1200), (other, 390)):
        assert tab.run(WIDTH) <= width
        # the browser writes down refused forms; they are what is tested here
        tab.problems[:] = [p for p in tab.problems if "status of 4" not in p.get("text", "")]
        check_silent(tab, url)


def test_charts_are_drawn_without_complaint(browser, server):
    file, url = server
    with Campaign.open(file) as campaign:
        for speed, value in ((60, 9.0), (90, 4.0), (150, 3.0), (180, 8.0)):
            design = {"speed": speed, "depth": 0.5, "passes": 2, "tool": "B"}
            campaign.tell(design, value, sure=True)
    for width in (1200, 390):
        browser.resize(width, 900)
        browser.open(f"{url}report")
        browser.wait("document.querySelectorAll('.chart .main-svg').length >= 10", 120)
        assert browser.run(WIDTH) <= width
    check_silent(browser, url)


def test_a_part_of_a_report_moves_the_card_to_those_that_wait(browser, tmp_path):
    with serving(write(tmp_path, TWO)) as (_, url):
        browser.open(url)
        press(browser, ".ask button")
        browser.wait(f"{CARDS} == 1")
        fill(browser, 0, "3.5")  # the first of two outcomes
        press(browser, "#e0 .main")
        browser.wait("document.querySelector('#w0')")
        assert browser.run("document.querySelector('#e0')") is None
        heading = "document.querySelector('[data-part=waiting]').innerText"
        assert "1 experiment lacks an outcome" in browser.run(heading)
        browser.run("document.querySelector('#w0 input:not([type=hidden])').value = '0,2'")
        press(browser, "#w0 button")
        browser.wait(f"{CARDS} == 0")
        assert browser.run(heading).strip() == ""
    assert browser.problems == []


def test_a_page_of_another_origin_cannot_ask(browser, server, tmp_path):
    file, url = server
    before = outcomes(file)
    (tmp_path / "evil.html").write_text(
        f'<form method="post" action="{url}ask"><input name="n" value="3"></form>'
        "<script>document.forms[0].submit()</script>"
    )

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def __init__(self, *args):
            super().__init__(*args, directory=tmp_path)

        def log_message(self, *args):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Quiet) as evil:
        threading.Thread(target=evil.serve_forever, daemon=True).start()
        place = f"http://localhost:{evil.server_port}"
        browser.open(f"{place}/evil.html")
        browser.wait("document.body.innerText.includes('came from another page')")
        browser.open(f"{place}/nothing.html")
        fetched = browser.run(f"fetch('{url}live').then(a => a.text()).catch(() => 'refused')")
        evil.shutdown()
    assert fetched == "refused"
    assert outcomes(file) == before


def test_a_foreign_name_is_refused(browser, server):
    _, url = server
    port = url.rstrip("/").rpartition(":")[2]
    browser.open(f"http://lab.localhost:{port}/")  # browsers take every .localhost to this machine
    assert "not known here" in browser.run("document.body.innerText")


def test_a_slider_moves_the_prediction(browser, tmp_path):
    file = write(tmp_path, MILL)
    design = {"speed": 120.0, "depth": 0.5, "passes": 2, "tool": "B"}
    with Campaign.open(file) as campaign:
        for i, speed in enumerate((60.0, 90.0, 130.0, 170.0)):
            campaign.tell({**design, "speed": speed}, {"roughness": 1.0 + i}, sure=True)
    with serving(file) as (_, url):
        browser = browser.tab()  # with none of the complaints that other tests provoked
        browser.open(f"{url}predict")
        said = "document.querySelector('.expected li').innerText"
        before = browser.run(said)
        browser.run(
            "const s = document.querySelector('[data-for=\"design:speed\"]'); s.value = 1;"
            "s.dispatchEvent(new Event('input', {bubbles: true}));"
            "s.dispatchEvent(new Event('change', {bubbles: true}))"
        )
        browser.wait(f"{said} !== {before!r}", 60)
        assert browser.run("document.querySelector('[name=\"design:speed\"]').value") == "200"
        assert browser.run("location.search").startswith("?design%3Aspeed=200")
        assert browser.run("document.querySelectorAll('.curve').length") == 4
        check_silent(browser, url)
