from functools import lru_cache

import pytest
from alembic.script import ScriptDirectory


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
