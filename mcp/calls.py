"""THE CHOKE POINT. Every call of a tool, from any transport, page or job, goes through `call` and leaves one row.

Synchronous: it runs in a lane of `mcp.lanes` (or in a view's own thread). A call that must wait for a person
comes back as `Parked`, without a row, and enters again when its row was decided.
"""

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from django.db import transaction

from agents.actions import grants
from agents.models import Approval
from agents.principals import BadKey
from duduclaw.lib import faults, redact
from duduclaw.lib.canonical import canonical, digest
from mcp import audit, guards, policy, refusals, registry, shape
from mcp.context import Call
from mcp.errors import GateRefused, InvalidArguments, Parked, Refused, UnknownTool
from mcp.guards import Case
from mcp.policy import Who
from mcp.registry import Tool

log = logging.getLogger(__name__)


@dataclass(slots=True)
class CallRequest:
    """One call as it arrives. `principal` proves the caller anew; it is asked again inside a write.

    `name` is the bare name of a tool. `who` is the caller as it was last proved.
    """

    principal: Callable[[], Who]
    name: str
    arguments: dict[str, Any] = field(default_factory=dict)
    request_id: str = ""
    transport: str = "test"
    round_task: str | None = None
    resumed: str = ""
    cancelled: Callable[[], bool] = lambda: False
    started: float = field(default_factory=time.perf_counter)
    who: Who | None = None

    def prove(self) -> Who:
        """The caller as of now. Raises `BadKey`."""
        self.who = self.principal()
        return self.who

    def known(self) -> Who:
        """The caller as last proved: a call that ends is written down although its key ended meanwhile."""
        return self.who or self.prove()


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


class Waiting(Exception):
    """Carries `Parked` out to the caller."""

    def __init__(self, parked: Parked) -> None:
        self.parked = parked


def call(request: CallRequest) -> Answer:
    """Judge, run and record one call. Raises `BadKey` when the key proves nobody (any more)."""
    who = request.prove()
    try:
        return attempt(request, who)
    except Waiting as wait:
        return Answer("parked", parked=wait.parked)
    except InvalidArguments as fault:
        return faulty(request, who, fault)
    except GateRefused as refusal:
        return refused_by_gate(request, who, refusal)
    except Refused as refusal:
        return refused_by_handler(request, who, refusal)
    except Cancelled:
        return cancel(request)
    except BadKey as reason:
        record(request, who, audit.DENIED, f"key_{reason.reason}")
        raise
    except Exception as fault:
        log.error("tool %s failed\n%s", request.name[:64], faults.told(fault, request.arguments))
        record(request, who, audit.ERROR, "internal")
        return Answer(audit.ERROR, error=(-32603, "Internal error", {"error": "internal"}), code="internal")


def attempt(request: CallRequest, who: Who) -> Answer:
    """Gates, guards, handler; the row of a success is written here, with its effect."""
    if request.cancelled():
        raise Cancelled
    if request.name in refusals.REMOVED_TOOLS:
        raise removed(request.name, who)
    tool = registry.get(request.name)
    if tool is None:
        raise UnknownTool(request.name)
    gates(tool, who)
    case = Case(tool, context(request, who, tool), dict(request.arguments), {})
    for guard in guards.GUARDS:
        guard(case)
    return outside(request, case) if tool.read_only or tool.slow else write(request, case)


def gates(tool: Tool, who: Who) -> None:
    """Raise the first closed gate's refusal."""
    refusal = policy.closed(tool, who)
    if refusal is not None:
        raise GateRefused(refusal)


def removed(name: str, who: Who) -> Exception:
    """One of the 8 removed names: a stopped or inactive caller meets its gate, everybody else the replacement."""
    refusal = policy.stopped(Named(name), who) or policy.active(Named(name), who)
    return GateRefused(refusal) if refusal else Refused("removed_tool", refusals.removed_tool(name))


@dataclass(frozen=True, slots=True)
class Named:
    """As much of a tool as the first two gates read."""

    name: str


def context(request: CallRequest, who: Who, tool: Tool) -> Call:
    """What the handler is told."""
    given = {key: value for key, value in request.arguments.items() if value is not None}
    return Call(
        who=who,
        tool=tool.name,
        digest=fingerprint(given),
        arguments=redact.summary(given, tool.redact),
        round_task=request.round_task,
        resumed=request.resumed,
        request_id=request.request_id,
        transport=request.transport,
    )


def fingerprint(given: dict[str, Any]) -> str:
    """What "the same call" means. What cannot be hashed has none; the guards refuse it."""
    try:
        return digest(given)
    except (TypeError, ValueError, RecursionError):
        return ""


def write(request: CallRequest, case: Case) -> Answer:
    """Effect and row in one transaction; the right is proved again inside it, before and after the effect."""
    with grants.noting_ends(), transaction.atomic():
        case = proved_again(request, case)
        answer = guards.approval(case)
        result = answer if isinstance(answer, Parked) else run(case)
        if not isinstance(result, Parked):
            guards.settle(case, used(answer))
            done = finish(request, case, result)
            if request.cancelled():
                raise Cancelled
            return done
    raise Waiting(result)


def outside(request: CallRequest, case: Case) -> Answer:
    """A read, or an effect outside the database: what a person must allow is settled first, the row comes last."""
    if guards.asks_a_person(case):
        case = allowed(request, case)
    if case.tool.read_only:
        result = run(case)
        if request.cancelled():
            raise Cancelled
        return finish(request, case, result)
    audit.event(case.who.workspace, "effect_intended", agent=case.who.name,
                details={"tool": case.tool.name, "request_id": request.request_id[:64]})  # fmt: skip
    result = run(case)
    return finish(request, case, result, afterthought(request, case))


