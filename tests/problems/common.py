"""What the tests of several problems share."""

from airbo.problems import Hartmann

HARTMANN = Hartmann()
"""One for all tests: it remembers its optima."""
