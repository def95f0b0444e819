import optuna
import pytest

from airbo.serve.desk import Desk
from airbo.serve.guard import Doors
from airbo.serve.jobs import here
from airbo.serve.web import make_app
from tests.lab.common import MILL, write
from tests.serve.client import Visitor

QUICK = MILL.replace("n_initial = 4", "n_initial = 1000")


@pytest.fixture(autouse=True)
def as_users_do(as_without_shape_checks):
    """Check no shapes: the page is not about numbers."""
    optuna.logging.set_verbosity(optuna.logging.WARNING)


@pytest.fixture
def file(tmp_path):
    """The file of a campaign whose designs need no model."""
    return write(tmp_path, QUICK)


@pytest.fixture
def models(monkeypatch):
    """Let the desk fit models; it draws nothing."""
    monkeypatch.setattr("airbo.serve.thinking._report_charts", lambda *args, **settings: None)


@pytest.fixture
def desk(file, request, monkeypatch):
    """A desk that does its jobs here, and fits models only where a test wants them."""
    if "models" not in request.fixturenames:
        monkeypatch.setattr("airbo.serve.desk.look", lambda path, report: None)
    desk = Desk(file, run=here)
    yield desk
    desk.wait()
    desk.close()


@pytest.fixture
def app(desk):
    return make_app(desk, Doors.of("127.0.0.1"))


@pytest.fixture
def ann(app):
    """Somebody who works with the page."""
    return Visitor(app)


@pytest.fixture
def bob(app):
    """Somebody else."""
    return Visitor(app)
