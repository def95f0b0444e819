import pytest

from airbo import Campaign
from tests.lab.common import write


@pytest.fixture(autouse=True)
def quick(quick_search):
    """Campaigns ask for designs as optimizers do: how good these are is tested there."""


@pytest.fixture(params=["sqlite", "postgresql"])
def storage(request):
    """A line of a campaign file that names its storage; none for the SQLite file."""
    if request.param == "sqlite":
        return ""
    return f'storage = "{request.getfixturevalue("postgres_url")}"\n'


@pytest.fixture
def two(tmp_path):
    """Two processes that have one campaign open."""
    path = write(tmp_path)
    with Campaign.open(path) as ours, Campaign.open(path) as theirs:
        yield ours, theirs
