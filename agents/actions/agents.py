"""Hire, remove and restore agents. A removed one keeps its row: the trash entry that reserves its name."""

from collections.abc import Mapping
from typing import Any

from django.db import DatabaseError, transaction

from agents import relations
from agents.actions import policy, roles, shapes
from agents.actions.history import record
from agents.models import Agent, Approval, Capabilities, Grant, Permissions, PlatformSettings, PolicyChange, Role
from duduclaw import events
from duduclaw.lib import clock, names
from mcp.errors import InvalidArguments, Refused
from mcp.policy import Who


def create_agent(
    *,
    by: Who,
    name: str,
    display_name: str,
    department: str = "",
    reports_to: str | None = None,
    preset: str = "",
    capabilities: Mapping[str, Any] | None = None,
    permissions: Mapping[str, Any] | None = None,
    role: str = "",
    status: str = Agent.Status.ACTIVE,
    reuse: bool = False,
) -> Agent:
    """A new agent with every switch off and every list empty but for what is asked.

    One that an agent hires may neither hire nor schedule, and gets no capabilities from its maker. `reuse` lets
    the name of a removed agent be taken again: for people at REST and admin, never for MCP.
    Raises `InvalidArguments` naming the field; `Refused` `name_taken`, `agent_name_reserved` (its `reason` is
    `removed_to_trash`, `dangling_org_record` or `trash_unlistable`) or `org_placement_denied`.
    """
    permissions = allowed_by(by, capabilities, permissions)
    checked_name(name)
    shapes.PLAIN["display_name"]("display_name", display_name, None)
    with transaction.atomic():
        policy.lock(by)
        refuse_taken(by, name)
        if not (reuse or by.kind == "person"):
            refuse_reserved(by, name)
        row = Agent(workspace_id=by.workspace, name=name, name_key=names.key_of(name), display_name=display_name)
        row.reports_to = placed(by, reports_to)
        row.save()
        Capabilities.objects.create(agent=row)
        Permissions.objects.create(agent=row)
        record(by, "agent", row.id, row.name, "created", None, {"display_name": display_name})
        asked = {"department": department, "role": role, "status": status, "preset": preset}
        rights = {"capabilities": {} if capabilities is None else capabilities, "permissions": permissions}
        policy.record_all(by, row, policy.apply(by, row, {**asked, **rights}))
        events.publish("policy", agent=row.id)
    return row


def allowed_by(
    by: Who, capabilities: Mapping[str, Any] | None, permissions: Mapping[str, Any] | None
) -> Mapping[str, Any]:
    """The permissions that a maker may give; an agent's hires start with less, and it opens nothing for them."""
    if not by.is_agent:
        roles.need(by, Role.OPERATOR, "creating an agent")
        return {} if permissions is None else permissions
    if capabilities or permissions:
        raise Refused("insufficient_role", "capabilities and permissions are given by people")
    return {"can_create_agents": False, "can_schedule_tasks": False}


def checked_name(name: Any) -> str:
    """A name that a new agent may have. Raises `InvalidArguments`."""
    if not isinstance(name, str) or not name:
        raise InvalidArguments("Missing required parameter: name", "name")
    try:
        return names.check_new(name)
    except names.BadName as error:
        raise InvalidArguments(f"name: {error}", "name") from None


def refuse_taken(by: Who, name: str) -> None:
    """No two agents of a workspace share a name, nor does one have the id of another."""
    present = Agent.objects.for_who(by).exclude(status=Agent.Status.REMOVED)
    if present.filter(name_key=names.key_of(name)).exists() or Agent.objects.for_who(by).filter(pk=name).exists():
        raise Refused("name_taken", f"{name[:64]} is another agent's name already")


def refuse_reserved(by: Who, name: str) -> None:
    """The names of removed agents are kept from every MCP caller. What cannot be read reserves too."""
    try:
        reason = reservation(by, name)
    except DatabaseError as error:
        raise reserved(name, "trash_unlistable") from error
    if reason:
        raise reserved(name, reason)


