"""The pages: what each address shows, and what each form does."""

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.routing import Route

import airbo
from airbo.campaign import AlreadyTold, Campaign, CampaignError, Told
from airbo.serve.desk import Desk, Snapshot
from airbo.serve.entries import (
    EXECUTED_FIELD,
    NOTE_FIELD,
    EntryError,
    read_all,
    read_design,
    read_executed,
    read_values,
)
from airbo.serve.guard import POLICY_FOR_CHARTS, VISIT, Doors, Guard, Visit
from airbo.serve.once import Forms, Messages, Said
from airbo.serve.view import asset_bytes, environment, told_words

MOST_AT_ONCE = 20
"""Designs that one form can ask for."""
_STATIC = {
    "serve.css": "text/css",
    "serve.js": "text/javascript",
    "charts.js": "text/javascript",
    "icon.svg": "image/svg+xml",
    "plotly.js": "text/javascript",
}


@dataclass(frozen=True)
class Trouble:
    """Why a form was not taken; its entries are kept."""

    part: str
    """Which part of the page it belongs to."""
    text: str
    mistakes: Mapping[str, str] = field(default_factory=dict)
    entries: Mapping[str, str] = field(default_factory=dict)
    offer: str = ""
    """``correct`` or ``again``: what may have been meant."""
    status: int = 422

    @property
    def question(self) -> str:
        """What is asked where something may have been meant."""
        return {"correct": "Replace what was told with this."}.get(self.offer, "")

    @property
    def has_details(self) -> bool:
        """Whether something is filled in that is not seen at first."""
        names = (EXECUTED_FIELD, NOTE_FIELD)
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
            "/ask": self.ask,
            "/tell/{number:int}": self.tell,
            "/fail/{number:int}": self.fail,
            "/give-up/{number:int}": self.give_up,
            "/add": self.add,
        }
        return [
            Route("/", self.work),
            Route("/charts", self.charts),
            Route("/experiments", self.experiments),
            Route("/live", self.live),
            Route("/static/{version}/{name}", static),
            *(Route(path, self._taken(act), methods=["POST"]) for path, act in posts.items()),
        ]

    # -- looking

    def work(self, request: Request) -> Response:
        """Show what to run next, and take what came out."""
        return self._page(request, "work.html")

    def charts(self, request: Request) -> Response:
        """Show the charts of the report."""
        response = self._page(request, "charts.html")
        response.headers["Content-Security-Policy"] = POLICY_FOR_CHARTS
        return response

    def experiments(self, request: Request) -> Response:
        """Show all experiments."""
        return self._page(request, "experiments.html")

    def live(self, request: Request) -> Response:
        """Say which version of the page is the latest."""
        return JSONResponse({"version": self.desk.version()})

    def _page(self, request: Request, name: str, trouble: Trouble | None = None) -> Response:
        visit: Visit = request.scope[VISIT]
        try:
            snapshot, looked = self.desk.snapshot(), self.desk.looked()
        except CampaignError as error:
            return self._broken(visit, error)
        html = self._templates.get_template(name).render(
            visit=visit,
            page=name.removesuffix(".html"),
            settings=snapshot.settings,
            snapshot=snapshot,
            status=snapshot.status,
            looked=looked,
            choosing=self.desk.choosing,
            trouble=trouble,
            said=self.messages.take(visit.session),
            live=self.desk.version(),
            most_at_once=MOST_AT_ONCE,
            version=airbo.__version__,
        )
        return HTMLResponse(html, 200 if trouble is None else trouble.status)

    def _broken(self, visit: Visit, error: CampaignError) -> Response:
        html = self._templates.get_template("broken.html").render(
            text=str(error), live=self.desk.version(), version=airbo.__version__
        )
        return HTMLResponse(html, 503)

    # -- changing

    def _taken(self, act: Callable[[Request, Campaign, Visit], str]) -> Callable[..., Response]:
        """Take a form: once, with the entries kept if something is wrong with it."""

        @functools.wraps(act)
        def endpoint(request: Request) -> Response:
            visit: Visit = request.scope[VISIT]
            part = visit.form.get("part", "")
            if visit.is_stale:
                again = "airbo serve was started again meanwhile. Please press the button once more."
                return self._page(request, "work.html", Trouble(part, again, {}, visit.form))
            try:
                where = self.forms.once(
                    visit.form.get("once", ""),
                    lambda: self.desk.use(lambda campaign: act(request, campaign, visit)),
                )
            except (EntryError, CampaignError) as error:
                return self._page(request, "work.html", trouble_of(error, part, visit.form))
            return RedirectResponse(where, 303)

        return endpoint

    def ask(self, request: Request, campaign: Campaign, visit: Visit) -> str:
        """Begin to choose designs."""
        text = visit.form.get("n", "1").strip()
        if not text.isascii() or not text.isdigit() or not 1 <= int(text[:9]) <= MOST_AT_ONCE:
            raise EntryError({"n": f"Ask for 1 to {MOST_AT_ONCE} designs, not {text!r}."})
        self.desk.ask(int(text))
        return "/"

    def tell(self, request: Request, campaign: Campaign, visit: Visit) -> str:
        """Store what an experiment gave."""
        form, settings = visit.form, campaign.settings
        value, executed = read_all(
            lambda: read_values(settings, form), lambda: read_executed(settings, form)
        )
        number = request.path_params["number"]
        told = campaign.tell(number, value, executed=executed or None, correct="correct" in form)
        return self._done(campaign, visit, told)

    def fail(self, request: Request, campaign: Campaign, visit: Visit) -> str:
        """Store that an experiment was tried and gave no value."""
        number = request.path_params["number"]
        return self._done(campaign, visit, campaign.fail(number, correct="correct" in visit.form))

    def give_up(self, request: Request, campaign: Campaign, visit: Visit) -> str:
        """Store that nobody will do an experiment."""
        return self._done(campaign, visit, campaign.give_up(request.path_params["number"]))

    def add(self, request: Request, campaign: Campaign, visit: Visit) -> str:
        """Store an experiment that nobody asked for."""
        form, settings = visit.form, campaign.settings
        design, value = read_all(
            lambda: read_design(settings, form), lambda: read_values(settings, form)
        )
        told = campaign.tell(
            design, value, again="again" in form, allow_outside="outside" in form
        )
        return self._done(campaign, visit, told)

    def _done(self, campaign: Campaign, visit: Visit, told: Told) -> str:
        e = told.experiment
        outcome = told_words(campaign.settings, e)
        text = {
            "told": f"Experiment {e.number}: {outcome}.",
            "already told": f"Experiment {e.number} was told before: {outcome}. Nothing changed.",
            "corrected": f"Experiment {e.number} is corrected: {outcome}.",
            "added": f"Added as experiment {e.number}: {outcome}.",
        }[told.done]
        self.messages.add(visit.session, Said(text))
        return "/"


def trouble_of(error: Exception, part: str, form: Mapping[str, str]) -> Trouble:
    """Say what is wrong with a form, and what may have been meant."""
    if isinstance(error, EntryError):
        return Trouble(part, "", error.mistakes, form)
    if isinstance(error, AlreadyTold):
        return Trouble(part, str(error), {}, form, offer="correct", status=409)
    return Trouble(part, str(error), {}, form)


# -- files that never change


def static(request: Request) -> Response:
    """Send a file of the package, or Plotly; a browser keeps it."""
    name = request.path_params["name"]
    if name not in _STATIC:
        raise HTTPException(404, "There is no such page.")
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


def make_app(desk: Desk, doors: Doors) -> Guard:
    """Make the web application; the guard stands before everything."""
    errors = {404: _refused, 405: _refused, 500: _refused}
    return Guard(Starlette(routes=Site(desk).routes(), exception_handlers=errors), doors)
