import pytest

from airbo.lab.report import along, findings


@pytest.fixture(autouse=True)
def coarse(request, monkeypatch, quick_search, few_draws):
    """Draw with few points: most tests are about what is shown, not about how smooth it is."""
    if "fine" in request.fixturenames:
        return
    monkeypatch.setattr(along, "N_PER_SIDE", 5)
    monkeypatch.setattr(findings, "N_ALONG", 7)


@pytest.fixture
def fine():
    """Draw as for users."""
