"""The pages: what each address shows, and what each form does to the campaign."""

import functools
import io
import re
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

from starlette.applications import Starlette
from starlette.convertors import Convertor, register_url_convertor
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.routing import Route

import airbo
from airbo.lab import (
    AlreadyTold,
    Campaign,
    CampaignError,
    Doubtful,
    Experiment,
    FileError,
    Record,
)
from airbo.lab.advice import check_given
from airbo.lab.campaign import user
from airbo.lab.data import told_words
from airbo.lab.events import is_key
from airbo.lab.fields import MOST_AT_ONCE
from airbo.lab.serve.api import Api
from airbo.lab.serve.forms import (
    DESIGN_FIELD,
    EXECUTED_FIELD,
    GIVEN_FIELD,
    NOISE_FIELD,
    OUTCOME_FIELD,
    SET_FIELD,
    EntryError,
    read,
    read_all,
    read_text,
    read_values,
    read_whole_design,
)
from airbo.lab.serve.guard import POLICY_FOR_CHARTS, VISIT, Access, Guard, Visit, is_api
from airbo.lab.serve.jobs import JobError
from airbo.lab.serve.live import LiveCampaign, Snapshot
from airbo.lab.serve.models import Profile, profile
from airbo.lab.serve.view import STATIC, asset_bytes, environment
from airbo.lab.tables import UNKNOWN_COLUMN
from airbo.words import plural, result

MOST_REMEMBERED = 10_000
"""Number of visitors whose messages are kept."""

_PAGES = {
    "/": "work.html",
    "/report": "report.html",
    "/experiments": "experiments.html",
    "/history": "history.html",
    "/run-sheet": "run-sheet.html",
    "/predict": "predict.html",
    "/experiment/{number:experiment}": "experiment.html",
}
_ADDRESSES = {name: path for path, name in _PAGES.items()}
_OURS = re.compile(r"/|/report|/experiments|/history|/experiment/[0-9]{1,9}")
"""Pages that have forms."""
_QUESTIONS = {
    "correct": "Replace the earlier report with this.",
    "sure": "The numbers are right.",
    "again": "It was another run.",
}
_FILES = {
    "report.html": "text/html",
    "experiments.csv": "text/csv",
    "experiments.xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    "history.csv": "text/csv",
}
"""Files to save, and their kind."""
_INSTEAD = {
    "Use --allow-outside if it was really run there.": "Tick the box if it was really run there.",
    UNKNOWN_COLUMN: " Tick the box to skip such columns.",
}
"""What the page says where the command line names an option."""
MOST_WAITING = 10
"""Cards of experiments that wait for a measurement."""


class _Number(Convertor[int]):
    """The number of an experiment in an address; what is longer is no address."""

    regex = "[0-9]{1,9}"

    def convert(self, value: str) -> int:
        return int(value)

    def to_string(self, value: int) -> str:
        return str(value)


register_url_convertor("experiment", _Number())


# -- what the forms do


class KnownAlready(CampaignError):
    """The same design and values are stored already; it may have been another run."""


