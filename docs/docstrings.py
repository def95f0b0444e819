"""Docstrings as the site reads them: Sphinx roles and examples become Markdown."""

import re
from typing import Any

from griffe import Extension, Object

FORMULA = re.compile(r":math:`([^`]+)`")
BLOCK = re.compile(r"^( *)\.\. math::(.*(?:\n(?:\1 +\S.*| *(?=\n\1 +\S)))*)", re.MULTILINE)
ROLE = re.compile(r":(?:class|func|meth|mod|attr):`~?\.?([^`]+)`")
EXAMPLE = re.compile(r"^ *>>> .*(?:\n *\S.*)*", re.MULTILINE)  # up to an empty line


class Docstrings(Extension):
    """Rewrites every docstring when it is loaded."""

    def on_object(self, *, obj: Object, **_: Any) -> None:
        """Rewrite the docstring of a module, class, function or attribute."""
        if obj.docstring is not None:
            obj.docstring.value = to_markdown(obj.docstring.value)


def to_markdown(text: str) -> str:
    r"""Return a docstring in Markdown.

    >>> to_markdown("The weight :math:`\\beta` of :class:`airbo.UCB`.")
    'The weight $\\beta$ of `airbo.UCB`.'
    """
    text = EXAMPLE.sub(_example, BLOCK.sub(_block, text))
    return ROLE.sub(r"`\1`", FORMULA.sub(r"$\1$", text))


def _block(found: re.Match[str]) -> str:
    indent, formula = found[1], " ".join(found[2].split())
    return f"\n{indent}$$\n{indent}{formula}\n{indent}$$\n"


def _example(found: re.Match[str]) -> str:
    indent = found[0][: found[0].index(">>>")]
    return f"{indent}```pycon\n{found[0]}\n{indent}```"
