"""The study of a campaign: whether it is the right one, and who chooses and judges its designs."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import optuna
from optuna import Study
from optuna.distributions import BaseDistribution, check_distribution_compatibility
from optuna.samplers import RandomSampler
from optuna.storages import BaseStorage

from airbo.campaign.config import Settings
from airbo.campaign.errors import CampaignError, DamageError, FileError, StorageError
from airbo.campaign.experiment import Experiment
from airbo.campaign.seal import Seal
from airbo.digits import Digits, digits_for
from airbo.observed import VALUE
from airbo.space import Space
from airbo.space.parameters import Categorical, Float, Integer, Parameter
from airbo.words import same_unit

if TYPE_CHECKING:
    from airbo.campaign.optuna import AIRBOSampler

CAMPAIGN = "airbo:campaign"
"""Study attribute: what the file said when the campaign began."""
FORMAT = 1


def seal_of(settings: Settings) -> Seal | None:
    """Read the seal of a storage that is a file."""
    file = settings.storage.file(settings.path.parent)
    return None if file is None else Seal(file)


def check_there(settings: Settings) -> None:
    """Refuse to start over where experiments were reported and their file is gone."""
    seal = seal_of(settings)
    if seal is not None and not seal.storage.exists():
        _check_limits(settings)
    if seal is not None and seal.facts and not seal.storage.exists():
        raise StorageError(
            f"The storage {seal.storage.name} is gone, and it held {seal.n_trials} trials. Put it "
            f"back, or a backup of it: airbo restore BACKUP. To start over, delete "
            f"{seal.file.name} too."
        )


def _check_limits(settings: Settings) -> None:
    """Refuse to begin a campaign that exceeds the limits; an older one can still be read."""
    if settings.beyond:
        raise FileError(str(settings.path), settings.beyond)


def open_study(storage: BaseStorage, settings: Settings, begun: bool = False) -> Study:
    """Open the study of a campaign, or make it; refuse one that belongs to something else.

    Its sampler comes later: only who asks needs it.

    Args:
        storage: Where it is.
        settings: What the file says.
        begun: Whether it must be there.
    """
    found = {study.study_name for study in storage.get_all_studies()}
    no_sampler = RandomSampler()
    if settings.name in found:
        study = optuna.load_study(study_name=settings.name, storage=storage, sampler=no_sampler)
    else:
        _check_alone(found, settings)
        _check_begun(begun, settings)
        _check_limits(settings)
        study = optuna.create_study(
            storage=storage,
            sampler=no_sampler,
            study_name=settings.name,
            direction=settings.direction,
            load_if_exists=True,  # somebody else may begin the campaign at the same moment
        )
    marks = study.user_attrs
    if CAMPAIGN not in marks:
        _check_begun(begun, settings)
        # First the trials, then the mark: a process that begins now sets it before any trial.
        has_trials = bool(study.get_trials(deepcopy=False))
        marks = study.user_attrs
        if CAMPAIGN not in marks:
            _check_new(has_trials, study, settings)
            study.set_user_attr(CAMPAIGN, _described(settings))
            marks = study.user_attrs
    check_same(marks[CAMPAIGN], settings)
    return study


def _check_alone(found: set[str], settings: Settings) -> None:
    """Refuse to begin a campaign in a file that holds another one; servers hold many."""
    file = settings.storage.file(settings.path.parent)
    if found and file is not None:
        others = ", ".join(map(repr, sorted(found)))
        raise StorageError(
            f"The storage {file.name} belongs to another campaign: it holds {others}, and the file "
            f"{settings.path.name} is about {settings.name!r}. Put the old name back if you only "
            "renamed it, or give the new campaign a storage of its own."
        )


def _check_begun(begun: bool, settings: Settings) -> None:
    if begun:
        what = f"the campaign {settings.name!r}, which was begun, is not in it"
        raise DamageError(str(settings.storage), what, "")


def _check_new(has_trials: bool, study: Study, settings: Settings) -> None:
    if has_trials or study.direction.name.lower() != settings.direction:
        raise StorageError(
            f"The storage {settings.storage} has a study {settings.name!r} that no "
            "campaign made. Choose another name or another storage."
        )


def _described(settings: Settings) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "name": settings.name,
        "direction": settings.direction,
        "space": settings.space.to_dict(),
    }


def check_same(begun: dict[str, Any], settings: Settings) -> None:
    """Refuse a file that is about something else than the campaign was when it began."""
    if begun["format"] != FORMAT:
        raise StorageError(
            f"The campaign {settings.name!r} was made by a newer airbo (format {begun['format']}); "
            f"this one reads format {FORMAT}."
        )
    what = (
        []
        if begun["direction"] == settings.direction
        else [f"the direction was {begun['direction']!r} and is now {settings.direction!r}"]
    )
    what += _refused_changes(Space.from_dict(begun["space"]), settings.space)
    _check_fit(what, settings)


def check_units(told: Iterable[Experiment], settings: Settings) -> None:
    """Refuse a file with another unit than that in which an outcome was told."""
    found: dict[str, str] = {}
    for experiment in told:
        for name, unit in experiment.units.items():
            is_value = name == VALUE and not (settings.named and experiment.outcomes)
            if is_value or (name in experiment.outcomes and name in (settings.named or ())):
                found.setdefault(settings.value_name if is_value else name, unit)
    now = {settings.value_name: settings.value_unit, **settings.units}
    changes = (_changed_unit(name, unit, now.get(name)) for name, unit in found.items())
    _check_fit([*filter(None, changes)], settings)


def _check_fit(what: Sequence[str], settings: Settings) -> None:
    if what:
        raise StorageError(
            f"{settings.path.name} does not fit the trials of campaign {settings.name!r} in "
            f"{settings.storage}: {'; '.join(what)}. Put it back, or begin a new campaign "
            "with another name and storage (`airbo export` and `airbo import` carry values over; "
            "convert those that get another unit)."
        )


def _refused_changes(old: Space, new: Space) -> list[str]:
    removed = [f"parameter {n!r} is gone" for n in old.names if n not in new.names]
    added = [f"parameter {n!r} is new" for n in new.names if n not in old.names]
    both = [n for n in old.names if n in new.names]
    changed = [_refused_change(n, old.parameters[n], new.parameters[n]) for n in both]
    return [*removed, *added, *filter(None, changed)]


def _refused_change(name: str, old: Parameter, new: Parameter) -> str:
    if type(old) is not type(new):
        return f"parameter {name!r} was of type {old.kind!r} and is now {new.kind!r}"
    if isinstance(old, Categorical) and isinstance(new, Categorical):
        if list(old.choices) != list(new.choices):
            before, after = list(old.choices), list(new.choices)
            return f"the choices of {name!r} were {before} and are now {after}"
    elif old.log != new.log:
        return f"parameter {name!r} was {_scale(old)} and is now {_scale(new)}"
    return _changed_unit(name, _unit(old), _unit(new))


def _changed_unit(name: str, old: str | None, new: str | None) -> str:
    if old is None or same_unit(old, new):
        return ""
    return f"the unit of {name!r} was {old!r} and is {f'now {new!r}' if new else 'gone'}"


def _scale(parameter: Parameter) -> str:
    return "logarithmic" if parameter.log else "linear"


def _unit(parameter: Parameter) -> str | None:
    return getattr(parameter, "unit", None)


def range_changes(study: Study, settings: Settings) -> list[str]:
    """Say which ranges and constraints the campaign did not begin with; that is allowed."""
    begun = Space.from_dict(study.user_attrs[CAMPAIGN]["space"])
    old = begun.parameters
    changes = []
    for name, new in settings.space.parameters.items():
        before = old[name]
        if isinstance(new, Float | Integer) and new.range != before.range:
            ranges = [f"{low:g} to {high:g}" for low, high in (before.range, new.range)]
            changes.append(
                f"The range of {name!r} was {ranges[0]} when the campaign began and is now "
                f"{ranges[1]}; experiments outside it are kept."
            )
    if begun.constraints != settings.space.constraints:
        changes.append(
            f"The constraints were {list(begun.constraints)} when the campaign began and are now "
            f"{list(settings.space.constraints)}; experiments that miss them are kept."
        )
    return changes


def check_kinds(study: Study, wanted: Mapping[str, BaseDistribution]) -> None:
    """Refuse a study in which somebody else has used a parameter in another way."""
    for trial in study.get_trials(deepcopy=False):
        for name in trial.distributions.keys() & wanted.keys():
            try:
                check_distribution_compatibility(trial.distributions[name], wanted[name])
            except ValueError as error:
                raise CampaignError(
                    f"Trial {trial.number}, which another program wrote, does not fit the "
                    f"parameter {name!r}: {error} Optuna cannot add trials to such a study. Export "
                    "the others and import them into a new campaign."
                ) from None


# -- who chooses designs, and who judges them


def sampler_of(settings: Settings) -> "AIRBOSampler":
    """Return the sampler that the file describes."""
    from airbo.campaign.optuna import AIRBOSampler

    return AIRBOSampler(
        settings.uncertainty,
        deployment=settings.deployment,
        surrogate=settings.surrogate,
        acquisition=settings.acquisition,
        measure=None if settings.outcomes else settings.measure,
        noise=settings.noise,
        n_startup_trials=settings.n_initial,
        search_space=settings.space,
        outcomes=settings.outcomes,
        seed=settings.seed,
        digits=digits_of(settings),
    )


def digits_of(settings: Settings) -> dict[str, Digits]:
    """Return the digits that the machine can hold, by name: from how far it misses a design."""
    import torch

    from airbo.uncertainty.in_cube import by_columns

    space = settings.space
    low, high = (torch.tensor(bounds, dtype=torch.float64) for bounds in space.bounds)
    X = torch.stack([low, (low + high) / 2, high])
    C = by_columns(space, settings.uncertainty).covariance(X)
    std = C.diagonal(dim1=-2, dim2=-1).clamp_min(0).sqrt()  # (3, d)
    found = {}
    for column, (name, parameter) in enumerate(space.parameters.items()):
        own = std[:, column] / (X[:, column].abs() if parameter.log else 1.0)
        missed = [v for v in own.tolist() if v > 0]
        digits = digits_for(parameter, min(missed, default=None))
        if digits is not None:
            found[name] = digits
    return found