class Form:
    """One form that was sent; each method does what it says, and answers in a sentence."""

    def __init__(self, campaign: Campaign, entries: Mapping[str, str], number: int = -1) -> None:
        """Take a form.

        Args:
            campaign: What it is about; changes are signed with the name of the visitor.
            entries: What was filled in.
            number: The experiment, where it is about one.
        """
        self.campaign, self.entries, self.number = campaign, entries, number
        self.settings, self.key = campaign.settings, key_of(entries)

    def _is_ticked(self, name: str) -> bool:
        return name in self.entries

    @property
    def _note(self) -> str | None:
        return self.entries.get("note", "").strip() or None

    def tell(self) -> str:
        """Store what an experiment gave."""
        values, executed, moved, noise = read_all(
            lambda: read_values(self.settings, self.entries),
            *(lambda p=p: read(self.settings, self.entries, p)
              for p in (EXECUTED_FIELD, SET_FIELD, NOISE_FIELD)),
        )  # fmt: skip
        is_whole = self._is_ticked("whole")  # the form shows all that was told before
        if is_whole:
            self._check_kept(values)
        elif self.campaign.experiment(self.number).is_pending:
            is_whole = any(name.startswith(EXECUTED_FIELD) for name in self.entries)
        told = self.campaign.tell(
            self.number,
            values,
            design=moved or None,
            executed=executed if executed or is_whole else None,
            noise=noise or None,
            correct=self._is_ticked("correct"),
            sure=self._is_ticked("sure"),
            allow_outside=self._is_ticked("sure"),
            note=self._note,
            key=self.key,
        )
        return told_words(self.settings, told)

    def _check_kept(self, values: Mapping[str, float]) -> None:
        """Refuse a correction that would remove an outcome: what was measured earlier stays."""
        gone = [n for n in self.campaign.experiment(self.number).outcomes if n not in values]
        text = "This was reported before. Enter another value, or undo the report."
        if gone:
            raise EntryError({OUTCOME_FIELD + name: text for name in gone})

    def no_value(self, **how: bool) -> str:
        """Store that an experiment gave no value: it failed, or was not run."""
        [told] = self.campaign.tell_all(
            [(self.number, None)],
            correct=self._is_ticked("correct"),
            note=self._note,
            key=self.key,
            **how,
        )
        return told_words(self.settings, told)

    def add(self) -> str:
        """Store an experiment that nobody asked for."""
        design, values, executed = read_all(
            lambda: read_whole_design(self.settings, self.entries),
            lambda: read_values(self.settings, self.entries),
            lambda: read(self.settings, self.entries, EXECUTED_FIELD),
        )
        if not self._is_ticked("again"):
            self._check_new(design, values)
        told = self.campaign.tell(
            design,
            values,
            executed=executed or None,
            allow_outside=self._is_ticked("outside"),
            sure=self._is_ticked("sure"),
            again=self._is_ticked("again"),
            note=self._note,
            key=self.key,
        )
        return told_words(self.settings, told)

    def _check_new(self, design: Mapping[str, Any], values: Mapping[str, float]) -> None:
        record = self.campaign.record()
        if self.key is not None and record.numbers_of(self.key):
            return  # the same form again
        for e in record.experiments:
            if e.design == design and e.outcomes == values:
                raise KnownAlready(
                    f"Experiment {e.number} has this design and this value already. "
                    "Nothing was stored."
                )

    def note(self) -> str:
        """Write a note."""
        text = read_text(self.entries, "note", "Write something first.")
        self.campaign.note(self.number, text, key=self.key)
        return f"Noted on experiment {self.number}."

    def exclude(self) -> str:
        """Leave an experiment out of the model."""
        why = read_text(self.entries, "why", "Say why, for those who read it later.")
        self.campaign.exclude(self.number, why, key=self.key)
        return f"Experiment {self.number} is left out of the model."

    def include(self) -> str:
        """Include an experiment in the model again."""
        self.campaign.include(self.number, key=self.key)
        return f"Experiment {self.number} counts in the model again."

    def take_table(self) -> str:
        """Store the experiments of a table that was pasted: all of them, or none."""
        text = read_text(self.entries, "table", "Paste a table first, with its header.")
        try:
            done = self.campaign.import_table(
                io.StringIO(text),
                again=self._is_ticked("again"),
                allow_outside=self._is_ticked("outside"),
                ignore_others=self._is_ticked("others"),
                sure=self._is_ticked("sure"),
            )
        except FileError as error:
            listed = "\n".join(_without_options(str(mistake)) for mistake in error.mistakes)
            raise EntryError({"table": f"Nothing was stored.\n{listed}"}) from None
        count = plural(len(done.numbers), "experiment")
        if done.already:
            raise KnownAlready(f"In the campaign already: {count}. Nothing was stored.")
        said = f"Imported {count}, as number {min(done.numbers)} to {max(done.numbers)}."
        return f"{said} {done.repeated_words}".strip()

    def undo(self) -> str:
        """Take back the last change, if it is still the one that the visitor saw."""
        last = self.campaign.record().last_change
        if not last or last[0].call != self.entries.get("change"):
            raise CampaignError(
                "There is a newer change, or this one was taken back already. Look at the history."
            )
        taken_back = [str(change) for change in self.campaign.undo(key=self.key)]
        return f"Taken back: {'; '.join(taken_back)}."


