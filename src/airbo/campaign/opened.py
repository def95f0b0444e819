"""A campaign that is open: its storage, compared with its seal, and who works on it."""

import copy
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from optuna.storages import BaseStorage

from airbo.campaign.config import Settings
from airbo.campaign.errors import CampaignError
from airbo.campaign.experiment import Record, record_of
from airbo.campaign.history import AuditTrail, Stamp, user
from airbo.campaign.journal import mend_journal
from airbo.campaign.ledger import Ledger
from airbo.campaign.optuna.counting import Counted
from airbo.campaign.outcome import Told
from airbo.campaign.seal import Held
from airbo.campaign.storage import close_storage, explained, open_storage, reading
from airbo.campaign.study import CAMPAIGN, check_there, check_units, open_study, seal_of

C = TypeVar("C", bound="OpenCampaign")


class OpenCampaign:
    """The storage of a campaign, open; what can be done with it is said in ``Campaign``."""

    def __init__(self, settings: Settings, storage: BaseStorage) -> None:
        """Take up a campaign; ``Campaign.open`` is the usual way."""
        self.settings = settings
        self.by = user()
        self.url = settings.storage
        self.storage = storage
        with explained(self.url), reading(self.url):
            self.seal = seal_of(settings)
            study = open_study(storage, settings, begun=bool(self.seal and self.seal.facts))
            self.ledger = Ledger(settings.space, study, storage)
            counted = Counted.of(study)  # once: for the experiments and for the seal
            check_units(record_of(counted, settings.space).experiments, settings)
            if self.seal is not None:
                held = self.held(counted)
                self.seal.check(held)
                with suppress(PermissionError):  # who may only look acknowledges nothing
                    self.seal.add(held)
                    if self.url.is_journal:
                        mend_journal(self.seal.storage)

    @classmethod
    def open(cls: type[C], path: str | Path = "campaign.toml") -> C:
        """Open the campaign of a file, and begin it if it is new.

        Raises:
            DamageError: If the storage lacks something that was told, or has it otherwise.
            CampaignError: If the file has mistakes, the storage cannot be used, or it belongs to
                another campaign.
        """
        return cls.open_copy(Settings.read(path, begun=True))

    @classmethod
    def open_copy(cls: type[C], settings: Settings) -> C:
        """Open the campaign that settings describe; they may name another storage than the file."""
        check_there(settings)
        storage = open_storage(settings.storage, settings.path.parent)
        try:
            return cls(settings, storage)
        except CampaignError:
            close_storage(storage)
            raise

    def close(self) -> None:
        """Close the connections to the storage; leaving a ``with`` block does so too."""
        close_storage(self.storage)

    def __enter__(self: C) -> C:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def signed(self: C, by: str) -> C:
        """Return the same campaign, where changes are signed with another name.

        By default they are signed with ``AIRBO_USER``, or with the name of the account.
        """
        found = copy.copy(self)
        found.by = by
        return found

    def held(self, counted: Counted | None = None) -> Held:
        """Return what the storage holds, as the seal sees it."""
        study, names = self.ledger.study, self.settings.space.names
        return Held.of(counted or Counted.of(study), study, CAMPAIGN, names)

    def _acknowledge(self, told: Sequence[Told] | None = None) -> None:
        """Seal what the storage holds: what follows may be reported to the user.

        Args:
            told: Experiments that were told, each in its own trial: nothing else was written. None:
                seal everything that is new.
        """
        if self.seal is None:
            return
        if told is None or any(t.before is not None for t in told):
            self.seal.add(self.held())
            return
        trials = [self.storage.get_trial(t.experiment.trial_id) for t in told]
        counted = Counted(trials, {})
        self.seal.add(self.held(counted))

    def _stamp(self, record: Record) -> dict[str, str]:
        return Stamp.now(self.by, self._history(record)).to_dict()

    def _history(self, record: Record) -> AuditTrail:
        return AuditTrail(record.counted, self.settings.space)
