import pytest

from tests.lab import postgres


@pytest.fixture(scope="session")
def postgres_url():
    """The URL of a PostgreSQL database that all tests share."""
    if postgres.MISSING:
        pytest.skip(f"No PostgreSQL server: {postgres.MISSING}.")
    with postgres.server() as url:
        yield url


@pytest.fixture(params=["sqlite", "postgresql"])
def storage(request):
    """A line of a campaign file that names its storage; none for the SQLite file."""
    if request.param == "sqlite":
        return ""
    return f'storage = "{request.getfixturevalue("postgres_url")}"\n'
