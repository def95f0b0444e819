"""Commands run in this process."""

import json

from typer.testing import CliRunner

from airbo.lab.cli.app import app


def airbo_(*words, code=0, **options):
    """Run a command; return what it printed."""
    result = CliRunner().invoke(app, [str(w) for w in words], **options)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == code, result.output
    assert "Traceback" not in result.output
    return result


def data(*words, code=0):
    return json.loads(airbo_(*words, "--json", code=code).stdout)
