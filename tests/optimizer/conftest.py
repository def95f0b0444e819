import pytest

from airbo.optimizer import search, within


@pytest.fixture(autouse=True)
def quick_search(monkeypatch):
    """Search with few starts: these tests are about what is promised, not about how good it is."""
    monkeypatch.setattr(search, "N_RESTARTS", 2)
    monkeypatch.setattr(search, "N_RAW", 32)
    monkeypatch.setattr(within, "N_CLIMBS", 2)
    monkeypatch.setattr(within, "N_DRAWN", 16)
