import pytest

from airbo.lab.serve.guard import Access
from airbo.lab.serve.jobs import here
from airbo.lab.serve.live import LiveCampaign
from airbo.lab.serve.pages import make_app
from tests.lab.serve.client import Visitor
from tests.lab.serve.common import QUICK, write


@pytest.fixture(autouse=True)
def as_users_do(as_without_shape_checks):
    """Check no shapes: the page is not about numbers."""


@pytest.fixture
def file(tmp_path):
    """The file of a campaign whose designs need no model."""
    return write(tmp_path, QUICK)


@pytest.fixture
def models(monkeypatch):
    """Let the page fit models; it draws nothing."""
    monkeypatch.setattr("airbo.lab.serve.advice.report_charts", lambda *args: None)


@pytest.fixture
def live(file, request, monkeypatch):
    """A campaign that does its jobs here, and fits models only where a test wants them."""
    if not {"models", "drawn"} & set(request.fixturenames):
        monkeypatch.setattr("airbo.lab.serve.live.work_out", lambda path, report: None)
    live = LiveCampaign(file, run=here)
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
