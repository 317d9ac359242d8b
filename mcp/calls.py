"""THE CHOKE POINT. Every call of a tool, from any transport, page or job, goes through `call` and leaves one row.

Synchronous: it runs in a lane of `mcp.lanes` (or in a view's own thread). A call that must wait for a person
comes back as `Parked`, without a row, and enters again when its row was decided.
"""

import json
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from django.db import transaction

from agents.actions import approvals
from duduclaw.lib import redact
from duduclaw.lib.canonical import canonical, digest
from mcp import audit, guards, matching, policy, refusals, registry, shape
from mcp.context import Call
from mcp.errors import GateRefused, InvalidArguments, Parked, Refused
from mcp.guards import Case
from mcp.policy import Who
from mcp.registry import Tool

log = logging.getLogger(__name__)


@dataclass(slots=True)
class CallRequest:
    """One call as it arrives. `principal` proves the caller anew; it is asked again inside a write."""

    principal: Callable[[], Who]
    name: str
    arguments: dict[str, Any] = field(default_factory=dict)
    request_id: str = ""
    transport: str = "test"
    round_task: str | None = None
    resumed: str = ""
    cancelled: Callable[[], bool] = lambda: False
    started: float = field(default_factory=time.perf_counter)


@dataclass(frozen=True, slots=True)
class Answer:
    """A result (`content`, `structured`, `is_error`), a JSON-RPC error (`error`), or `parked`."""

    outcome: str
    structured: dict[str, Any] | None = None
    content: list[dict[str, Any]] = field(default_factory=list)
    is_error: bool = False
    error: tuple[int, str, dict[str, Any]] | None = None
    parked: Parked | None = None
    code: str = ""  # the refusal's class, for REST


class Cancelled(Exception):
    """The client took the call back before its effect was committed."""


def call(request: CallRequest) -> Answer:
    """Judge, run and record one call."""
    who = request.principal()
    try:
        return attempt(request, who)
    except Waiting as wait:
        return Answer("parked", parked=wait.parked)
    except InvalidArguments as fault:
        reason = "unknown_tool" if fault.parameter is None else "invalid_arguments"
        record(request, who, audit.INVALID, reason)
        data = {"error": reason, "parameter": fault.parameter} if fault.parameter else {"error": reason}
        return Answer(audit.INVALID, error=(refusals.INVALID, fault.message, data), code=reason)
    except GateRefused as refusal:
        return refused_by_gate(request, who, refusal)
    except Refused as refusal:
        return refused_by_handler(request, who, refusal)
    except Cancelled:
        return cancel(request)
    except Exception:
        log.exception("tool %s failed", request.name[:64])
        record(request, who, audit.ERROR, "internal")
        return Answer(audit.ERROR, error=(-32603, "Internal error", {"error": "internal"}), code="internal")


class Waiting(Exception):
    """Carries `Parked` out of the transaction that filed its row."""

    def __init__(self, parked: Parked) -> None:
        self.parked = parked


def attempt(request: CallRequest, who: Who) -> Answer:
    """Gates, guards, handler; the row of a success is written here, with its effect."""
    name = matching.bare(request.name)
    tool = registry.get(name)
    if name in refusals.REMOVED_TOOLS:
        return removed(request, who, name)
    if tool is None:
        raise InvalidArguments(refusals.unknown_tool(request.name))
    gates(tool, who)
    case = Case(tool, context(request, who, tool), dict(request.arguments), {})
    for guard in guards.GUARDS:
        guard(case)
    if tool.read_only or tool.slow:
        return finish(request, case, run(case))
    return write(request, case)


def gates(tool: Tool, who: Who) -> None:
    """Raise the first closed gate's refusal."""
    refusal = policy.closed(tool, who)
    if refusal is not None:
        raise GateRefused(refusal.code, refusal.error, refusal.gate, refusal.text)


def context(request: CallRequest, who: Who, tool: Tool) -> Call:
    """What the handler is told."""
    given = {key: value for key, value in request.arguments.items() if value is not None}
    return Call(
        who=who,
        tool=tool.name,
        digest=digest(given),
        arguments=redact.summary(given, tool.redact),
        round_task=request.round_task,
        resumed=request.resumed,
        request_id=request.request_id,
        transport=request.transport,
    )


