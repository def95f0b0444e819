"""The verbs of a campaign as JSON, for programs: LabVIEW, MATLAB, a PLC.

A verb takes a JSON object and answers with the one that ``airbo ... --json`` prints. The fields are
those of the command line (``airbo.lab.fields``); they check what is sent, and become the OpenAPI
document. The guard stands before it as before the forms; a token comes as ``Authorization: Bearer
TOKEN``.
"""

import functools
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

import airbo
from airbo.lab import AlreadyTold, CampaignError, Settings, StorageError
from airbo.lab.advice import check_given
from airbo.lab.campaign import user
from airbo.lab.data import experiment_data, status_data, told_data
from airbo.lab.fields import FIELDS, Field, Schema
from airbo.lab.serve.guard import VISIT, Visit
from airbo.lab.serve.jobs import JobError
from airbo.lab.serve.live import LiveCampaign
from airbo.lab.serve.models import advise, expect
from airbo.lab.serve.view import environment
from airbo.words import nearest, typed_value

_TYPES: dict[str, type | tuple[type, ...]] = {
    "integer": int, "number": (int, float), "boolean": bool, "string": str, "object": dict,
}  # fmt: skip
_WORDS = {"integer": "a whole number", "number": "a number", "boolean": "true or false",
          "string": "a text", "object": "an object of names and values"}  # fmt: skip


@dataclass(frozen=True)
class Verb:
    """One verb: what it does, and what it takes."""

    says: str
    takes: Mapping[str, Field]
    """The fields of the object that it takes."""
    changes: bool = False
    """Whether it changes the campaign; what does not may be asked by GET, too."""
    needed: tuple[str, ...] = ()
    named: str = ""
    """The field that takes the names and values of a query."""

    def fields(self, settings: Settings) -> dict[str, Schema]:
        """Describe the fields with the names, units and ranges of a campaign file."""
        several = () if settings.is_single else ("value",)
        return {n: f.schema(settings) for n, f in self.takes.items() if n not in several}


def _fields(names: str) -> dict[str, Field]:
    return {name: FIELDS[name] for name in names.split()}


VERBS: Mapping[str, Verb] = {
    "ask": Verb("Choose the next designs; they are then pending.",
                _fields("n given key by"), changes=True),
    "tell": Verb("Report what an experiment gave.",
                 _fields("trial design value outcomes executed noise correct again allow_outside "
                         "sure note key by"), changes=True),
    "fail": Verb("Report that an experiment gave no value.",
                 _fields("trial infeasible gave_up why correct key by"), True, ("trial",)),
    "recommend": Verb("Say which design to use.",
                      _fields("given anywhere tolerance"), named="given"),
    "predict": Verb("Say what to expect at a design.",
                    {"design": FIELDS["settings"], **_fields("allow_outside")}, named="design"),
    "status": Verb("Say where the campaign stands.", {}),
}  # fmt: skip


# -- what a verb does


class Api:
    """Answers programs, for one campaign."""

    def __init__(self, live: LiveCampaign) -> None:
        """Answer for a campaign."""
        self.live = live

    def routes(self) -> list[Route]:
        """Return all addresses."""
        return [
            Route("/api", self.page),
            Route("/api/openapi.json", lambda request: answer(openapi(self._settings))),
            *(
                Route(
                    f"/api/{name}",
                    functools.partial(self._endpoint, name),
                    methods=["POST"] if verb.changes else ["GET", "POST"],
                )
                for name, verb in VERBS.items()
            ),
        ]

    @property
    def _settings(self) -> Settings:
        return self.live.snapshot().settings

    def page(self, request: Request) -> Response:
        """Show what can be asked, for people."""
        settings, place = self._settings, f"{request.url.scheme}://{request.headers['host']}"
        shown = [(name, verb, verb.fields(settings)) for name, verb in VERBS.items()]
        template = environment().get_template("api.html")
        return HTMLResponse(template.render(settings=settings, verbs=shown, place=place))

    def _endpoint(self, name: str, request: Request) -> Response:
        visit: Visit = request.scope[VISIT]
        try:
            said = self._said(request, VERBS[name], visit)
            by = said.pop("by", None) or visit.name or f"{user()}, JSON"
            return answer(getattr(self, name)(said, by))
        except CampaignError as error:
            status = 409 if isinstance(error, AlreadyTold) else 422
            status = 503 if isinstance(error, StorageError) else status
            return answer({"error": str(error)}, status)
        except JobError as error:
            return answer({"error": str(error)}, 422 if error.is_refused else 503)

    def _said(self, request: Request, verb: Verb, visit: Visit) -> dict[str, Any]:
        """Return the fields that were sent, checked."""
        if request.method != "POST":
            whole, query = self._settings.space.whole, dict(request.query_params)
            try:
                named = {name: typed_value(whole, name, text) for name, text in query.items()}
            except ValueError as error:
                raise CampaignError(str(error)) from None
            return {verb.named: named} if named and verb.named else {}
        found, fields = visit.body, verb.fields(self._settings)
        if not isinstance(found, dict):
            raise CampaignError(f"Send a JSON object with some of the fields {[*fields]}.")
        if "key" in fields and "key" not in found and "idempotency-key" in request.headers:
            found = {**found, "key": request.headers["idempotency-key"]}
        for name in found:
            if name not in fields:
                raise CampaignError(f"unknown field {name!r}{nearest(name, fields)}")
        for name in verb.needed:
            if name not in found:
                raise CampaignError(f"{name} is missing.")
        return {name: _checked(name, value, fields[name]) for name, value in found.items()}

    def ask(self, said: dict[str, Any], by: str) -> dict[str, Any]:
        """Choose designs; the answer waits for them."""
        given = check_given(self._settings, said.get("given"))
        numbers = self.live.ask(said.get("n", 1), by, said.get("key"), given).result()
        now = self.live.snapshot()
        return {"asked": [experiment_data(now.settings, now.record.by_number[n]) for n in numbers]}

    def tell(self, said: dict[str, Any], by: str) -> dict[str, Any]:
        """Store what an experiment gave."""
        value = said.pop("value", None)
        outcomes = said.pop("outcomes", None)
        if (value is None) == (not outcomes):
            raise CampaignError("Send either value or outcomes. Without any: /api/fail.")
        design, trial = said.pop("design", None), said.pop("trial", None)
        if trial is None and design is None:
            raise CampaignError("Send the number of the trial, or a design.")
        what = design if trial is None else trial
        moved = None if trial is None else design
        told = self.live.use(
            lambda campaign: campaign.signed(by).tell(
                what, outcomes if value is None else value, design=moved, **said
            )
        )
        return {"told": told_data(self._settings, [told])}

    def fail(self, said: dict[str, Any], by: str) -> dict[str, Any]:
        """Store that an experiment gave no value."""
        trial, why = said.pop("trial"), said.pop("why", None)
        told = self.live.use(
            lambda campaign: campaign.signed(by).tell_all([(trial, None)], note=why, **said)
        )
        return {"told": told_data(self._settings, told)}

    def recommend(self, said: dict[str, Any], by: str) -> dict[str, Any]:
        """Say which design to use."""
        anywhere = said.get("anywhere")
        policy = None if anywhere is None else "anywhere" if anywhere else "observed"
        found = self.live.ask_models(advise, policy, said.get("tolerance"), said.get("given"))
        return dict(found)

    def predict(self, said: dict[str, Any], by: str) -> dict[str, Any]:
        """Say what to expect."""
        allow_outside = said.get("allow_outside", False)
        return dict(self.live.ask_models(expect, said.get("design") or {}, allow_outside))

    def status(self, said: dict[str, Any], by: str) -> dict[str, Any]:
        """Say where the campaign stands."""
        now = self.live.snapshot()
        return status_data(now.settings, now.status)


