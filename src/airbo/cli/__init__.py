"""The command line: ``airbo --help``."""


def main() -> None:
    """Run the command line."""
    import gc

    gc.disable()  # modules are no garbage: going through them again and again takes half a second
    from airbo.cli.app import app

    app(prog_name="airbo")
