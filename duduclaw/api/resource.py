"""What every REST view shares: one workspace, one record of changes and refusals, one way to read bodies."""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from django.db import transaction
from django.db.models import QuerySet
from rest_framework.exceptions import NotAuthenticated, NotFound, ParseError
from rest_framework.generics import GenericAPIView
from rest_framework.permissions import SAFE_METHODS
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.throttling import BaseThrottle

from agents.actions import fields
from agents.models import Role
from agents.principals import TOKEN
from duduclaw.api import errors
from duduclaw.api.paging import Pages
from duduclaw.lib import clock
from duduclaw.lib.rate import Bucket
from mcp import audit, guards
from mcp.errors import InvalidArguments
from mcp.policy import Who

T = TypeVar("T")
VERSION = fields.whole(1, 2**31)
KEY_PARAMETERS = frozenset({"api_key", "apikey", "token", "access_token", "authorization"})


def caller(request: Request) -> Who:
    """The principal that authentication has found."""
    who: object = request.auth
    if not isinstance(who, Who):
        raise NotAuthenticated
    return who


class KeyThrottle(BaseThrottle):
    """The buckets of the choke point, read or write, for what is no tool call."""

    seconds: int | None = None

    def allow_request(self, request: Request, view: Any) -> bool:
        who = caller(request)
        read, write, burst = who.rate
        kind, allowed = ("read", read) if request.method in SAFE_METHODS else ("write", write)
        now = clock.now().timestamp()
        self.seconds = guards.limiter.check(who.key or f"{who.kind}:{who.name}", kind, now, Bucket(allowed, burst))
        return self.seconds is None

    def wait(self) -> float | None:
        return self.seconds


class Resource(GenericAPIView[Any]):
    """A view of one resource. `event` names its changes in the record, `write_role` who may make them."""

    throttle_classes = [KeyThrottle]
    pagination_class = Pages
    write_role = Role.OPERATOR
    event = "policy_changed"
    refusals_recorded = True

    @property
    def who(self) -> Who:
        """The caller."""
        return caller(self.request)

    @property
    def body(self) -> dict[str, Any]:
        """The JSON object that was sent; empty without one. The parser takes nothing else."""
        return dict(self.request.data) if isinstance(self.request.data, dict) else {}

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Refuse keys and NUL characters in the address, then DRF's own checks."""
        for name, value in self.query.items():
            if name.lower() in KEY_PARAMETERS or TOKEN.match(value):
                raise ParseError("send the key in the Authorization header, never in the address", "key_in_url")
            if "\0" in value:
                raise fields.fault(name[:60], "a NUL character is not allowed")
        super().initial(request, *args, **kwargs)
        if any("\0" in str(part) for part in kwargs.values()):
            raise NotFound

    def changed(self, change: Callable[[], T], **details: Any) -> T:
        """Make a change and write its event as the last statement of the same transaction."""
        with transaction.atomic():
            result = change()
            self.tell(self.event, "info", **details)
        return result

    def tell(self, event: str, severity: str, **details: Any) -> None:
        """One row of the security stream about this request."""
        what = {"request": f"{self.request.method} {self.route}", "object": dict(self.kwargs), **details}
        audit.event(self.who.workspace, event, agent=self.who.name, severity=severity, details=what)

    @property
    def route(self) -> str:
        """The route's own text, without ids."""
        match = self.request.resolver_match
        return str(match.route) if match else ""

    def handle_exception(self, exc: Exception) -> Response:
        """The error's answer; a refused write is kept in the record."""
        response = super().handle_exception(exc)
        refused = self.request.method not in SAFE_METHODS and response.status_code in errors.REFUSALS
        if refused and self.refusals_recorded and isinstance(self.request.auth, Who):
            reason = getattr(exc, "reason", "")
            self.tell(
                "rest_refused", "warning", status=response.status_code, error=response.data["error"], reason=reason
            )
        return response

    def finalize_response(self, request: Request, response: Any, *args: Any, **kwargs: Any) -> Any:
        """Nothing that a caller may see is kept by a cache."""
        made = super().finalize_response(request, response, *args, **kwargs)
        made["Cache-Control"] = "no-store"
        return made

    def one(self, rows: QuerySet[Any]) -> Any:
        """The row, or 404 in the same words whether it is absent or another workspace's."""
        row = rows.first()
        if row is None:
            raise NotFound
        return row

    def page(self, rows: QuerySet[Any], show: Callable[[list[Any]], list[Any]] | None = None) -> Response:
        """A page of rows, shown by `show` or by the view's serializer."""
        found = self.paginate_queryset(rows) or []
        data = show(list(found)) if show else self.get_serializer(found, many=True).data
        return self.get_paginated_response(data)

    def of_agent(self, rows: QuerySet[Any]) -> Any:
        """The rows with their agents; only those of one when `?agent=` names it."""
        name = self.query.get("agent")
        return (rows.filter(agent__name=name) if name else rows).select_related("agent")

    @property
    def query(self) -> dict[str, str]:
        """The query parameters; of one that was sent twice the last."""
        return {name: str(value) for name, value in self.request.query_params.items()}

    def filters(self, *names: str) -> dict[str, str]:
        """The query parameters of these names that were sent; blanks ask for nothing."""
        given = self.query
        return {name: given[name] for name in names if given.get(name)}


def take_version(changes: dict[str, Any]) -> int | None:
    """Take the version that the caller has seen out of a body; None when it sent none."""
    seen = changes.pop("version", None)
    return None if seen is None else int(VERSION("version", seen, None))


def read(data: Mapping[str, Any], schema: fields.Schema, *required: str) -> dict[str, Any]:
    """A body checked against a schema of fields: unknown ones are refused by name, null counts as absent."""
    fields.refuse_unknown("", data, schema)
    given = {key: value for key, value in data.items() if value is not None}
    for name in required:
        if name not in given:
            raise InvalidArguments(f"Missing required parameter: {name}", name)
    return fields.merge("", schema, {}, given)
