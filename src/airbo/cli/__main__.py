"""``python -m airbo.cli`` is the same as ``airbo``."""

from airbo.cli import main

main()
