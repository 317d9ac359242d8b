"""Questions to a person, and what their answers do. An answer counts once, for exactly the call that asked."""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction

from agents.actions.grants import mint
from agents.models import Agent, Approval, Grant
from agents.principals import who_for_agent
from duduclaw import events
from duduclaw.lib import clock
from mcp import matching
from mcp.context import Call
from mcp.errors import InvalidArguments, Parked, Refused
from mcp.policy import Who

WAIT = timedelta(seconds=300)  # how long a question stands
USABLE = timedelta(seconds=600)  # how long an approved call may still be made
DECISIONS = {"approve": Approval.Status.APPROVED, "deny": Approval.Status.DENIED}


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
    events.publish("approval", id=approval.id, workspace=call.who.workspace)
    return approval


def standing(call: Call) -> Approval | None:
    """The newest question of the same call (agent, tool, arguments) whose answer was not used yet."""
    same = Approval.objects.for_who(call.who).filter(
        agent_id=call.who.agent, call_tool=call.tool, digest=call.digest, consumed_at=None
    )
    return same.exclude(status=Approval.Status.VOID).order_by("-requested_at", "-id").first()


def state(approval: Approval, now: datetime) -> str:
    """The status as it reads now: a question or a permission past its end has expired."""
    if approval.status in (Approval.Status.PENDING, Approval.Status.APPROVED) and approval.expires_at <= now:
        return Approval.Status.EXPIRED
    known = approval.status in Approval.Status.values
    return approval.status if known else Approval.Status.DENIED


class Decided(Refused):
    """A person said no, or nobody answered. The choke point uses the answer up although it rolls back."""

    def __init__(self, said: str, row: Approval) -> None:
        self.row = row
        why = f"a person denied it{': ' + row.note if row.note else ''}" if said == "denied" else "nobody answered"
        super().__init__(f"approval_{said}", f"{row.call_tool} was not approved: {why}", approval_id=row.id)


def answer(call: Call, ask_now: Callable[[], Approval]) -> Approval | Parked:
    """The approval that lets this very call through, used up; or `Parked` while nobody has answered.

    Raises `Decided` when the answer was no. A fresh call asks anew when the last question ran out.
    """
    row = standing(call)
    said = state(row, clock.now()) if row else ""
    if row and said == Approval.Status.EXPIRED and row.pk != call.resumed:
        consume(row)
        row = None
    if row is None:
        row, said = ask_now(), Approval.Status.PENDING
    if said == Approval.Status.PENDING:
        return Parked("approval", row.id, row.expires_at, row.summary)
    if said != Approval.Status.APPROVED:
        raise Decided(said, row)
    if not consume(row):
        raise Refused("approval_used", "another call used this approval", approval_id=row.id)
    return row


def consume(approval: Approval) -> bool:
    """Use an answer up; False when another call was first."""
    unused = Approval.objects.system().filter(pk=approval.pk, consumed_at=None, status=approval.status)
    return unused.update(consumed_at=clock.now()) == 1


def decide(approval: Approval, *, by: Who, decision: str, note: str = "") -> Approval:
    """Approve or deny once. Approving a capability mints its grant in the same transaction."""
    if decision not in DECISIONS:
        raise InvalidArguments("Invalid parameter decision: must be approve or deny", "decision")
    if approval.requested_by == by.name or by.agent == approval.agent_id:
        raise Refused("own_request", "the requester cannot decide its own request")
    with transaction.atomic():
        if decision == "approve":
            refuse_forbidden(approval)
            if approval.kind == Approval.Kind.CAPABILITY_GRANT:
                mint(
                    approval.agent,
                    approval.tool,
                    task_id=approval.task_id,
                    source=Grant.Source.CAPABILITY_REQUEST,
                    by=by,
                    approval=approval,
                )
        settle(approval, by, DECISIONS[decision], note)
        events.publish("approval", id=approval.id, workspace=approval.workspace_id)
    approval.refresh_from_db()
    return approval


def settle(approval: Approval, by: Who, status: str, note: str) -> None:
    """Write the decision by compare-and-set; the transaction (with its grant) falls when it is too late."""
    now = clock.now()
    pending = Approval.objects.for_who(by).filter(
        pk=approval.pk, status=Approval.Status.PENDING, expires_at__gt=now
    )
    end = {"expires_at": now + USABLE} if status == Approval.Status.APPROVED else {}
    if not pending.update(status=status, decided_by=by.name, decided_at=now, note=note[:300], **end):
        approval.refresh_from_db()
        if state(approval, now) == Approval.Status.EXPIRED and approval.decided_at is None:
            raise Refused("expired", "this request expired before it was decided")
        raise Refused("already_decided", f"this request is {approval.status} already", status=approval.status)


def refuse_forbidden(approval: Approval) -> None:
    """Policy that changed since the question was filed beats the answer."""
    who = who_for_agent(approval.agent)
    denied = matching.first(who.denied, approval.tool) is not None
    unscoped = (
        approval.kind == Approval.Kind.CAPABILITY_GRANT and matching.first(who.scoped, approval.tool) is None
    )
    if denied or unscoped:
        raise Refused("policy_changed", f"the policy of {approval.requested_by} no longer lets {approval.tool} be granted")


def void_denied(agent: Agent) -> int:
    """Void the pending questions of an agent for tools that its lists now deny."""
    who = who_for_agent(agent)
    pending = Approval.objects.system().filter(agent=agent, status=Approval.Status.PENDING)
    dead = [row.pk for row in pending if matching.first(who.denied, row.tool) is not None]
    return (
        Approval.objects.system()
        .filter(pk__in=dead, status=Approval.Status.PENDING)
        .update(status=Approval.Status.VOID, void_reason="policy_changed", decided_at=clock.now())
    )


def sweep_expired() -> tuple[int, int]:
    """Stamp what ran out: (questions, grants). Nothing hangs on it; it keeps lists honest."""
    now = clock.now()
    questions = Approval.objects.system().filter(status=Approval.Status.PENDING, expires_at__lte=now)
    grants = Grant.objects.system().filter(revoked_at=None, expires_at__lte=now)
    return (
        questions.update(status=Approval.Status.EXPIRED),
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
