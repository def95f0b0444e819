import pytest

from airbo.optimizer import search, within


@pytest.fixture(autouse=True)
def quick_search(monkeypatch):
    """Search with few starts: these tests are about what is promised, not about how good it is."""
    few = {"N_RESTARTS": 2, "N_RAW": 32, "N_RESTARTS_MEASURED": 2, "N_RAW_MEASURED": 64}
    for name, number in few.items():
        monkeypatch.setattr(search, name, number)
    monkeypatch.setattr(within, "N_CLIMBS", 2)
    monkeypatch.setattr(within, "N_DRAWN", 16)
