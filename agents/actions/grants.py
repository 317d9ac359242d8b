"""Grants: minted by a person's decision, ended with their task in the transaction that ends it."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import timedelta

from django.db import transaction
from django.db.models import Q

from agents.actions import roles
from agents.actions.history import record
from agents.models import Agent, Approval, Grant, Role
from duduclaw import events
from duduclaw.lib import clock
from mcp import matching
from mcp.errors import Refused
from mcp.policy import Who
from tasks.models import Task

DEFAULT_TTL = 3600  # seconds
ENDED_HERE: ContextVar[set[tuple[str, str]] | None] = ContextVar("grants_ended_by_this_call", default=None)


@contextmanager
def noting_ends() -> Iterator[None]:
    """Keep in mind what a call ends itself: completing a task may stand on a grant that dies with that task."""
    token = ENDED_HERE.set(set())
    try:
        yield
    finally:
        ENDED_HERE.reset(token)


def ended_here(agent: str, tool: str) -> bool:
    """Whether the present call's own effect ended the agent's grant of a tool."""
    return (agent, tool) in (ENDED_HERE.get() or ())


def mint(
    agent: Agent, tool: str, *, task_id: str = "", source: str, by: Who, approval: Approval | None = None
) -> Grant:
    """Open a scoped tool for an agent; the same grant again when the task has it already.

    Raises `task_finished`, and `not_yours` when the agent that asked no longer holds the task.
    """
    tool = matching.bare(tool)
    now = clock.now()
    with transaction.atomic():
        if task_id:
            refuse_lost(agent, task_id, asked=approval is not None)
            mine = Grant.objects.system().filter(agent=agent, tool=tool, task_id=task_id)
            if standing := mine.active(now).order_by("id").first():
                return standing
        grant = Grant.objects.create(
            workspace_id=agent.workspace_id,
            agent=agent,
            tool=tool,
            task_id=task_id,
            granted_by=source,
            approved_by=by.name,
            approval=approval,
            granted_at=now,
            expires_at=now + timedelta(seconds=life(agent)),
        )
        ends = {"task": task_id, "expires_at": clock.stamp(grant.expires_at)}
        record(by, "grant", grant.id, agent.name, tool, None, ends)
        events.publish("policy", agent=agent.id)
    return grant


def life(agent: Agent) -> int:
    """Seconds that a grant of this agent lives; what is not positive means the default."""
    asked = getattr(getattr(agent, "capabilities", None), "grant_ttl_secs", DEFAULT_TTL)
    return asked if asked > 0 else DEFAULT_TTL


def refuse_lost(agent: Agent, task_id: str, *, asked: bool) -> None:
    """A task that ended, or that another has taken over, opens nothing; the lock keeps it as it is meanwhile."""
    task = Task.objects.system().select_for_update().filter(pk=task_id, workspace=agent.workspace_id).first()
    if task is None or task.status in Task.GRANTS_END:
        raise Refused("task_finished", "the task of this grant has ended; ask again for another task")
    if asked and agent.id not in (task.assigned_to_id, task.claimed_by_id):
        raise Refused("not_yours", f"{agent.name} no longer holds the task of this grant")


def end_for_task(task_id: str, *, reason: str) -> int:
    """Revoke every grant of a task that enters a terminal state, and void what was still being asked for it."""
    now = clock.now()
    running = Grant.objects.system().filter(task_id=task_id, revoked_at=None)
    rows = list(running.order_by("id").select_for_update().values_list("agent_id", "tool", "expires_at"))
    ended = running.update(revoked_at=now, revoke_reason=reason)
    if (noted := ENDED_HERE.get()) is not None:
        noted |= {(agent, tool) for agent, tool, end in rows if end > now}
    void_questions(Q(task_id=task_id), reason)
    for agent in {agent for agent, _, _ in rows}:
        events.publish("policy", agent=agent)
    return ended


def void_questions(which: Q, reason: str) -> int:
    """Withdraw the questions that still wait among those of `which`; calls that wait for them are woken."""
    waiting = Approval.objects.system().filter(which, status=Approval.Status.PENDING)
    rows = list(waiting.order_by("id").values_list("pk", "workspace_id"))
    done = waiting.filter(pk__in=[pk for pk, _ in rows]).update(
        status=Approval.Status.VOID, void_reason=reason, decided_at=clock.now()
    )
    for pk, workspace in rows:
        events.publish("approval", id=pk, workspace=workspace)
    return int(done)


def end_for_holder(task_id: str, agent: str | None, *, reason: str) -> int:
    """Revoke the grants that an agent has for a task which another has taken over, and void what it still asked."""
    if agent is None:
        return 0
    void_questions(Q(task_id=task_id, agent_id=agent), reason)
    mine = Grant.objects.system().filter(task_id=task_id, agent_id=agent, revoked_at=None)
    ended = int(mine.update(revoked_at=clock.now(), revoke_reason=reason))
    if ended:
        events.publish("policy", agent=agent)
    return ended


def revoke_grant(grant: Grant, *, by: Who, reason: str = "revoked") -> Grant:
    """Take a grant back now. Raises `insufficient_role`, and `already_revoked` when it has ended already."""
    roles.need(by, Role.OPERATOR, "revoking a grant")
    with transaction.atomic():
        now = clock.now()
        changed = (
            Grant.objects.for_who(by).filter(pk=grant.pk, revoked_at=None).update(revoked_at=now, revoke_reason=reason)
        )
        if not changed:
            raise Refused("already_revoked", "this grant has ended already")
        record(by, "grant", grant.id, grant.agent.name, grant.tool, "active", reason)
        events.publish("policy", agent=grant.agent_id)
    grant.refresh_from_db()
    return grant
