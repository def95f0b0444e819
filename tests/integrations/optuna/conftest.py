import pytest


@pytest.fixture(autouse=True)
def quick(quick_search, as_without_shape_checks):
    """These tests are about what is promised; shapes are checked where the optimizer is tested."""
