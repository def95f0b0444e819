"""The pages: what each address shows, and which form goes where."""

import functools
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.convertors import Convertor, register_url_convertor
from starlette.routing import Route

import airbo
from airbo.campaign import AlreadyTold, Campaign, CampaignError, Experiment
from airbo.campaign.errors import Doubtful
from airbo.serve.clerk import MOST_AT_ONCE, Clerk, KnownAlready
from airbo.serve.desk import Desk
from airbo.serve.entries import EXECUTED_FIELD, NOTE_FIELD, SET_FIELD, EntryError
from airbo.serve.guard import POLICY_FOR_CHARTS, VISIT, Access, Guard, Visit
from airbo.serve.once import Forms, Messages, Said
from airbo.serve.view import asset_bytes, environment, told_words

_STATIC = {
    "serve.css": "text/css",
    "serve.js": "text/javascript",
    "charts.js": "text/javascript",
    "icon.svg": "image/svg+xml",
    "plotly.js": "text/javascript",
}


class _Number(Convertor[int]):
    """The number of an experiment in an address; what is longer is no address."""

    regex = "[0-9]{1,9}"

    def convert(self, value: str) -> int:
        return int(value)

    def to_string(self, value: int) -> str:
        return str(value)


register_url_convertor("experiment", _Number())
_OURS = re.compile(r"/|/history|/experiment/\d{1,9}")
"""Pages that have forms."""
_QUESTIONS = {
    "correct": "Replace what was told with this.",
    "sure": "The numbers are right.",
    "again": "This was another run.",
}


@dataclass(frozen=True)
class Trouble:
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
        names = (EXECUTED_FIELD, SET_FIELD, NOTE_FIELD)
        return any(text for name, text in self.entries.items() if name.startswith(names))


class Site:
    """The pages of one campaign."""

    def __init__(self, desk: Desk) -> None:
        """Show a campaign."""
        self.desk = desk
        self.forms, self.messages = Forms(), Messages()
        self._templates = environment()

    def routes(self) -> list[Route]:
        """Return all addresses."""
        posts = {
            "/tell/{number:experiment}": Clerk.tell,
            "/fail/{number:experiment}": Clerk.fail,
            "/infeasible/{number:experiment}": Clerk.cannot_be_used,
            "/give-up/{number:experiment}": Clerk.give_up,
            "/note/{number:experiment}": Clerk.note,
            "/exclude/{number:experiment}": Clerk.exclude,
            "/include/{number:experiment}": Clerk.include,
            "/add": Clerk.add,
            "/undo": Clerk.undo,
        }
        return [
            *(Route(path, self._shown(path, name)) for path, name in _PAGES.items()),
            Route("/live", self.live),
            Route("/static/{version}/{name}", static),
            Route("/ask", self._taken(self._ask), methods=["POST"]),
            Route("/name", self.name, methods=["POST"]),
            Route("/look-again", self._taken(self._look_again), methods=["POST"]),
            *(
                Route(path, self._taken(functools.partial(self._act, act)), methods=["POST"])
                for path, act in posts.items()
            ),
        ]

    # -- looking

    def _shown(self, path: str, name: str) -> Callable[[Request], Response]:
        def endpoint(request: Request) -> Response:
            response = self._page(request, name, request.path_params.get("number"))
            if name == "charts.html":
                response.headers["Content-Security-Policy"] = POLICY_FOR_CHARTS
            return response

        return endpoint

    def live(self, request: Request) -> Response:
        """Say which version of the page is the latest."""
        self.desk.looked()
        return JSONResponse({"version": self.desk.version()})

    def _page(
        self,
        request: Request,
        name: str,
        number: int | None = None,
        trouble: Trouble | None = None,
    ) -> Response:
        visit: Visit = request.scope[VISIT]
        try:
            snapshot, looked = self.desk.snapshot(), self.desk.looked()
        except CampaignError as error:
            template = self._templates.get_template("broken.html")
            return HTMLResponse(template.render(text=str(error), live=self.desk.version()), 503)
        by_number = {e.number: e for e in snapshot.experiments}
        if number is not None and number not in by_number:
            raise HTTPException(404)
        html = self._templates.get_template(name).render(
            visit=visit,
            page=name.removesuffix(".html"),
            here=f"/experiment/{number}" if number is not None else _ADDRESSES[name],
            settings=snapshot.settings,
            snapshot=snapshot,
            status=snapshot.status,
            experiment=by_number.get(-1 if number is None else number),
            answered=_answered(trouble, by_number),
            history=snapshot.history,
            last=snapshot.last,
            looked=looked,
            choosing=self.desk.choosing,
            trouble=trouble,
            said=self.messages.take(visit.session),
            live=self.desk.version(),
            most_at_once=MOST_AT_ONCE,
            version=airbo.__version__,
        )
        return HTMLResponse(html, 200 if trouble is None else trouble.status)

    # -- changing

    def _taken(self, act: Callable[[Request, Visit], None]) -> Callable[[Request], Response]:
        """Take a form: once, and with its entries kept if something is wrong with it."""

        def endpoint(request: Request) -> Response:
            visit: Visit = request.scope[VISIT]
            back = visit.form.get("from", "/")
            back = back if _OURS.fullmatch(back) else "/"

            def once() -> str:
                act(request, visit)
                return back

            try:
                return RedirectResponse(self.forms.once(visit.form.get("once", ""), once), 303)
            except (EntryError, CampaignError) as error:
                return self._again(request, visit, back, error)

        return endpoint

    def _again(self, request: Request, visit: Visit, back: str, error: Exception) -> Response:
        """Show the page with the form again, its entries, and what is wrong with them."""
        about = request.path_params.get("number")
        trouble = self._trouble(error, about, visit)
        number = int(back.rpartition("/")[2]) if back.startswith("/experiment/") else None
        name = "experiment.html" if number is not None else _PAGES[back]
        return self._page(request, name, number, trouble)

    def _ask(self, request: Request, visit: Visit) -> None:
        """Begin to choose designs."""
        self.desk.ask(self.desk.use(lambda campaign: Clerk(campaign, visit.form).how_many()))

    def _look_again(self, request: Request, visit: Visit) -> None:
        """Begin a look again that failed."""
        self.desk.look_again()

    def _act(self, act: Callable[[Clerk], str], request: Request, visit: Visit) -> None:
        """Change the campaign, signed by the visitor, and remember how to take it back."""

        def use(campaign: Campaign) -> Said:
            signed = campaign.signed(visit.name or f"{campaign.by}, on the page")
            before = {c.call or c.name for c in campaign.history()}
            text = act(Clerk(signed, visit.form, request.path_params.get("number", -1)))
            new = [c.call or c.name for c in campaign.history() if c.what != "undone"]
            return Said(text, undo=" ".join(c for c in dict.fromkeys(new) if c not in before))

        self.messages.add(visit.session, self.desk.use(use))

    def _trouble(self, error: Exception, about: int | None, visit: Visit) -> Trouble:
        """Say what is wrong with a form, and what may have been meant."""
        part, form = visit.form.get("part", ""), visit.form
        if isinstance(error, EntryError):
            return Trouble(part, "", error.mistakes, form)
        if isinstance(error, Doubtful):
            return Trouble(part, f"{' '.join(error.doubts)} Nothing was stored.", {}, form, "sure")
        if isinstance(error, KnownAlready):
            return Trouble(part, str(error), {}, form, "again", 409)
        if isinstance(error, AlreadyTold) and about is not None:
            text = self.desk.use(lambda campaign: _told_before(campaign, about))
            return Trouble(part, text, {}, form, "correct", 409)
        return Trouble(part, str(error), {}, form)

    def name(self, request: Request) -> Response:
        """Remember the name of a visitor, who signs changes with it."""
        visit: Visit = request.scope[VISIT]
        back = visit.form.get("from", "/")
        response = RedirectResponse(back if _OURS.fullmatch(back) else "/", 303)
        name = " ".join(visit.form.get("name", "").split())[:40]
        response.set_cookie(
            visit.name_cookie, quote(name), max_age=365 * 24 * 3600, httponly=True, samesite="lax"
        )
        return response