def _checked(name: str, value: Any, schema: Schema) -> Any:
    """Refuse what is not of the declared kind; what it may be, the campaign says."""
    kind = schema["type"]
    # JSON has one kind of number: 3.0 is a whole number, too
    if kind == "integer" and isinstance(value, float) and value.is_integer():
        value = int(value)
    if not isinstance(value, _TYPES[kind]) or (isinstance(value, bool) and kind != "boolean"):
        raise CampaignError(f"{name} must be {_WORDS[kind]}, got {value!r}.")
    size = len(value) if isinstance(value, str) else value
    low = schema.get("minLength", schema.get("minimum"))
    high = schema.get("maxLength", schema.get("maximum"))
    if (low is not None and not size >= low) or (high is not None and not size <= high):
        what = "characters" if isinstance(value, str) else "in size"
        limits = f"at least {low}" if high is None else f"{low or 0} to {high}"
        raise CampaignError(f"{name} must have {limits} {what}, got {size}.")
    return value


def answer(data: Mapping[str, Any], status: int = 200) -> Response:
    """Answer with JSON; a number that is not finite is null."""
    text = json.dumps(_plain(data), default=str, allow_nan=False)
    return Response(text, status, media_type="application/json")


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(name): _plain(v) for name, v in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


# -- the OpenAPI document


_CODES = {
    "400": "This is no JSON.",
    "401": "A token is needed.",
    "403": "Not allowed from here.",
    "409": "The experiment has another outcome already.",
    "413": "This is too long.",
    "415": "Only application/json is understood.",
    "422": "Something is wrong with what was sent. Nothing was changed.",
    "503": "The storage cannot be used, or the work was stopped.",
}


def openapi(settings: Settings) -> dict[str, Any]:
    """Describe all verbs of one campaign, with the names and ranges of its file."""
    return {
        "openapi": "3.1.0",
        "info": {"title": f"airbo: {settings.name}", "version": airbo.__version__},
        "paths": {f"/api/{name}": _path(name, verb, settings) for name, verb in VERBS.items()},
        "components": {"securitySchemes": {"token": {"type": "http", "scheme": "bearer"}}},
        "security": [{"token": []}, {}],
    }


def _path(name: str, verb: Verb, settings: Settings) -> dict[str, Any]:
    fields = verb.fields(settings)
    failed = {"type": "object", "properties": {"error": {"type": "string"}}, "required": ["error"]}
    responses = {code: _content(failed, description=text) for code, text in _CODES.items()}
    prints = f"As airbo {name} --json prints it."
    responses["200"] = _content({"type": "object"}, description=prints)
    body = {"type": "object", "properties": fields, "additionalProperties": False}
    body |= {"required": list(verb.needed)} if verb.needed else {}
    query = fields.get(verb.named, {}).get("properties", {})
    taken: dict[str, Schema] = {
        "get": {"parameters": [{"name": n, "in": "query", "schema": s} for n, s in query.items()]},
        "post": {"requestBody": _content(body, required=True)},
    }
    return {
        method: {
            "operationId": f"{method}_{name}", "summary": verb.says, "responses": responses, **own
        }
        for method, own in taken.items()
        if method == "post" or not verb.changes
    }  # fmt: skip


def _content(schema: Schema, **more: Any) -> Schema:
    return {**more, "content": {"application/json": {"schema": schema}}}
