from functools import lru_cache

import pytest
from alembic.script import ScriptDirectory

from airbo import Campaign
from tests.campaign.common import LINE, SQLITE, with_database, write


@pytest.fixture(autouse=True, scope="session")
def _migrations_read_once():
    """Read Optuna's migrations once, not anew for every database that a test opens."""
    read = lru_cache(lambda location: ScriptDirectory(location))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            ScriptDirectory,
            "from_config",
            classmethod(lambda cls, config: read(config.get_main_option("script_location"))),
        )
        yield


@pytest.fixture(params=["journal", "sqlite"])
def two(request, tmp_path):
    """Two processes that have one campaign open."""
    text = LINE if request.param == "journal" else SQLITE
    path = with_database(write(tmp_path, text))
    with Campaign.open(path) as ours, Campaign.open(path) as theirs:
        yield ours, theirs
