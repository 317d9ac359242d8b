"""Grants: minted by a person's decision, ended with their task in the transaction that ends it."""

from datetime import timedelta

from django.db import transaction

from agents.actions.history import record
from agents.models import Agent, Approval, Grant
from duduclaw import events
from duduclaw.lib import clock
from mcp import matching
from mcp.errors import Refused
from mcp.policy import Who
from tasks.models import Task

DEFAULT_TTL = 3600  # seconds


def mint(
    agent: Agent, tool: str, *, task_id: str = "", source: str, by: Who, approval: Approval | None = None
) -> Grant:
    """Open a scoped tool for an agent; the same one again when the task has it already."""
    tool = matching.bare(tool)
    now = clock.now()
    with transaction.atomic():
        if task_id:
            refuse_finished(task_id)
        standing = Grant.objects.system().filter(agent=agent, tool=tool, task_id=task_id).active(now).first()
        if standing and task_id:
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
        record(by, "grant", grant.id, agent.name, tool, None, {"task": task_id, "expires_at": clock.stamp(grant.expires_at)})
        events.publish("policy", agent=agent.id)
    return grant


def life(agent: Agent) -> int:
    """Seconds that a grant of this agent lives; what is not positive means the default."""
    asked = getattr(getattr(agent, "capabilities", None), "grant_ttl_secs", DEFAULT_TTL)
    return asked if asked > 0 else DEFAULT_TTL


def refuse_finished(task_id: str) -> None:
    """A task that ended holds no grants; the lock keeps it from ending meanwhile."""
    task = Task.objects.system().select_for_update().filter(pk=task_id).first()
    if task is None or task.status in Task.GRANTS_END:
        raise Refused("task_finished", "the task of this grant has ended; ask again for another task")


def end_for_task(task_id: str, *, reason: str) -> int:
    """Revoke every grant of a task that enters a terminal state, and void what was still being asked for it."""
    now = clock.now()
    agents = list(Grant.objects.system().filter(task_id=task_id, revoked_at=None).values_list("agent_id", flat=True))
    ended = (
        Grant.objects.system().filter(task_id=task_id, revoked_at=None).update(revoked_at=now, revoke_reason=reason)
    )
    Approval.objects.system().filter(task_id=task_id, status=Approval.Status.PENDING).update(
        status=Approval.Status.VOID, void_reason=reason, decided_at=now
    )
    for agent in set(agents):
        events.publish("policy", agent=agent)
    return ended


def end_for_holder(task_id: str, agent: str | None, *, reason: str) -> int:
    """Revoke the grants that an agent has for a task which another has taken over."""
    if agent is None:
        return 0
    mine = Grant.objects.system().filter(task_id=task_id, agent_id=agent, revoked_at=None)
    ended = int(mine.update(revoked_at=clock.now(), revoke_reason=reason))
    if ended:
        events.publish("policy", agent=agent)
    return ended


def revoke_grant(grant: Grant, *, by: Who, reason: str = "revoked") -> Grant:
    """Take a grant back now. Refused when it has ended already."""
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


