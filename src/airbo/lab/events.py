"""What can happen in a campaign: each event is a small frozen value that JSON can hold.

A campaign is the list of its events. Nothing in it is ever changed: a correction is a later
``Told``, and an ``Undone`` names the events that it takes back. ``airbo.lab.record`` says what the
events add up to, and ``airbo.lab.store`` keeps them.
"""

import dataclasses
import json
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, ClassVar, get_args

from airbo.space import Design

FORMAT = 1
"""Version of the events; a newer airbo may write what this one does not know."""
_PART = "#"
"""Between the key of a call and the position of an event in it."""


@dataclass(frozen=True)
class Begun:
    """A campaign began, with what its file says."""

    kind: ClassVar[str] = "begun"
    file: Mapping[str, Any]
    """Parameters, constraints, uncertainty, outcomes with units; see ``Settings.described``."""
    format: int = FORMAT


@dataclass(frozen=True)
class Changed:
    """From here on, the file says something else."""

    kind: ClassVar[str] = "changed"
    file: Mapping[str, Any]


@dataclass(frozen=True)
class Asked:
    """A design to try. A second one for the same number says that another process runs it."""

    kind: ClassVar[str] = "asked"
    number: int
    design: Design
    run: Mapping[str, Any] | None = None
    """The process that runs it unattended."""
    at: str | None = None
    """When it was asked for, where that was elsewhere and earlier: it is imported."""
    reason: str = ""
    """Why it was chosen, and what was expected of it."""
    given: Mapping[str, Any] = field(default_factory=dict)
    """What was known of the environment then."""


@dataclass(frozen=True)
class Told:
    """What came of an experiment; it holds all that is known of the experiment then.

    Without outcomes it was tried and failed, or nobody will run it.
    """

    kind: ClassVar[str] = "told"
    number: int
    design: Design
    outcomes: Mapping[str, float] = field(default_factory=dict)
    """What was measured, by name; ``value`` where the file has one value."""
    executed: Mapping[str, Any] = field(default_factory=dict)
    """Parameters of the executed input, and of the environment, where they were measured."""
    uncertainty: Sequence[Mapping[str, Any]] | None = None
    """What it was made under; None: as it was asked, or as the file says."""
    noise: Mapping[str, float] = field(default_factory=dict)
    """Standard deviations of the noise of what was measured, where they are known."""
    units: Mapping[str, str] = field(default_factory=dict)
    infeasible: bool = False
    """Whether it failed because its design cannot be used."""
    gave_up: bool = False
    """Whether it was not run and will not be."""
    source: str | None = None
    """The file or study that it was imported from."""
    by: str | None = None
    """Who told it, where that was elsewhere and earlier."""
    at: str | None = None
    """When it was told, in the same way."""
    asked: str | None = None
    """When it was asked for, in the same way."""


@dataclass(frozen=True)
class Noted:
    """Somebody wrote something about an experiment."""

    kind: ClassVar[str] = "noted"
    number: int
    text: str


@dataclass(frozen=True)
class Excluded:
    """An experiment is left out of the model, or counts again."""

    kind: ClassVar[str] = "excluded"
    number: int
    why: str | None
    """None: it counts again."""


@dataclass(frozen=True)
class Undone:
    """Earlier events no longer count."""

    kind: ClassVar[str] = "undone"
    events: Sequence[int]
    """Their positions in the campaign."""


AboutExperiment = Asked | Told | Noted | Excluded
"""Events that are about one experiment, which they name by its number."""
Fact = Begun | Changed | AboutExperiment | Undone
KINDS: dict[str, type[Fact]] = {kind.kind: kind for kind in get_args(Fact)}


@dataclass(frozen=True)
class Event:
    """Something that happened in a campaign: what, who, when."""

    seq: int
    """Its position in the campaign, from 1; 0: it is not written yet."""
    at: datetime
    """When, in UTC."""
    by: str
    key: str
    """Unique in the campaign, so that a report that is repeated counts once."""
    fact: Fact
    digest: str = ""
    """Over this event and the one before; see ``airbo.lab.store``."""

    @property
    def call(self) -> str:
        """What events that were made at once share; they are undone together."""
        return self.key.partition(_PART)[0]


def new_key() -> str:
    """Return a key that no other call has."""
    return uuid.uuid4().hex


def keys_of(call: str, n: int) -> list[str]:
    """Return keys for the events of one call.

    >>> keys_of("3f", 3)
    ['3f', '3f#1', '3f#2']
    """
    return [call if i == 0 else f"{call}{_PART}{i}" for i in range(n)]


def is_key(text: str) -> bool:
    """Say whether a text can be the key of a call."""
    return 0 < len(text) <= 200 and text.isprintable() and _PART not in text


def body_of(fact: Fact) -> str:
    """Write an event as JSON; what is as usual is left out."""
    fields = {
        f.name: getattr(fact, f.name)
        for f in dataclasses.fields(fact)
        if (f.default is dataclasses.MISSING and f.default_factory is dataclasses.MISSING)
        or getattr(fact, f.name) not in (f.default, {})
    }
    return json.dumps(fields, ensure_ascii=True, allow_nan=False)


def fact_from(kind: str, body: str) -> Fact:
    """Read an event.

    What a newer version of airbo says beside it is left alone.

    Raises:
        ValueError: If it cannot be read; the message says why.
    """
    if kind not in KINDS:
        raise ValueError(f"it is of the kind {kind!r}, which this version of airbo does not know")
    given = json.loads(body)
    known = {f.name for f in dataclasses.fields(KINDS[kind])}
    try:
        return KINDS[kind](**{name: value for name, value in given.items() if name in known})
    except (TypeError, AttributeError) as error:
        raise ValueError(f"something is missing in it ({error})") from None
