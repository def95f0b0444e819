import pytest


@pytest.fixture(autouse=True)
def quick(quick_search):
    """These tests are about what is promised."""
