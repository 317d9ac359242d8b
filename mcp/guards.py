"""What is judged per call, after the gates, in the order of docs/decisions: each may only refuse more.

A guard takes the call's `Case` and raises; it never answers yes.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from agents.actions import approvals
from agents.models import Approval, Grant
from duduclaw.lib import clock, injection, rate
from duduclaw.lib.canonical import canonical
from mcp import matching, policy, refusals, validate
from mcp.context import Call
from mcp.errors import GateRefused, Parked
from mcp.policy import Who
from mcp.refusals import Refusal
from mcp.registry import Tool

EXTERNAL_DROPS = ("agent_id", "namespace")
REPLACED = {"tasks_create": ("schedule_task", lambda given: bool(str(given.get("schedule") or "").strip()))}
limiter = rate.Limiter({})


@dataclass(slots=True)
class Case:
    """One call on its way through the guards. `given` is as sent, `clean` as validated."""

    tool: Tool
    call: Call
    given: dict[str, Any]
    clean: dict[str, Any]

    @property
    def who(self) -> Who:
        return self.call.who


def refuse(refusal: Refusal) -> None:
    """Raise a refusal of this module as the JSON-RPC error it travels as."""
    raise GateRefused(refusal.code, refusal.error, refusal.gate, refusal.text)


def rate_limit(case: Case) -> None:
    who = case.who
    read, write, burst = who.rate
    kind, allowed = ("read", read) if case.tool.read_only else ("write", write)
    bucket = rate.Bucket(allowed, burst)
    wait = limiter.check(who.key or f"{who.kind}:{who.name}", kind, clock.now().timestamp(), bucket)
    if wait is not None:
        refusal = refusals.rate_limited(case.tool.name, wait)
        raise GateRefused(refusal.code, refusal.error, refusal.gate, refusal.text, retry_after=wait)


def drop_identity(case: Case) -> None:
    """An external client's identity comes from its key, never from an argument. A required one names a target."""
    if case.who.kind == "external":
        for name in set(EXTERNAL_DROPS).difference(case.tool.schema.get("required", ())):
            case.given.pop(name, None)


def confirmed(case: Case) -> None:
    if case.tool.destructive and case.given.get("confirm") is not True:
        raise GateRefused(
            refusals.INVALID, refusals.CONFIRM, "confirm", refusals.CONFIRM, http_status=400
        )


def validated(case: Case) -> None:
    case.clean = validate.arguments(case.tool, case.given)


def scope_of_arguments(case: Case) -> None:
    wanted = case.tool.scope_when(case.clean) if case.tool.scope_when else None
    if wanted and not policy.holds(case.who, wanted):
        refuse(refusals.insufficient_scope(case.tool.name, wanted))


def injected(case: Case) -> None:
    if case.tool.read_only or case.who.is_human:
        return
    score = injection.score(canonical(case.given))
    if score >= injection.THRESHOLD:
        refuse(refusals.injection_suspected(case.tool.name, score))


def permitted(case: Case) -> None:
    flag = case.tool.permission
    if flag is None or flag not in case.who.refused_permissions:
        return
    if case.tool.permission_when is None or case.tool.permission_when(case.clean):
        refuse(refusals.permission_denied(case.tool.name, flag))


def replaced_names(case: Case) -> None:
    """A denied or scoped entry that names a removed tool still blocks the call that replaced it."""
    old, applies = REPLACED.get(case.tool.name, ("", None))
    if applies is None or not applies(case.clean):
        return
    if matching.first(case.who.denied, old) is not None:
        refuse(refusals.denied_tools(case.tool.name, old))
    if matching.first(case.who.scoped, old) is not None and old not in case.who.grants:
        refuse(refusals.capability_grant_missing(case.tool.name))


def redaction(case: Case) -> None:
    """No vault exists yet, so no tool may carry a token out."""
    if "<REDACT:" in canonical(case.given):
        refuse(refusals.redaction_token(case.tool.name))


GUARDS: tuple[Callable[[Case], None], ...] = (
    rate_limit,
    drop_identity,
    confirmed,
    validated,
    scope_of_arguments,
    injected,
    permitted,
    replaced_names,
    redaction,
)


def asks_a_person(case: Case) -> bool:
    """Whether an approval list names the tool; with no judge, "maybe" counts as risky."""
    who = case.who
    listed = (*who.approval_required, *who.irreversible, *who.maybe_irreversible)
    return matching.first(listed, case.tool.name) is not None


def approval(case: Case) -> Parked | None:
    """Inside the effect's transaction: use the answer to this very call up, or wait for one."""
    if not asks_a_person(case):
        return None
    answer = approvals.answer(
        case.call, lambda: approvals.ask(case.call, Approval.Kind.MCP_CALL, case.tool.name, show(case))
    )
    return answer if isinstance(answer, Parked) else None


def show(case: Case) -> str:
    """What the approver reads first."""
    return f"{case.who.name} wants to call {case.tool.name}"


def held_grant(case: Case) -> None:
    """Inside the effect's transaction: the grant that opened the tool still stands, and is held by a lock."""
    if not case.who.is_agent or matching.first(case.who.scoped, case.tool.name) is None:
        return
    rows = Grant.objects.system().filter(agent_id=case.who.agent, tool=case.tool.name).active(clock.now())
    if not list(rows.select_for_update()):
        raise GateRefused(refusals.DENIED, "grant_revoked", "G9", f"the grant for {case.tool.name} has ended")
