import pytest


@pytest.fixture
def here(tmp_path, monkeypatch):
    """Work in an empty folder, with lines of a readable width."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "110")
    return tmp_path