def write(request: CallRequest, case: Case) -> Answer:
    """Effect and row in one transaction; the right is proved again inside it."""
    with transaction.atomic():
        again = request.principal()
        if again != case.who:
            gates(case.tool, again)
            case = replace_who(case, again)
        guards.held_grant(case)
        wait = guards.approval(case)
        result = wait if wait is not None else run(case)
        if not isinstance(result, Parked):
            if request.cancelled():
                raise Cancelled
            return finish(request, case, result)
    raise Waiting(result)


def replace_who(case: Case, who: Who) -> Case:
    """The same case with the principal as it stands now."""
    return Case(case.tool, replace(case.call, who=who), case.given, case.clean)


def run(case: Case) -> Any:
    """The handler itself."""
    return case.tool.function(case.call, **case.clean)


def finish(request: CallRequest, case: Case, result: Any) -> Answer:
    """Shape the result and write its row."""
    if isinstance(result, Parked):
        raise Waiting(result)
    structured, content = shape.result(case.tool, result)
    reason = "cancelled_after_effect" if request.cancelled() else ""
    record(request, case.who, audit.OK, reason, tool=case.tool)
    return Answer(audit.OK, structured, content)


def removed(request: CallRequest, who: Who, name: str) -> Answer:
    """One of the 8 removed names: a stopped or inactive caller meets its gate, everybody else the replacement."""
    refusal = policy.stopped(Named(name), who) or policy.active(Named(name), who)
    if refusal is not None:
        raise GateRefused(refusal.code, refusal.error, refusal.gate, refusal.text)
    raise Refused("removed_tool", refusals.removed_tool(name))


@dataclass(frozen=True, slots=True)
class Named:
    """As much of a tool as the first two gates read."""

    name: str


def refused_by_gate(request: CallRequest, who: Who, refusal: GateRefused) -> Answer:
    """A JSON-RPC error with the gate's own code and text."""
    missing_confirm = refusal.gate == "confirm"
    record(request, who, audit.DENIED, "destructive_flag_missing" if missing_confirm else refusal.error)
    if refusal.gate == "permissions":
        audit.event(who.workspace, "permission_denied", agent=who.name, severity="warning",
                    details={"tool": request.name[:64], "permission": refusal.text})  # fmt: skip
    data = {"error": refusal.error, **refusal.data}
    if not missing_confirm:
        data = {"error": refusal.error, "gate": refusal.gate, "tool": matching.bare(request.name), **refusal.data}
    return Answer(audit.DENIED, error=(refusal.code, refusal.text, data), code=refusal.error)


def refused_by_handler(request: CallRequest, who: Who, refusal: Refused) -> Answer:
    """An `isError` result that says what to do; a person's "no" is used up with it."""
    with transaction.atomic():
        if isinstance(refusal, approvals.Decided):
            approvals.consume(refusal.row)
        record(request, who, refusal.outcome, refusal.reason, target=refusal.target)
    body = {"error": refusal.code, "detail": refusal.detail, **refusal.extra}
    return Answer(refusal.outcome, body, [shape.text(f"{refusal.code}: {refusal.detail}")], True, code=refusal.code)


def record(
    request: CallRequest, who: Who, outcome: str, reason: str, *, tool: Tool | None = None, target: str | None = None
) -> None:
    """The call's one row."""
    known = tool or registry.get(matching.bare(request.name))
    row = audit.call_row(
        who,
        request.name,
        outcome,
        reason,
        request_id=request.request_id[:64],
        transport=request.transport,
        ms=f"{(time.perf_counter() - request.started) * 1000:.1f}",
        arguments=redact.summary(request.arguments, known.redact if known else frozenset()),
        details=json.dumps({"target": target}) if target else "",
    )
    with transaction.atomic(savepoint=False):
        audit.insert(row)


def pending(request: CallRequest, parked: Parked) -> Answer:
    """The wait is over and nobody has answered: the call ends, the question lives on."""
    code = f"{parked.kind}_pending"
    record(request, request.principal(), audit.DENIED, code)
    body = {
        "error": code,
        "detail": "nobody has answered yet; make the same call again to use the answer",
        f"{parked.kind}_id": parked.id,
    }
    return Answer(audit.DENIED, body, [shape.text(canonical(body))], True, code=code)


def cancel(request: CallRequest) -> Answer:
    """The client took a waiting call back: one row, and no frame."""
    record(request, request.principal(), audit.CANCELLED, "cancelled")
    return Answer(audit.CANCELLED, is_error=True, code="cancelled")
