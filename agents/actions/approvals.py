"""Questions to a person, and what their answers do. An answer counts once, for exactly the call that asked."""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.db.models import Q

from agents.actions import roles
from agents.actions.grants import mint, void_questions
from agents.models import Agent, Approval, Grant, Role
from agents.principals import entries, who_for_agent
from duduclaw import events
from duduclaw.lib import clock
from mcp import matching
from mcp.context import Call
from mcp.errors import InvalidArguments, Parked, Refused
from mcp.policy import Who
from tasks.models import Task

Status = Approval.Status
WAIT = timedelta(seconds=300)  # how long a question stands
USABLE = timedelta(seconds=600)  # how long an approved call may still be made
DECISIONS = {"approve": Status.APPROVED, "deny": Status.DENIED}
WORDS = {
    Status.DENIED: "a person denied it",
    Status.EXPIRED: "nobody answered in time; the same call asks again",
    Status.VOID: "the question was withdrawn",
}


def ask(call: Call, kind: str, tool: str, summary: str, task_id: str = "") -> Approval:
    """File a question for this very call."""
    now = clock.now()
    approval = Approval.objects.create(
        workspace_id=call.who.workspace,
        agent_id=call.who.agent,
        kind=kind,
        tool=tool,
        call_tool=call.tool,
        arguments=call.arguments,
        digest=call.digest,
        summary=summary[:300],
        task_id=task_id,
        requested_by=call.who.name,
        requested_at=now,
        expires_at=now + WAIT,
    )
    told(approval)
    return approval


def told(approval: Approval) -> None:
    """Wake who waits for this row once the change is committed."""
    events.publish("approval", id=approval.id, workspace=approval.workspace_id)


def round_of(call: Call) -> str:
    """The id of the task that the caller's round works on, whose end voids the question; "" when it is not its own."""
    ref = call.who.task or call.round_task or ""
    task = Task.objects.for_who(call.who).named(ref).first() if ref else None
    return str(task.id) if task and call.who.agent in (task.assigned_to_id, task.claimed_by_id) else ""


def state(approval: Approval, now: datetime) -> str:
    """The status as it reads now: a question past its end, or a permission never used, has expired."""
    if approval.status == Status.PENDING and approval.expires_at <= now:
        return Status.EXPIRED
    unused = approval.kind == Approval.Kind.MCP_CALL and approval.consumed_at is None
    if approval.status == Status.APPROVED and unused and approval.expires_at <= now:
        return Status.EXPIRED
    return approval.status if approval.status in Status.values else Status.DENIED


def lapsed(now: datetime) -> Q:
    """The rows that read as expired although no sweep has stamped them: `state` as a query."""
    unused = Q(status=Status.APPROVED, kind=Approval.Kind.MCP_CALL, consumed_at=None)
    return (Q(status=Status.PENDING) | unused) & Q(expires_at__lte=now)


def usable(approval: Approval, now: datetime) -> str:
    """What the row says to a call made now: an answer, too, can be used for a while only."""
    if approval.status in (Status.PENDING, Status.APPROVED) and approval.expires_at <= now:
        return Status.EXPIRED
    return state(approval, now)


class Decided(Refused):
    """A person said no, nobody answered, or the question fell. The choke point uses the answer up with its row."""

    def __init__(self, said: str, row: Approval) -> None:
        self.row = row
        why = WORDS[Status(said)] + (f": {row.note or row.void_reason}" if row.note or row.void_reason else "")
        super().__init__(f"approval_{said}", f"{row.call_tool} was not approved: {why}", approval_id=row.id)

    def settle(self) -> None:
        """The caller has heard it."""
        consume(self.row)


def answer(call: Call, kind: str, ask_now: Callable[[], Approval]) -> Approval | Parked:
    """The approval that lets this very call through, not yet used; `Parked` while nobody has answered.

    Raises `Decided` when the answer was no. A fresh call asks anew when the last question ran out.
    """
    row, said = woken(call, kind)
    if row is None:
        row, said = standing(call, kind) or (ask_once(call, kind, ask_now), Status.PENDING)
    if said == Status.PENDING:
        return Parked("approval", row.id, row.expires_at, row.summary)
    if said != Status.APPROVED:
        raise Decided(said, row)
    return row


def same(call: Call, kind: str) -> Any:
    """The questions of the same call: agent, tool, arguments."""
    mine = Approval.objects.for_who(call.who).filter(agent_id=call.who.agent, kind=kind)
    return mine.filter(call_tool=call.tool, digest=call.digest)


def woken(call: Call, kind: str) -> tuple[Approval | None, str]:
    """The question that this call waited for: it hears the "no" although a twin of it has heard it already."""
    row = same(call, kind).filter(pk=call.resumed).first() if call.resumed else None
    said = usable(row, clock.now()) if row else ""
    used = row is not None and said == Status.APPROVED and row.consumed_at is not None
    return (None, "") if used else (row, said)


def standing(call: Call, kind: str) -> tuple[Approval, str] | None:
    """The newest question of the same call that is open, or whose answer nobody has used yet."""
    unused = same(call, kind).filter(consumed_at=None).exclude(status=Status.VOID)
    row = unused.order_by("-requested_at", "-id").first()
    said = usable(row, clock.now()) if row else Status.EXPIRED
    return None if said == Status.EXPIRED else (row, said)