def reserved(name: str, reason: str) -> Refused:
    """The refusal of a kept name."""
    text = f"the name {name} is reserved for a removed agent; choose another name"
    return Refused("agent_name_reserved", text, reason=reason, target=name)


def reservation(by: Who, name: str) -> str:
    """Why a name is kept: its row is in the trash, or the organisation still knows it without a row; else ""."""
    if Agent.objects.for_who(by).filter(name_key=names.key_of(name), status=Agent.Status.REMOVED).exists():
        return "removed_to_trash"
    known = PolicyChange.objects.for_who(by).filter(subject="agent", name=name).exists()
    row = PlatformSettings.objects.for_who(by).values_list("delegation", flat=True).first()
    pairs = row.get("allow") if isinstance(row, dict) else None
    listed = any(name in pair for pair in pairs if isinstance(pair, list)) if isinstance(pairs, list) else False
    return "dangling_org_record" if known or listed else ""


def placed(by: Who, reports_to: str | None) -> Agent | None:
    """Whom the new agent reports to. An agent's own hires report to it or to one below it."""
    if not by.is_agent:
        return None if reports_to in policy.ROOT else policy.parent_of(by, reports_to)
    parent = policy.parent_of(by, by.name if reports_to is None else reports_to)
    if parent.id not in relations.subtree(by):
        raise Refused("org_placement_denied", "a new agent reports to you or to an agent below you", target=parent.name)
    return parent


def remove_agent(agent: Agent, *, by: Who) -> Agent:
    """Move an agent to the trash: its keys open nothing, its grants and open questions end, its name stays kept."""
    roles.need(by, Role.OPERATOR, "removing an agent")
    now = clock.now()
    with transaction.atomic():
        policy.lock(by)
        row = (
            Agent.objects.for_who(by)
            .select_for_update(no_key=True)
            .filter(pk=agent.pk)
            .exclude(status="removed")
            .first()
        )
        if row is None:
            raise Refused("not_found", "no such agent")
        before, row.status, row.removed_at = row.status, Agent.Status.REMOVED, now
        row.version += 1
        row.save(update_fields=["status", "removed_at", "version"])
        Grant.objects.for_who(by).filter(agent=row, revoked_at=None).update(
            revoked_at=now, revoke_reason="agent_removed"
        )
        Approval.objects.for_who(by).filter(agent=row, status=Approval.Status.PENDING).update(
            status=Approval.Status.VOID, void_reason="agent_removed", decided_at=now
        )
        record(by, "agent", row.id, row.name, "status", before, row.status)
        events.publish("policy", agent=row.id)
    return row


def restore_agent(agent: Agent, *, by: Who) -> Agent:
    """Take an agent out of the trash, in the status it had. Refused `name_taken` when the name has a new owner."""
    roles.need(by, Role.OPERATOR, "restoring an agent")
    with transaction.atomic():
        policy.lock(by)
        row = Agent.objects.for_who(by).select_for_update(no_key=True).filter(pk=agent.pk, status="removed").first()
        if row is None:
            raise Refused("not_found", "no removed agent of that name")
        refuse_taken(by, row.name)
        row.status, row.removed_at = status_before(row), None
        row.version += 1
        row.save(update_fields=["status", "removed_at", "version"])
        record(by, "agent", row.id, row.name, "status", Agent.Status.REMOVED, row.status)
        events.publish("policy", agent=row.id)
    return row


def status_before(row: Agent) -> str:
    """What an agent was when it was removed; paused when history does not say."""
    last = (
        PolicyChange.objects.system()
        .filter(subject="agent", ref=row.id, field="status", after=Agent.Status.REMOVED)
        .order_by("-changed_at")
        .values_list("before", flat=True)
        .first()
    )
    return last if last in Agent.Status.values and last != Agent.Status.REMOVED else str(Agent.Status.PAUSED)
