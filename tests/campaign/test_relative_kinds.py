"""Errors in percent in a campaign file."""

import pytest

from airbo import uncertainty as unc
from airbo.campaign import Settings
from airbo.campaign.errors import FileError

FILE = 'name = "mixing"\n[parameters.flow]\nlow = 5.0\nhigh = 50.0\nuncertainty = {}\n'


def read(tmp_path, uncertainty):
    path = tmp_path / "campaign.toml"
    path.write_text(FILE.replace("{}", uncertainty))
    return Settings.read(path).uncertainty["flow"]


@pytest.mark.parametrize(
    ("text", "made"),
    [
        (
            '{kind = "relative", share = {kind = "normal", std = 0.05}}',
            unc.Relative(unc.Normal(0.05)),
        ),
        ('{kind = "lognormal", sigma = 0.1}', unc.LogNormal(0.1)),
    ],
)
def test_errors_in_percent_are_read(tmp_path, text, made):
    assert read(tmp_path, text) == made


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{kind = "relative"}', "share is missing"),
        ('{kind = "relative", share = {kind = "normal", std = -1.0}}', "std must be >= 0"),
        ('{kind = "lognormal"}', "sigma is missing"),
    ],
)
def test_mistakes_are_named(tmp_path, text, message):
    with pytest.raises(FileError, match=message):
        read(tmp_path, text)
