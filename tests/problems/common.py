"""What the tests of several problems share."""

from airbo.problems import Hartmann, RobotPush

PAPER = RobotPush()
"""One for all tests: it remembers its optima."""

HARTMANN = Hartmann()
"""The same, in six dimensions."""
