"""The command line: ``airbo --help``."""


def main() -> None:
    """Run the command line."""
    from airbo.cli.app import app

    app(prog_name="airbo")
