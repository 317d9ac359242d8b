"""Changes of what decides for an agent, a workspace or a person. Checked, counted, written down, told."""

from collections.abc import Mapping
from typing import Any

from django.contrib.auth.models import User
from django.db import models, transaction

from agents import relations
from agents.actions import approvals, fields, roles, shapes
from agents.actions.history import record
from agents.actions.presets import PRESETS
from agents.models import Agent, Capabilities, Membership, Permissions, PlatformSettings, Role, Workspace
from duduclaw import events
from duduclaw.lib.canonical import canonical
from mcp.errors import InvalidArguments, Refused
from mcp.policy import Who

AGENT_FIELDS = frozenset({*shapes.PLAIN, "reports_to", "preset", "capabilities", "permissions"})
ROOT = ("", "none", None)
PAIRS = 200

Changed = list[tuple[str, Any, Any]]


def update_agent(agent: Agent, *, by: Who, changes: Mapping[str, Any], version: int | None = None) -> Agent:
    """Change fields of an agent. `capabilities` and `permissions` merge per key, lists are replaced whole.

    Raises `InvalidArguments` naming a faulty or unknown field, `Refused` `stale` when `version` is not the
    agent's, `not_found`, `insufficient_role`. A new `preset` brings its allowed_tools unless those are given.
    """
    roles.need(by, Role.OPERATOR, "changing an agent")
    fields.refuse_unknown("", changes, AGENT_FIELDS)
    with transaction.atomic():
        lock(by)
        row = (
            Agent.objects.for_who(by)
            .select_for_update(no_key=True)
            .filter(pk=agent.pk)
            .exclude(status="removed")
            .first()
        )
        if row is None:
            raise Refused("not_found", "no such agent")
        refuse_stale(row.version, version)
        changed = apply(by, row, changes)
        if changed:
            row.version += 1
            row.save(update_fields=["version"])
            record_all(by, row, changed)
            if any(field == "denied_tools" for field, _, _ in changed):
                approvals.void_denied(row)
            events.publish("policy", agent=row.id)
    return row


def record_all(by: Who, row: Agent, changed: Changed) -> None:
    """A line of history for every field."""
    for field, before, after in changed:
        record(by, "agent", row.id, row.name, field, before, after)


def apply(by: Who, row: Agent, changes: Mapping[str, Any]) -> Changed:
    """Write the changes into the three rows of an agent; what is the same already is no change."""
    capabilities, _ = Capabilities.objects.get_or_create(agent=row)
    permissions, _ = Permissions.objects.get_or_create(agent=row)
    plain = {key: check(key, changes[key], None) for key, check in shapes.PLAIN.items() if key in changes}
    wanted = changes.get("capabilities", {})
    if "preset" in changes and changes["preset"] != row.preset:
        plain["preset"] = preset(changes["preset"])
        wanted = with_preset(plain["preset"], wanted)
    changed = put(row, plain)
    if "reports_to" in changes:
        changed += move(by, row, changes["reports_to"])
    changed += put(capabilities, merged(capabilities, "capabilities", shapes.CAPABILITIES, wanted))
    changed += put(permissions, merged(permissions, "permissions", shapes.PERMISSIONS, changes.get("permissions", {})))
    row.capabilities, row.permissions = capabilities, permissions
    return changed


def merged(row: models.Model, where: str, schema: fields.Schema, given: Any) -> dict[str, Any]:
    """The given fields of a row as they will stand."""
    stored = {name: getattr(row, name) for name in schema}
    full = fields.merge(where, schema, stored, given)
    return {name: full[name] for name in given}


def preset(name: Any) -> str:
    """The name of a role preset, or "" for none."""
    return fields.choice("", *PRESETS)("preset", name, None)


def with_preset(name: str, capabilities: Any) -> Any:
    """The capabilities that a preset brings, under those that were asked for."""
    if not name or not isinstance(capabilities, dict):
        return capabilities
    return {"allowed_tools": list(PRESETS[name]), **capabilities}


def put(row: models.Model, values: Mapping[str, Any]) -> Changed:
    """Set and save the fields that differ: (field, before, after)."""
    changed: Changed = []
    for field, after in values.items():
        before = getattr(row, field)
        if canonical(before) != canonical(after):
            setattr(row, field, after)
            changed.append((field, before, after))
    if changed:
        row.save(update_fields=[field for field, _, _ in changed])
    return changed


def move(by: Who, row: Agent, name: Any) -> Changed:
    """Give an agent another superior: a living agent's name, or "", "none" or null for none."""
    parent = None if name in ROOT else parent_of(by, name)
    if parent is not None:
        chain = relations.read_chains(by.workspace, parent.id, parent.id)[1][parent.id]
        if row.id in (parent.id, *chain.above):
            raise fields.fault("reports_to", f"{parent.name} is {row.name} or reports to it: that would be a circle")
    if row.reports_to_id == (parent.id if parent else None):
        return []
    before = row.reports_to.name if row.reports_to else None
    row.reports_to = parent
    row.save(update_fields=["reports_to"])
    return [("reports_to", before, parent.name if parent else None)]


