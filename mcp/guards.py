"""What is judged per call, after the gates, in the order of docs/decisions: each may only refuse more.

A guard takes the call's `Case` and raises; it never answers yes. Every caller's arguments are scanned, those of
reads and of people too: what they carry reaches agents, and the rule knows no exception.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from agents.actions import approvals, grants
from agents.models import Approval, Grant
from duduclaw.lib import clock, injection, rate
from duduclaw.lib.canonical import canonical
from mcp import matching, policy, refusals, validate
from mcp.context import Call
from mcp.errors import GateRefused, Parked, Refused
from mcp.policy import Who
from mcp.registry import Tool
from tasks import schedules

EXTERNAL_DROPS = ("agent_id", "namespace")
UNREADABLE = 100  # the risk of arguments that cannot be serialised
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

    @property
    def names(self) -> tuple[str, ...]:
        """The names by which lists may mean this very call: the tool's, and the removed one that it replaced."""
        old, applies = REPLACED.get(self.tool.name, ("", never))
        return (self.tool.name, old) if applies(self.clean) else (self.tool.name,)


def never(clean: dict[str, Any]) -> bool:
    return False


def routine(clean: dict[str, Any]) -> bool:
    """What `schedule_task` did: a cron schedule, not one instant."""
    return schedules.classify(str(clean.get("schedule") or "").strip()) == schedules.CRON


def shared(clean: dict[str, Any]) -> bool:
    """What the `shared_wiki_*` tools did."""
    return clean.get("scope") == "shared"


def bank(clean: dict[str, Any]) -> bool:
    """What `skill_bank_search` did."""
    return clean.get("source") in ("bank", "skill_bank")


# tool -> (the removed name, whether these arguments do what that one did)
REPLACED: dict[str, tuple[str, Callable[[dict[str, Any]], bool]]] = {
    "tasks_create": ("schedule_task", routine),
    "skill_search": ("skill_bank_search", bank),
    **{f"wiki_{verb}": (f"shared_wiki_{verb}", shared) for verb in ("ls", "read", "write", "search", "stats", "lint")},
}


def rate_limit(case: Case) -> None:
    who = case.who
    read, write, burst = who.rate
    kind, allowed = ("read", read) if case.tool.read_only else ("write", write)
    bucket = rate.Bucket(allowed, burst)
    owner = who.key or f"{who.workspace}:{who.kind}:{who.name}"
    wait = limiter.check(owner, kind, clock.now().timestamp(), bucket)
    if wait is not None:
        raise GateRefused(refusals.rate_limited(case.tool.name, wait), retry_after=wait)


def drop_identity(case: Case) -> None:
    """An external client's identity comes from its key, never from an argument. A required one names a target."""
    if case.who.kind == "external":
        for name in set(EXTERNAL_DROPS).difference(case.tool.schema.get("required", ())):
            case.given.pop(name, None)


def confirmed(case: Case) -> None:
    if case.tool.destructive and case.given.get("confirm") is not True:
        raise GateRefused(refusals.confirm_missing(), http_status=400)


def validated(case: Case) -> None:
    case.clean = validate.arguments(case.tool, case.given)


def scope_of_arguments(case: Case) -> None:
    wanted = case.tool.scope_when(case.clean) if case.tool.scope_when else None
    if wanted and not policy.holds(case.who, wanted, case.tool.read_only):
        raise GateRefused(refusals.insufficient_scope(case.tool.name, wanted))


def replaced_names(case: Case) -> None:
    """A denied or scoped entry that names a removed tool still blocks the call that replaced it."""
    for old in case.names[1:]:
        entry = matching.first(case.who.denied, old)
        if entry is not None:
            raise GateRefused(refusals.denied_tools(case.tool.name, entry))
        if matching.first(case.who.scoped, old) is not None and old not in case.who.grants:
            raise GateRefused(refusals.capability_grant_missing(case.tool.name, old))


def injected(case: Case) -> None:
    score = risk(case.given)
    if score >= injection.THRESHOLD:
        event = {"agent_id": case.who.name, "tool": case.tool.name, "risk": score}
        raise GateRefused(refusals.injection_suspected(case.tool.name, score), event=event)


def risk(given: dict[str, Any]) -> int:
    """0 to 100. What cannot be read cannot be cleared."""
    try:
        text = canonical(given)
        text.encode()
    except (TypeError, ValueError, RecursionError):
        return UNREADABLE
    return injection.score(text)


def permitted(case: Case) -> None:
    flag = case.tool.permission
    if flag is None or flag not in case.who.refused_permissions:
        return
    if case.tool.permission_when is None or case.tool.permission_when(case.clean):
        event = {"agent_id": case.who.name, "permission": flag, "tool": case.tool.name}
        raise GateRefused(refusals.permission_denied(case.tool.name, flag), event=event)


def redaction(case: Case) -> None:
    """No vault exists yet, so no tool may carry a token out."""
    if "<REDACT:" in canonical(case.given):
        raise GateRefused(refusals.redaction_token(case.tool.name))


GUARDS: tuple[Callable[[Case], None], ...] = (
    rate_limit,
    drop_identity,
    confirmed,
    validated,
    scope_of_arguments,
    replaced_names,
    injected,
    permitted,
    redaction,
)


def asks_a_person(case: Case) -> bool:
    """Whether an approval list names the call; with no judge, "maybe" counts as risky."""
    who = case.who
    if case.tool.asks_person or not who.is_agent:
        return False
    listed = (*who.approval_required, *who.irreversible, *who.maybe_irreversible)
    return any(matching.first(listed, name) is not None for name in case.names)


def approval(case: Case) -> Approval | Parked | None:
    """The answer to this very call, not yet used; `Parked` while there is none; None when nobody need be asked."""
    if not asks_a_person(case):
        return None
    call, kind = case.call, Approval.Kind.MCP_CALL
    summary = f"{case.who.name} wants to call {case.tool.name}"
    task = approvals.round_of(call)
    return approvals.answer(call, kind, lambda: approvals.ask(call, kind, case.tool.name, summary, task))


def settle(case: Case, answer: Approval | None) -> None:
    """Last in the effect's transaction (lock order: task, grant, approval): the rights that end meanwhile stand.

    The grant is held by a lock, the approval used up. Raises, so that the effect is undone.
    """
    if scoped(case) and not held(case, lock=True):
        raise GateRefused(refusals.grant_revoked(case.tool.name))
    if answer is not None and not approvals.consume(answer):
        raise Refused("approval_used", "another call used this approval", approval_id=answer.id)


def scoped(case: Case) -> list[str]:
    """The names of the call that are open by a grant only."""
    return [name for name in case.names if matching.first(case.who.scoped, name) is not None]


def held(case: Case, *, lock: bool = False) -> bool:
    """Whether every grant that the call needs is active now; with `lock`, and stays so until the commit."""
    rows = Grant.objects.system().filter(agent_id=case.who.agent).active(clock.now())
    rows = rows.select_for_update() if lock else rows
    return all(
        list(rows.filter(tool=name).order_by("id")) or grants.ended_here(case.who.agent, name) for name in scoped(case)
    )
