import time

import pytest

from airbo.lab.serve.guard import Access
from airbo.lab.serve.jobs import JobError, in_words
from airbo.lab.serve.live import LiveCampaign
from airbo.lab.serve.pages import make_app
from tests.lab.common import write
from tests.lab.serve.client import Visitor
from tests.lab.serve.common import QUICK


def here(work, args, report):
    """Run a job in this process and thread."""
    try:
        work(*args, report)
    except Exception as error:
        raise JobError(*in_words(error)) from None


class Live(LiveCampaign):
    """A campaign that can be waited for."""

    def wait(self, seconds=60):
        """Wait until nothing is being worked out."""
        deadline = time.monotonic() + seconds
        while self._n_choosing or self._is_finding:
            assert time.monotonic() < deadline, "The jobs of the page do not end."
            time.sleep(0.01)


@pytest.fixture(autouse=True)
def as_users_do(as_without_shape_checks):
    """Check no shapes: the page is not about numbers."""


@pytest.fixture
def file(tmp_path):
    """The file of a campaign whose designs need no model."""
    return write(tmp_path, QUICK)


@pytest.fixture
def models():
    """Let the page fit models and draw charts."""


@pytest.fixture
def live(file, request, monkeypatch):
    """A campaign that does its jobs here, and fits models only where a test wants them."""
    if "models" not in request.fixturenames:
        monkeypatch.setattr("airbo.lab.serve.live.find", lambda path, report: None)
    live = Live(file, run=here)
    yield live
    live.wait()
    live.close()


@pytest.fixture
def app(live):
    return make_app(live, Access.of("127.0.0.1"))


@pytest.fixture
def ann(app):
    """Somebody who works with the page."""
    return Visitor(app)


@pytest.fixture
def bob(app):
    """Somebody else."""
    return Visitor(app)