def how_many(entries: Mapping[str, str]) -> int:
    """Read how many designs are wanted."""
    text = entries.get("n", "1").strip()
    if text not in map(str, range(1, MOST_AT_ONCE + 1)):
        raise EntryError({"n": f"Ask for 1 to {MOST_AT_ONCE} designs, not {text[:20]!r}."})
    return int(text)


def _without_options(text: str) -> str:
    for option, instead in _INSTEAD.items():
        text = text.replace(option, instead)
    return text


def key_of(entries: Mapping[str, str]) -> str | None:
    """Return the key of a form: the same form twice counts once."""
    key = entries.get("key", "")
    return key if is_key(key) and " " not in key and len(key) < 100 else None


_POSTS: dict[str, Callable[[Form], str]] = {
    "/tell/{number:experiment}": Form.tell,
    "/fail/{number:experiment}": Form.no_value,
    "/infeasible/{number:experiment}": functools.partial(Form.no_value, infeasible=True),
    "/give-up/{number:experiment}": functools.partial(Form.no_value, gave_up=True),
    "/note/{number:experiment}": Form.note,
    "/exclude/{number:experiment}": Form.exclude,
    "/include/{number:experiment}": Form.include,
    "/add": Form.add,
    "/import": Form.take_table,
    "/undo": Form.undo,
}


# -- what visitors are told


