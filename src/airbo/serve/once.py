"""Forms that are sent twice count once; and the message that the next page shows."""

import threading
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass

MOST_REMEMBERED = 10_000
"""Number of forms, and of visitors, to remember."""


@dataclass(frozen=True)
class Said:
    """What was done, in a sentence."""

    text: str
    kind: str = "done"
    """``done``, or ``problem``."""
    undo: str = ""
    """Which change can be taken back from here."""


class Forms:
    """Remembers which forms were sent: a double click, or a form sent again, does nothing new."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._sent: OrderedDict[str, Future[str]] = OrderedDict()

    def once(self, name: str, act: Callable[[], str]) -> str:
        """Act if the form is new; return where to go, as the first time.

        A form that led to an error may be sent again.
        """
        if not name:
            return act()
        with self._lock:
            known = self._sent.get(name)
            if known is None:
                mine = self._sent[name] = Future()
                while len(self._sent) > MOST_REMEMBERED:
                    self._sent.popitem(last=False)
        if known is not None:
            return known.result()
        try:
            mine.set_result(act())
        except BaseException as error:
            with self._lock:
                self._sent.pop(name, None)
            mine.set_exception(error)
            raise
        return mine.result()


class Messages:
    """Keeps what visitors are told on the next page that they see."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._by_session: OrderedDict[str, list[Said]] = OrderedDict()

    def add(self, session: str, said: Said) -> None:
        """Tell a visitor something."""
        with self._lock:
            self._by_session.setdefault(session, []).append(said)
            while len(self._by_session) > MOST_REMEMBERED:
                self._by_session.popitem(last=False)

    def take(self, session: str) -> list[Said]:
        """Return what a visitor has not been told yet."""
        with self._lock:
            return self._by_session.pop(session, [])
