"""What all commands share: options, and what they print, for people or as JSON."""

import gc
import json
import os
import re
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer
from rich.console import Console, RenderableType
from rich.text import Text
from typer.core import TyperCommand

from airbo.lab.errors import CampaignError, Doubtful, FileError
from airbo.lab.fields import FIELDS, Field
from airbo.words import typed_number, typed_value

if TYPE_CHECKING:
    from airbo.lab import Campaign, Settings


def option(name: str, *flags: str, **more: Any) -> Any:
    """Return the option for a field of ``airbo.lab.fields``."""
    field = FIELDS[name]
    flags = flags or (f"--{name.replace('_', '-')}",)
    if field.kind == "integer":
        more = {"min": field.least, "max": field.most, **more}
    if field.kind == "number":
        more["parser"] = partial(_number, field)
    return typer.Option(*flags, help=field.says, **more)


def _number(field: Field, text: str) -> float:
    """Read a number as people type it."""
    try:
        number = typed_number(text, "it")
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
    if field.least is not None and number < field.least:
        raise typer.BadParameter(f"it must be at least {field.least:g}, got {text!r}.")
    return number


File = Annotated[Path, typer.Option("--file", "-f", help="The campaign file.", envvar="AIRBO_FILE")]
Yes = Annotated[
    bool, typer.Option("--yes", "-y", help="Do not ask about numbers that look like typing errors.")
]
WithGiven = Annotated[list[str] | None, option("given")]
Outside = Annotated[bool, option("allow_outside")]
Under = Annotated[
    str | None,
    typer.Option(help="The uncertainty of what you report, as TOML, if not that of the file."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]
DEFAULT = Path("campaign.toml")

_Result = TypeVar("_Result")

WIDTH_ELSEWHERE = 110
"""Columns of tables that go to a file or a pipe."""


_NEGATIVE = re.compile(r"-([\d.].*|inf|infinity|nan)", re.IGNORECASE | re.DOTALL)


class NumbersMayBeNegative(TyperCommand):
    """A command whose arguments may be negative numbers, which look like options."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Put a blank before such numbers, so that they are not read as options."""
        return super().parse_args(ctx, [f" {a}" if _NEGATIVE.fullmatch(a) else a for a in args])


class Output:
    """Prints results to the standard output and all else to the standard error."""

    def __init__(self, as_json: bool) -> None:
        self.as_json = as_json
        self.until_end = ExitStack()
        """What is closed when the command ends."""
        self._out, self._err = _console(sys.stdout), _console(sys.stderr)

    def show(self, *things: RenderableType) -> None:
        """Print something for people to read; brackets in texts are brackets, not markup."""
        if not self.as_json:
            for thing in things:
                self._out.print(Text(thing) if isinstance(thing, str) else thing)

    def note(self, text: str) -> None:
        """Print a remark that is not the result."""
        self._err.print(text, style="yellow", markup=False)

    def result(self, data: Mapping[str, Any]) -> None:
        """Print the result for programs, if they are asked for."""
        if self.as_json:
            print(json.dumps(data, default=str, ensure_ascii=False))

    def error(self, message: str, code: int, mistakes: list[dict[str, Any]]) -> None:
        """Print what went wrong."""
        if self.as_json:
            details = {"mistakes": mistakes} if mistakes else {}
            self.result({"error": message, "exit_code": code, **details})
        else:
            self._err.print(message, style="red", markup=False, highlight=False)

    @contextmanager
    def working(self, text: str) -> Iterator[None]:
        """Show on a terminal that something takes more than a moment."""
        if self.as_json or not self._err.is_terminal:
            yield
            return
        with self._err.status(Text(text)):
            yield

    @property
    def err(self) -> Console:
        """Where progress is shown."""
        return self._err


def _console(stream: Any) -> Console:
    """Return a console that keeps a readable width where there is no terminal."""
    is_terminal = stream.isatty()
    width = None if is_terminal or "COLUMNS" in os.environ else WIDTH_ELSEWHERE
    return Console(file=stream, width=width, highlight=False, soft_wrap=False)


@contextmanager
def reporting(as_json: bool) -> Iterator[Output]:
    """Run a command; turn errors into one message and an exit code, and warnings into notes."""
    out = Output(as_json)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            with out.until_end:
                yield out
        except KeyboardInterrupt:
            out.error("Interrupted. Everything that you reported is stored.", 130, [])
            raise typer.Exit(130) from None
        except Exception as error:
            if not isinstance(error, CampaignError):
                raise
            found = error.mistakes if isinstance(error, FileError) else []
            mistakes = [{"line": m.line, "text": m.text} for m in found]
            out.error(str(error), error.exit_code, mistakes)
            raise typer.Exit(error.exit_code) from None
    for text in dict.fromkeys(str(w.message) for w in caught if _is_for_users(w)):
        out.note(text)


def somebody_is_there() -> bool:
    """Say whether questions reach somebody who can answer."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def insisting(
    out: Output, yes: bool, act: Callable[[bool], _Result], doing: str = "Storing"
) -> _Result:
    """Do something; if a number looks like a typing error, first ask whoever is there.

    Args:
        out: Where to ask.
        yes: Whether the user has said already that all numbers are right.
        act: What to do, given whether the numbers are right.
        doing: What to say meanwhile.
    """
    try:
        with out.working(f"{doing} ..."):
            return act(yes)
    except Doubtful as error:
        if out.as_json or not somebody_is_there():
            raise
        for doubt in error.doubts:
            out.note(doubt)
        if not typer.confirm("Is that right?", err=True):
            raise CampaignError("Nothing was stored.") from None
        with out.working(f"{doing} ..."):
            return act(True)


def _is_for_users(warning: warnings.WarningMessage) -> bool:
    names = {kind.__name__ for kind in warning.category.__mro__}
    return bool(names & {"TooLittleDataWarning", "RuntimeWarning"})


def open_campaign(file: Path, out: Output) -> "Campaign":
    """Open a campaign until the command ends."""
    with out.working("Opening the campaign ..."):
        from airbo.lab.campaign import Campaign

        return out.until_end.enter_context(Campaign.open(file))


@contextmanager
def working_on(file: Path, as_json: bool) -> "Iterator[tuple[Output, Campaign]]":
    """Run a command on a campaign; see ``reporting``."""
    with reporting(as_json) as out:
        yield out, open_campaign(file, out)


def one_thread() -> None:
    """Set up PyTorch for a command that needs a model."""
    import torch

    import airbo.optimizer  # noqa: F401 - before garbage is collected again

    torch.set_num_threads(1)  # the matrices are small: more threads only wait for each other
    collect_garbage()


def collect_garbage() -> None:
    """Collect garbage in a long-running command, but not among what is imported by now."""
    if not gc.isenabled():
        gc.freeze()
        gc.enable()


def read_given(settings: "Settings", words: "Sequence[str] | None") -> dict[str, Any]:
    """Read words such as ``humidity=63``, of the environment and of parameters."""
    named: dict[str, str] = {}
    for word in words or ():
        name, equals, text = word.partition("=")
        if not equals or name in named:
            raise CampaignError(f"Values are written as name=value, once each, got {word!r}.")
        named[name] = text
    found, wrong = read_each(named, partial(typed_value, settings.space.whole))
    if wrong:
        raise CampaignError("\n".join(f"{n}={named[n]}: {text}" for n, text in wrong.items()))
    return found


def read_each(
    named: Mapping[str, str], read: Callable[[str, str], _Result]
) -> tuple[dict[str, _Result], dict[str, str]]:
    """Read texts by name; return what they say, and what is wrong with those that say nothing."""
    found, wrong = {}, {}
    for name, text in named.items():
        try:
            found[name] = read(name, text)
        except ValueError as error:
            wrong[name] = str(error)
    return found, wrong


def read_under(settings: "Settings", text: str | None, out: Output) -> Any:
    """Read what single experiments were made under, if that was said."""
    if text is None:
        return None
    with out.working("Reading the uncertainty ..."):
        one_thread()
        from airbo.lab.file import parse_uncertainty

        return parse_uncertainty(text, settings)
