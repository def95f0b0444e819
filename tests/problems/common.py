"""What the tests of several problems share."""

from airbo.problems import RobotPush

PAPER = RobotPush()
"""One for all tests: it remembers its optima."""
