"""Tools over REST: the same list, and the same choke point, as over MCP."""

import json
from collections.abc import Callable
from typing import Any

from drf_spectacular.types import OpenApiTypes
from rest_framework.exceptions import NotAuthenticated
from rest_framework.request import Request
from rest_framework.response import Response

from agents.actions import approvals
from agents.models import Approval
from duduclaw.api import errors
from duduclaw.api.auth import Caller
from duduclaw.api.docs import documented
from duduclaw.api.resource import Resource
from duduclaw.api.serializers.house import CallResult, Parked, ToolDefinition
from duduclaw.api.views.access import stepped_up
from duduclaw.lib.ids import new_id
from mcp import calls, refusals, registry
from mcp.calls import Answer, CallRequest
from mcp.policy import Who
from mcp.render import definition, visible
from mcp.scopes import AACWORKFLOW

TRANSPORT = "rest"
CALL_ERRORS = (400, 403, 404, 409, 422, 500)


class Tools(Resource):
    """What the caller may call now."""

    serializer_class = ToolDefinition
    open_to_keys = True

    @documented("List the tools that the caller may call now, as tools/list does.", ToolDefinition(many=True))
    def get(self, request: Request) -> Response:
        return Response({"results": [json.loads(definition(tool)) for tool in visible(self.who)], "next": None})


class CallTool(Resource):
    """One call. The choke point counts, judges and records it."""

    open_to_keys = True
    throttle_classes = []
    refusals_recorded = False

    @documented(
        "Call a tool; the body holds its arguments.",
        CallResult,
        body=OpenApiTypes.OBJECT,
        also=CALL_ERRORS,
        answers={202: Parked},
    )
    def post(self, request: Request, name: str) -> Response:
        tool = registry.get(name)
        if tool is not None and tool.human_only:
            stepped_up(self)
        asked = CallRequest(
            principal=prover(request),
            name=name,
            arguments=self.body,
            request_id=new_id(),
            transport=TRANSPORT,
            round_task=request.headers.get("X-DuDuClaw-Task"),
        )
        answer = calls.call(asked)
        if answer.parked is not None:
            return waiting(self, asked, answer)
        return failed(answer, name) if answer.error or answer.is_error else succeeded(answer)


def prover(request: Request) -> Callable[[], Who]:
    """How the choke point proves the caller anew inside a write."""
    user: object = request.user
    if not isinstance(user, Caller):
        raise NotAuthenticated
    return user.prove


def succeeded(answer: Answer) -> Response:
    """200."""
    return Response({"content": answer.content, "structuredContent": answer.structured})


def waiting(view: Resource, asked: CallRequest, answer: Answer) -> Response:
    """202: a person is asked. The call ends here and is recorded; the same call again uses the answer."""
    if answer.parked is None:
        raise TypeError("only a parked call waits")
    told = calls.pending(asked, answer.parked)
    row = Approval.objects.for_who(view.who).filter(pk=answer.parked.id).select_related("agent").first()
    return Response({"status": told.code, "approval": approvals.shown(row) if row else None}, status=202)


def failed(answer: Answer, name: str) -> Response:
    """The refusal with its status: of the wire for what travels as an error, of its class for the rest."""
    if answer.error is not None:
        return refused(*answer.error)
    status = errors.status_of(answer.code)
    tool = registry.get(name)
    if status == 404 and tool is not None and tool.scope in AACWORKFLOW:
        status = 400
    return Response(answer.structured, status)


def refused(code: int, text: str, data: dict[str, Any]) -> Response:
    """A JSON-RPC error as REST says it."""
    error = str(data.get("error", "error"))
    if text == refusals.CONFIRM:
        return Response({"error": text}, 400)
    if code == refusals.RATE:
        return Response(errors.body(error, text), 429, headers={"Retry-After": str(data.get("retry_after", 1))})
    if code == refusals.INVALID:
        return Response(errors.body(error, text), 404 if error == "unknown_tool" else 400)
    return Response(errors.body(error, text), 500 if error == "internal" else 403)