def allowed(request: CallRequest, case: Case) -> Case:
    """Use the person's answer up before the effect, which no rollback undoes."""
    with transaction.atomic():
        case = proved_again(request, case)
        answer = guards.approval(case)
        if not isinstance(answer, Parked):
            guards.settle(case, used(answer))
            return case
    raise Waiting(answer)


def used(answer: Approval | Parked | None) -> Approval | None:
    """The approval to use up with the effect, if one let the call through."""
    return answer if isinstance(answer, Approval) else None


def afterthought(request: CallRequest, case: Case) -> str:
    """What ended while the effect was on its way and could not be held back."""
    if request.cancelled():
        return "cancelled_after_effect"
    try:
        request.prove()
    except BadKey:
        return "done_after_revoke"
    return "" if guards.held(case) else "done_after_revoke"


def proved_again(request: CallRequest, case: Case) -> Case:
    """The same case with the principal as it stands now. A grant that ended since says so."""
    who = request.prove()
    if who == case.who:
        return case
    refusal = policy.closed(case.tool, who)
    if refusal is not None:
        raise GateRefused(refusals.grant_revoked(case.tool.name) if refusal.gate == "G9" else refusal)
    return Case(case.tool, replace(case.call, who=who), case.given, case.clean)


def run(case: Case) -> Any:
    """The handler itself."""
    return case.tool.function(case.call, **case.clean)


def finish(request: CallRequest, case: Case, result: Any, reason: str = "") -> Answer:
    """Shape the result and write its row."""
    if isinstance(result, Parked):
        raise Waiting(result)
    structured, content = shape.result(case.tool, result)
    record(request, case.who, audit.OK, reason)
    return Answer(audit.OK, structured, content)


def faulty(request: CallRequest, who: Who, fault: InvalidArguments) -> Answer:
    """A JSON-RPC -32602 that names the parameter, or the tool that does not exist."""
    reason = "unknown_tool" if isinstance(fault, UnknownTool) else "invalid_arguments"
    record(request, who, audit.INVALID, reason)
    data = {"error": reason, **({"parameter": fault.parameter} if fault.parameter else {})}
    return Answer(audit.INVALID, error=(refusals.INVALID, fault.message, data), code=reason)


def refused_by_gate(request: CallRequest, who: Who, refused: GateRefused) -> Answer:
    """A JSON-RPC error with the gate's own code and text; row and event stand or fall together."""
    refusal = refused.refusal
    missing_confirm = refusal.gate == "confirm"
    with transaction.atomic():
        row = record(request, who, audit.DENIED, "destructive_flag_missing" if missing_confirm else refusal.error)
        told(row, refusal.error, refused.event or {})
    data = {"error": refusal.error} if missing_confirm else refusal.data(request.name)
    return Answer(audit.DENIED, error=(refusal.code, refusal.text, {**data, **refused.data}), code=refusal.error)


def refused_by_handler(request: CallRequest, who: Who, refusal: Refused) -> Answer:
    """An `isError` result that says what to do; a person's "no" is used up with it."""
    with transaction.atomic():
        refusal.settle()
        row = record(request, who, refusal.outcome, refusal.reason, refusal.target, refusal.code)
        told(row, refusal.code, present(reason=refusal.reason, target=refusal.target, why=refusal.extra.get("why")))
    body = {"error": refusal.code, "detail": refusal.detail, **refusal.extra}
    return Answer(refusal.outcome, body, [shape.text(f"{refusal.code}: {refusal.detail}")], True, code=refusal.code)


def record(
    request: CallRequest, who: Who, outcome: str, reason: str, target: str | None = None, code: str = ""
) -> audit.Row:
    """The call's one row. `code` is a refusal's class, kept where its reason is another word."""
    known = registry.get(request.name)
    details = present(error_class=code if code != reason else None, target=target)
    row = audit.call_row(
        who,
        request.name,
        outcome,
        reason,
        request_id=request.request_id,
        transport=request.transport,
        ms=f"{(time.perf_counter() - request.started) * 1000:.1f}",
        arguments=redact.summary(request.arguments, known.redact if known else frozenset()),
        details=redact.summary(details) if details else "",
    )
    return audit.insert(row)


def told(row: audit.Row, code: str, details: dict[str, Any]) -> None:
    """The event beside a refusal's row, where its class has one."""
    if code in audit.REFUSALS:
        audit.event(row.workspace, code, call=row, details=details)


def present(**values: str | None) -> dict[str, Any]:
    """What there is of these."""
    return {name: value for name, value in values.items() if value}


def pending(request: CallRequest, parked: Parked) -> Answer:
    """The wait is over and nobody has answered: the call ends, the question lives on."""
    code = f"{parked.kind}_pending"
    record(request, request.known(), audit.DENIED, code)
    body = {
        "error": code,
        "detail": "nobody has answered yet; make the same call again to use the answer",
        f"{parked.kind}_id": parked.id,
    }
    return Answer(audit.DENIED, body, [shape.text(canonical(body))], True, code=code)


def cancel(request: CallRequest) -> Answer:
    """The client took the call back before its effect: one row, and no frame."""
    record(request, request.known(), audit.CANCELLED, "cancelled")
    return Answer(audit.CANCELLED, is_error=True, code="cancelled")
