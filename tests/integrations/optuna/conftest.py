import pytest

from airbo.optimizer import search


@pytest.fixture(autouse=True)
def quick_search(monkeypatch, as_without_shape_checks):
    """Search with few starts: these tests are about what is promised, not about how good it is.

    Shapes are checked where the optimizer is tested.
    """
    monkeypatch.setattr(search, "N_RESTARTS", 2)
    monkeypatch.setattr(search, "N_RAW", 32)
