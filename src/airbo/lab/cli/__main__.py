"""``python -m airbo.lab.cli`` is the same as ``airbo``."""

from airbo.lab.cli import main

main()
