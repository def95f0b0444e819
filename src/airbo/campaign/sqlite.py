"""SQLite: a database in a file, in which an experiment can be finished only once."""

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from optuna.storages import RDBStorage
from optuna.trial import TrialState
from sqlalchemy import Connection, event


class SQLiteStorage(RDBStorage):
    """Looks whether a trial is finished, and writes, in one go.

    SQLite ignores ``FOR UPDATE``, and Python begins a transaction only with the first write: what
    was read before may be out of date by then.
    """

    def __init__(self, url: str, engine_kwargs: dict[str, Any]) -> None:
        """Open a database; make its tables."""
        super().__init__(url, engine_kwargs=engine_kwargs)
        self._changing = threading.local()
        event.listen(self.engine, "begin", self._begin)

    def set_trial_state_values(
        self, trial_id: int, state: TrialState, values: Sequence[float] | None = None
    ) -> bool:
        """Change the state of a trial that is not finished."""
        with self.change():
            return super().set_trial_state_values(trial_id, state, values)

    def set_trial_user_attr(self, trial_id: int, key: str, value: Any) -> None:
        """Write an attribute of a trial that is not finished."""
        with self.change():
            super().set_trial_user_attr(trial_id, key, value)

    @contextmanager
    def change(self) -> Iterator[None]:
        """Begin transactions of this thread as ones that write."""
        self._changing.now = True
        try:
            yield
        finally:
            self._changing.now = False

    def _begin(self, connection: Connection) -> None:
        if getattr(self._changing, "now", False):
            connection.exec_driver_sql("BEGIN IMMEDIATE")
