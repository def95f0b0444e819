"""The command line: ``airbo --help``."""


def main() -> None:
    """Run the command line."""
    import gc

    gc.disable()  # imported modules are not garbage: scanning them repeatedly takes half a second
    from airbo.lab.cli.app import app

    app(prog_name="airbo")
