import pytest

from airbo.optimizer import search


@pytest.fixture(autouse=True)
def quick_search(monkeypatch):
    """Search with few starts: these tests are about what is promised, not about how good it is."""
    monkeypatch.setattr(search, "N_RESTARTS", 2)
    monkeypatch.setattr(search, "N_RAW", 32)