def parent_of(by: Who, name: Any) -> Agent:
    """The living agent that others may report to."""
    found = Agent.objects.for_who(by).living().filter(name=name).first() if isinstance(name, str) else None
    if found is None:
        raise fields.fault("reports_to", "no such agent")
    _, chains = relations.read_chains(by.workspace, found.id, found.id)
    if len(chains[found.id].above) >= relations.HOPS:
        raise fields.fault("reports_to", f"the chain above {found.name} is {relations.HOPS} long already")
    return found


def lock(by: Who) -> None:
    """The first lock of every change: policy of one workspace changes one step at a time."""
    list(Workspace.objects.select_for_update(no_key=True).filter(pk=by.workspace))


def refuse_stale(stands: int, seen: int | None) -> None:
    """Raise when the caller looked at another version than the one that stands."""
    if seen is None:
        return
    if type(seen) is not int:
        raise fields.fault("version", "must be an integer")
    if seen != stands:
        raise Refused("stale", f"this was changed meanwhile (version {stands}); read it again", version=stands)


def update_settings(*, by: Who, changes: Mapping[str, Any], version: int | None = None) -> PlatformSettings:
    """Change sections of a workspace's settings: objects merge, lists are replaced whole. Needs the role admin."""
    roles.need(by, Role.ADMIN, "changing settings")
    fields.refuse_unknown("", changes, shapes.SETTINGS)
    with transaction.atomic():
        lock(by)
        PlatformSettings.objects.get_or_create(workspace_id=by.workspace)
        row: PlatformSettings = PlatformSettings.objects.for_who(by).select_for_update(no_key=True).get()
        refuse_stale(row.version, version)
        sections = {
            name: fields.merge(name, shapes.SETTINGS[name], getattr(row, name), changes[name]) for name in changes
        }
        if "allow" in changes.get("delegation", {}):
            check_pairs(by, changes["delegation"]["allow"])
        changed = put(row, sections)
        if changed:
            row.version += 1
            row.save(update_fields=["version"])
            for section, before, after in changed:
                record_section(by, section, before if isinstance(before, dict) else {}, after)
            events.publish("policy", workspace=by.workspace)
    return row


def record_section(by: Who, section: str, before: dict[str, Any], after: dict[str, Any]) -> None:
    """A line for every key of a section that changed."""
    for key in after:
        if canonical(before.get(key)) != canonical(after[key]):
            record(by, "settings", by.workspace, "settings", f"{section}.{key}", before.get(key), after[key])


def check_pairs(by: Who, allow: Any) -> None:
    """Raise unless `allow` is a list of pairs of two agents of the workspace."""
    where = "delegation.allow"
    if not isinstance(allow, list) or len(allow) > PAIRS:
        raise fields.fault(where, f"must be a list of at most {PAIRS} pairs")
    for pair in allow:
        good = isinstance(pair, list) and len(pair) == 2 and all(isinstance(name, str) and name for name in pair)
        if not good or pair[0] == pair[1]:
            raise fields.fault(where, "every entry must be a pair of two agents")
    names = {name for pair in allow for name in pair}
    known = set(Agent.objects.for_who(by).living().filter(name__in=names).values_list("name", flat=True))
    if names - known:
        raise fields.fault(where, f"no such agent: {', '.join(sorted(names - known))[:200]}")


def set_role(user: User, *, by: Who, role: str) -> Membership | None:
    """Give a person a role in the workspace, or take it away with "". The last admin stays one."""
    roles.need(by, Role.ADMIN, "changing a person's role")
    if role and role not in Role.values:
        raise InvalidArguments(f"role: must be one of {', '.join(Role.values)}", "role")
    with transaction.atomic():
        lock(by)
        mine = Membership.objects.for_who(by)
        row: Membership | None = mine.filter(user=user).first()
        before = row.role if row else None
        if before == (role or None):
            return row
        admins = mine.filter(role=Role.ADMIN, user__is_active=True).exclude(user=user)
        if before == Role.ADMIN and not admins.exists():
            raise Refused("last_admin", "a workspace keeps at least one admin")
        row = assign(user, by, role, row)
        record(by, "membership", str(user.pk), user.get_username(), "role", before, role or None)
        events.publish("policy", workspace=by.workspace)
    return row


def assign(user: User, by: Who, role: str, row: Membership | None) -> Membership | None:
    """Write, change or delete the membership."""
    if row is None:
        return Membership.objects.create(workspace_id=by.workspace, user=user, role=role)
    if not role:
        row.delete()
        return None
    row.role = role
    row.save(update_fields=["role"])
    return row