class Messages:
    """Keeps what visitors are told on the next page that they see."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._by_session: OrderedDict[str, list[tuple[str, str]]] = OrderedDict()

    def add(self, session: str, text: str, undo: str) -> None:
        """Tell a visitor something, and which call can be taken back from there; empty: none."""
        with self._lock:
            self._by_session.setdefault(session, []).append((text, undo))
            while len(self._by_session) > MOST_REMEMBERED:
                self._by_session.popitem(last=False)

    def take(self, session: str) -> list[tuple[str, str]]:
        """Return what a visitor has not been told yet."""
        with self._lock:
            return self._by_session.pop(session, [])


@dataclass(frozen=True)
class Refusal:
    """Why a form was rejected; its entries are kept."""

    part: str
    """Which part of the page it belongs to."""
    text: str
    mistakes: Mapping[str, str] = field(default_factory=dict)
    entries: Mapping[str, str] = field(default_factory=dict)
    offer: str = ""
    """What may have been meant: ``correct``, ``sure`` or ``again``."""
    status: int = 422

    @property
    def questions(self) -> dict[str, str]:
        """What the visitor may tick, and what was ticked before."""
        wanted = [name for name in _QUESTIONS if name == self.offer or name in self.entries]
        return {name: _QUESTIONS[name] for name in wanted}

    @property
    def has_details(self) -> bool:
        """Whether something is filled in that is not seen at first."""
        names = (EXECUTED_FIELD, SET_FIELD, NOISE_FIELD, "note")
        return any(text for name, text in self.entries.items() if name.startswith(names))


# -- the pages


class Site:
    """The pages of one campaign."""

    def __init__(self, live: LiveCampaign) -> None:
        """Show a campaign."""
        self.live = live
        self.messages = Messages()
        self._templates = environment()

    def routes(self) -> list[Route]:
        """Return all addresses."""
        acts: dict[str, Callable[[Request, Visit], None]] = {
            "/ask": self._ask,
            "/find-again": lambda request, visit: self.live.find_again(),
            **{path: functools.partial(self._act, act) for path, act in _POSTS.items()},
        }
        return [
            *(Route(p, functools.partial(self._show, name)) for p, name in _PAGES.items()),
            Route("/live", self.version),
            Route("/files/{name}", self.file),
            Route("/static/{version}/{name}", static),
            Route("/name", self.name, methods=["POST"]),
            *(
                Route(path, functools.partial(self._take, act), methods=["POST"])
                for path, act in acts.items()
            ),
        ]

    # -- looking

    def _show(self, name: str, request: Request) -> Response:
        return self._page(request, name, request.path_params.get("number"))

    def version(self, request: Request) -> Response:
        """Say which version of the page is the latest."""
        try:
            latest = self.live.look().version
        except CampaignError as error:
            latest = str(error)
        return JSONResponse({"version": latest})

    def file(self, request: Request) -> Response:
        """Send a file to save."""
        name = request.path_params["name"]
        if name not in _FILES:
            raise HTTPException(404)
        try:
            title = self.live.snapshot().settings.name
            content = self.live.make_file(name)
        except (CampaignError, JobError) as error:
            return self._said("refused.html", 503, text=str(error), is_ours=False)
        save = f"attachment; filename*=UTF-8''{quote(f'{title} {name}', safe='')}"
        headers = {"Content-Disposition": save}
        return Response(content, media_type=_FILES[name], headers=headers)

    def _said(self, name: str, status: int, **what: Any) -> Response:
        return HTMLResponse(self._templates.get_template(name).render(**what), status)

    def _page(
        self,
        request: Request,
        name: str,
        number: int | None = None,
        refusal: Refusal | None = None,
    ) -> Response:
        visit: Visit = request.scope[VISIT]
        try:
            view = self.live.look()
        except CampaignError as error:
            return self._said("broken.html", 503, text=str(error), live=str(error))
        snapshot = view.snapshot
        profile = None
        if name == "predict.html":
            profile, refusal = self._profile(request, snapshot)
        record = snapshot.record
        if number is not None and number not in record.by_number:
            raise HTTPException(404)
        waiting = [experiment for experiment, _ in reversed(snapshot.status.waiting)][:MOST_WAITING]
        sent, answered = (_sent_about(refusal, kind, record) for kind in ("w", "e"))
        html = self._templates.get_template(name).render(
            visit=visit,
            page=name.removesuffix(".html"),
            here=f"/experiment/{number}" if number is not None else _ADDRESSES[name],
            settings=snapshot.settings,
            record=record,
            status=snapshot.status,
            n_known=snapshot.n_known,
            experiment=None if number is None else record.by_number[number],
            # somebody else answered it while this visitor filled in its form
            answered=None if answered is None or answered.is_pending else answered,
            waiting=waiting if sent is None or sent in waiting else [sent, *waiting],
            found=view.found,
            n_choosing=view.n_choosing,
            choosing_error=view.choosing_error,
            refusal=refusal,
            profile=profile,
            messages=self.messages.take(visit.session),
            live=view.version,
            most_at_once=MOST_AT_ONCE,
            version=airbo.__version__,
        )
        response = HTMLResponse(html, 200 if refusal is None else refusal.status)
        if name == "report.html":
            response.headers["Content-Security-Policy"] = POLICY_FOR_CHARTS
        return response

    def _profile(
        self, request: Request, snapshot: Snapshot
    ) -> tuple[Profile | None, Refusal | None]:
        """Return what to expect at the settings in the address, or why that cannot be said."""
        entries = dict(request.query_params)
        if not snapshot.n_known:
            return None, None
        try:
            design = read(snapshot.settings, entries, DESIGN_FIELD)
            return self.live.ask_models(profile, design), None
        except EntryError as error:
            return None, Refusal("profile", "", error.mistakes, entries)
        except JobError as error:
            return None, Refusal("profile", str(error), {}, entries)

    # -- changing

    def _take(self, act: Callable[[Request, Visit], None], request: Request) -> Response:
        """Take a form; its entries are kept if something is wrong with it."""
        visit: Visit = request.scope[VISIT]
        try:
            act(request, visit)
        except (EntryError, CampaignError) as error:
            return self._again(request, visit, error)
        return RedirectResponse(_page_before(visit), 303)

    def _again(self, request: Request, visit: Visit, error: Exception) -> Response:
        """Show the page with the form again, its entries, and what is wrong with them."""
        refusal = self._refusal(error, request.path_params.get("number"), visit)
        back = _page_before(visit)
        number = int(back.rpartition("/")[2]) if back.startswith("/experiment/") else None
        name = "experiment.html" if number is not None else _PAGES[back]
        return self._page(request, name, number, refusal)

    def _ask(self, request: Request, visit: Visit) -> None:
        """Begin to choose designs."""
        settings = self.live.snapshot().settings
        n, given = read_all(
            lambda: how_many(visit.form), lambda: read(settings, visit.form, GIVEN_FIELD)
        )
        given = check_given(settings, given)
        self.live.ask(n, _signature(visit), key_of(visit.form), given)

    def _act(self, act: Callable[[Form], str], request: Request, visit: Visit) -> None:
        """Change the campaign, signed by the visitor, and remember how to take it back."""

        def use(campaign: Campaign) -> tuple[str, str]:
            signed = campaign.signed(_signature(visit))
            n_before = len(campaign.record().history)
            text = act(Form(signed, visit.form, request.path_params.get("number", -1)))
            new = campaign.record().history[n_before:]  # others may have written meanwhile
            own = [c.call for c in new if c.undoable and c.by == signed.by]
            return text, own[-1] if own else ""

        self.messages.add(visit.session, *self.live.use(use))

    def _refusal(self, error: Exception, about: int | None, visit: Visit) -> Refusal:
        """Say what is wrong with a form, and what may have been meant."""
        part, form = visit.form.get("part", ""), visit.form
        if isinstance(error, EntryError):
            return Refusal(part, "", error.mistakes, form)
        if isinstance(error, Doubtful):
            return Refusal(part, f"{' '.join(error.doubts)} Nothing was stored.", {}, form, "sure")
        if isinstance(error, KnownAlready):
            return Refusal(part, str(error), {}, form, "again", 409)
        if isinstance(error, AlreadyTold) and about is not None:
            snapshot = self.live.snapshot()
            e = snapshot.record.by_number[about]
            by = f" by {e.by}" if e.by else ""
            text = (
                f"Experiment {about} has an outcome already: "
                f"{result(e, snapshot.settings.units)}, reported{by}. Nothing was changed."
            )
            return Refusal(part, text, {}, form, "correct", 409)
        return Refusal(part, str(error), {}, form)

    def name(self, request: Request) -> Response:
        """Remember the name of a visitor, who signs changes with it."""
        visit: Visit = request.scope[VISIT]
        response = RedirectResponse(_page_before(visit), 303)
        name = " ".join(visit.form.get("name", "").split())[:40]
        response.set_cookie(
            visit.name_cookie, quote(name), max_age=365 * 24 * 3600, httponly=True, samesite="lax"
        )
        return response


def _signature(visit: Visit) -> str:
    """Return with which name a visitor signs changes."""
    return visit.name or f"{user()}, on the page"


def _page_before(visit: Visit) -> str:
    back = visit.form.get("from", "/")
    return back if _OURS.fullmatch(back) else "/"


def _sent_about(refusal: Refusal | None, kind: str, record: Record) -> Experiment | None:
    """Return the experiment that a refused form of a kind is about."""
    found = re.fullmatch(f"{kind}([0-9]{{1,9}})", refusal.part) if refusal is not None else None
    return record.by_number.get(int(found[1])) if found else None


# -- files that never change


def static(request: Request) -> Response:
    """Send a file of the package, or Plotly; a browser keeps it."""
    name = request.path_params["name"]
    if name not in STATIC:
        raise HTTPException(404)
    _, content, packed = asset_bytes(name)
    headers = {"Cache-Control": "private, max-age=31536000, immutable", "Vary": "Accept-Encoding"}
    if "gzip" in request.headers.get("accept-encoding", ""):
        content, headers = packed, {**headers, "Content-Encoding": "gzip"}
    return Response(content, media_type=STATIC[name][2], headers=headers)


def _refused(request: Request, error: Exception) -> Response:
    """Answer what is not there, or what went wrong."""
    status = error.status_code if isinstance(error, HTTPException) else 500
    text = "There is no such page." if status < 500 else "Something went wrong inside airbo."
    if is_api(request.scope):
        text = "Another method is needed." if status == 405 else text
        return JSONResponse({"error": text}, status, getattr(error, "headers", None))
    template = environment().get_template("refused.html")
    return HTMLResponse(template.render(text=text, is_ours=status == 500), status)


def make_app(live: LiveCampaign, access: Access) -> Guard:
    """Make the web application; the guard stands before everything."""
    errors: Any = {404: _refused, 405: _refused, 500: _refused}
    routes = [*Site(live).routes(), *Api(live).routes()]
    return Guard(Starlette(routes=routes, exception_handlers=errors), access)