_PAGES = {
    "/": "work.html",
    "/charts": "charts.html",
    "/experiments": "experiments.html",
    "/history": "history.html",
    "/experiment/{number:experiment}": "experiment.html",
}
_ADDRESSES = {name: path for path, name in _PAGES.items()}


def _answered(trouble: Trouble | None, by_number: Mapping[int, Experiment]) -> Experiment | None:
    """Return the experiment that somebody else answered while this visitor filled in its form."""
    found = re.fullmatch(r"e(\d{1,9})", trouble.part) if trouble is not None else None
    known = by_number.get(int(found[1])) if found else None
    return known if known is not None and not known.is_pending else None


def _told_before(campaign: Campaign, number: int) -> str:
    e = campaign.experiment(number)
    by = f" by {e.by}" if e.by else ""
    return (
        f"Experiment {number} has an outcome already: {told_words(campaign.settings, e)}, "
        f"told{by}. Nothing was changed."
    )


# -- files that never change


def static(request: Request) -> Response:
    """Send a file of the package, or Plotly; a browser keeps it."""
    name = request.path_params["name"]
    if name not in _STATIC:
        raise HTTPException(404)
    _, content, packed = asset_bytes(name)
    headers = {"Cache-Control": "private, max-age=31536000, immutable", "Vary": "Accept-Encoding"}
    if "gzip" in request.headers.get("accept-encoding", ""):
        content, headers = packed, {**headers, "Content-Encoding": "gzip"}
    return Response(content, media_type=_STATIC[name], headers=headers)


def _refused(request: Request, error: Exception) -> Response:
    """Answer what is not there, or what went wrong."""
    status = error.status_code if isinstance(error, HTTPException) else 500
    text = "There is no such page." if status < 500 else "Something went wrong inside airbo."
    template = environment().get_template("refused.html")
    return HTMLResponse(template.render(text=text, is_ours=status == 500), status)


def make_app(desk: Desk, access: Access) -> Guard:
    """Make the web application; the guard stands before everything."""
    errors: Any = {404: _refused, 405: _refused, 500: _refused}
    return Guard(Starlette(routes=Site(desk).routes(), exception_handlers=errors), access)
