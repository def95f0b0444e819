"""The reading path of docs/architecture.md leads to code that is there, and is short."""

from tests.tools import sizes


def test_the_reading_path_exists_and_has_about_a_thousand_lines():
    _, total = sizes.reading_path()
    assert 500 < total < 1600


def test_the_page_lists_every_file_of_the_reading_path():
    page = sizes.PAGE.read_text(encoding="utf-8")
    assert all(f"`{file}`" in page for file, _, _ in sizes.READING)