def ask_once(call: Call, kind: str, ask_now: Callable[[], Approval]) -> Approval:
    """Ask, unless a twin of this call has just done so. The lock on the agent keeps twins apart."""
    list(Agent.objects.for_who(call.who).select_for_update(no_key=True).filter(pk=call.who.agent))
    found = standing(call, kind)
    return found[0] if found and found[1] == Status.PENDING else ask_now()


def consume(approval: Approval) -> bool:
    """Use an answer up; False when another call was first."""
    unused = Approval.objects.system().filter(pk=approval.pk, consumed_at=None, status=approval.status)
    return unused.update(consumed_at=clock.now()) == 1


def decide(approval: Approval, *, by: Who, decision: str, note: str = "") -> Approval:
    """Approve or deny once. Approving a capability mints its grant in the same transaction.

    Raises `own_request`, `insufficient_role`, `not_found`, `already_decided`, `expired`, `policy_changed`, and what
    `mint` raises.
    """
    if decision not in DECISIONS:
        raise InvalidArguments("Invalid parameter decision: must be approve or deny", "decision")
    if by.agent == approval.agent_id:
        raise Refused("own_request", "the requester cannot decide its own request")
    roles.need(by, Role.OPERATOR, "deciding approvals")
    with transaction.atomic():
        row = Approval.objects.for_who(by).select_related("agent__capabilities").filter(pk=approval.pk).first()
        if row is None:
            raise Refused("not_found", "no such approval")
        refuse_settled(row)
        if decision == "approve":
            refuse_forbidden(row)
            grant(row, by)
        settle(row, by, DECISIONS[decision], note)
        told(row)
    approval.refresh_from_db()
    return approval


def grant(approval: Approval, by: Who) -> None:
    """What approving a capability opens."""
    if approval.kind == Approval.Kind.CAPABILITY_GRANT:
        mint(
            approval.agent,
            approval.tool,
            task_id=approval.task_id,
            source=Grant.Source.CAPABILITY_REQUEST,
            by=by,
            approval=approval,
        )


def settle(approval: Approval, by: Who, status: str, note: str) -> None:
    """Write the decision by compare-and-set; the transaction (with its grant) falls when it is too late."""
    now = clock.now()
    pending = Approval.objects.for_who(by).filter(pk=approval.pk, status=Status.PENDING, expires_at__gt=now)
    end = {"expires_at": now + USABLE} if status == Status.APPROVED else {}
    if not pending.update(status=status, decided_by=by.name, decided_at=now, note=note[:300], **end):
        approval.refresh_from_db()
        refuse_settled(approval)
        raise Refused("stale", "this request has changed meanwhile; read it again")


def refuse_settled(approval: Approval) -> None:
    """Raise unless the question still waits."""
    if approval.status == Status.EXPIRED or (approval.status == Status.PENDING and approval.expires_at <= clock.now()):
        raise Refused("expired", "this request expired before it was decided")
    if approval.status != Status.PENDING:
        raise Refused("already_decided", f"this request is {approval.status} already", status=approval.status)


def refuse_forbidden(approval: Approval) -> None:
    """Policy that changed since the question was filed beats the answer."""
    lists = getattr(approval.agent, "capabilities", None)
    denied = matching.first(entries(lists, "denied_tools"), approval.tool) is not None
    scoped = matching.first(entries(lists, "scoped_tools"), approval.tool) is not None
    unscoped = approval.kind == Approval.Kind.CAPABILITY_GRANT and not scoped
    if denied or unscoped:
        raise Refused(
            "policy_changed", f"the policy of {approval.requested_by} no longer lets {approval.tool} be granted"
        )


def void_denied(agent: Agent) -> int:
    """Void the pending questions of an agent for tools that its lists now deny. Answers how many."""
    who = who_for_agent(agent)
    pending = Approval.objects.system().filter(agent=agent, status=Status.PENDING).order_by("id")
    dead = [row.pk for row in pending if matching.first(who.denied, row.tool) is not None]
    return void_questions(Q(pk__in=dead), "policy_changed")


def sweep_expired() -> tuple[int, int]:
    """Stamp what ran out: (questions, grants). Nothing hangs on it; it keeps lists honest."""
    now = clock.now()
    questions = Approval.objects.system().filter(status=Status.PENDING, expires_at__lte=now)
    grants = Grant.objects.system().filter(revoked_at=None, expires_at__lte=now)
    return (
        questions.update(status=Status.EXPIRED),
        grants.update(revoked_at=now, revoke_reason="ttl_expired"),
    )


def shown(approval: Approval) -> dict[str, Any]:
    """The approval for its decider or requester; `arguments` are the redacted ones."""
    grant = Grant.objects.system().filter(approval=approval).first()
    return {
        "id": approval.id,
        "kind": approval.kind,
        "status": state(approval, clock.now()),
        "agent": approval.agent.name,
        "tool": approval.tool,
        "arguments": approval.arguments,
        "summary": approval.summary,
        "task_id": approval.task_id or None,
        "requested_at": clock.stamp(approval.requested_at),
        "expires_at": clock.stamp(approval.expires_at),
        "decided_by": approval.decided_by or None,
        "decided_at": clock.stamp(approval.decided_at) if approval.decided_at else None,
        "note": approval.note,
        "grant_id": grant.id if grant else None,
    }
