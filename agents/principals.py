"""From a key, a person or an agent to a `Who`. The only builder of one; fails closed.

A snapshot is kept by the key's hash together with the version numbers of all that decided it, and is used
again only while one SELECT says that none has moved and no grant or key has run out.
"""

import hashlib
import hmac
import re
from collections.abc import Iterable
from dataclasses import replace
from typing import NamedTuple

from django.contrib.auth.base_user import AbstractBaseUser
from django.db import connection

from agents.models import Agent, FleetStop, Grant, Key, Membership, PlatformSettings, Role
from agents.versions import FLAGS, SWITCHES
from duduclaw.lib import clock
from mcp import scopes
from mcp.policy import Who

TOKEN = re.compile(r"ddc_(live|test)_[0-9a-f]{32}\Z", re.ASCII)
PREFIX_LENGTH = 17  # ddc_live_ and eight hex digits
NOBODY = hashlib.sha256(b"no such key").hexdigest()
CACHE_SIZE = 10_000
EXTERNAL_RATE, KEY_RATE = (100, 20, 20), (60_000, 6_000, 2_000)

Ref = tuple[str, str]


class BadKey(Exception):
    """No principal. `reason`: missing, invalid_format, unknown, expired, revoked or agent_gone."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"MCP authentication failed: {reason}")
        self.reason = reason


class Snapshot(NamedTuple):
    """A cached principal and the versions it hangs on."""

    who: Who
    versions: tuple[tuple[Ref, int], ...]


_cache: dict[str, Snapshot] = {}


def forget() -> None:
    """Empty the cache (tests that replace the database)."""
    _cache.clear()


def digest_of(token: str) -> str:
    """What is stored of a key: SHA-256 in hex. 128 random bits need no slow hash."""
    return hashlib.sha256(token.encode()).hexdigest()


def who_for_key(token: str | None) -> Who:
    """The principal that a key proves, as of now. Raises `BadKey`.

    Ask outside a transaction that has changed a right: a snapshot of what is then rolled back would be kept.
    """
    if not token:
        raise BadKey("missing")
    if not TOKEN.match(token):
        raise BadKey("invalid_format")
    digest = digest_of(token)
    snapshot = _cache.get(digest)
    if snapshot is None or not fresh(snapshot):
        _cache.pop(digest, None)
        snapshot = load(token, digest)
        if len(_cache) >= CACHE_SIZE:
            _cache.clear()
        _cache[digest] = snapshot
    return snapshot.who


def fresh(snapshot: Snapshot) -> bool:
    """Whether nothing that decided the snapshot has changed or run out."""
    until = snapshot.who.valid_until
    if until is not None and clock.now() >= until:
        return False
    return dict(snapshot.versions) == versions(ref for ref, _ in snapshot.versions)


def versions(refs: Iterable[Ref]) -> dict[Ref, int]:
    """The version numbers of some things; one that never changed has 0."""
    wanted = list(refs)
    if not wanted:
        return {}
    marks = " OR ".join(["(kind = %s AND ref = %s)"] * len(wanted))
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT kind, ref, n FROM agents_version WHERE {marks}",  # noqa: S608
            [part for ref in wanted for part in ref],
        )
        found = {(kind, ref): n for kind, ref, n in cursor.fetchall()}
    return {ref: found.get(ref, 0) for ref in wanted}


def load(token: str, digest: str) -> Snapshot:
    """Read a principal from the database. Versions are read first: a change in between only costs a reload."""
    key = Key.objects.system().filter(prefix=token[:PREFIX_LENGTH]).select_related("agent").first()
    if not hmac.compare_digest(digest, key.digest if key else NOBODY) or key is None:
        raise BadKey("unknown")
    refs: list[Ref] = [("key", key.id), ("workspace", key.workspace_id)]
    if key.agent_id:
        refs.append(("agent", key.agent_id))
    seen = versions(refs)
    key = Key.objects.system().select_related("agent").filter(pk=key.pk).first()
    if key is None:
        raise BadKey("unknown")
    refuse_dead(key)
    who = for_agent_key(key, seen) if key.agent else for_plain_key(key, seen)
    return Snapshot(who, tuple(seen.items()))


def refuse_dead(key: Key) -> None:
    """A key that is revoked, expired, or whose agent is gone opens nothing."""
    if key.revoked_at is not None:
        raise BadKey("revoked")
    if key.expires_at <= clock.now():
        raise BadKey("expired")
    if key.agent and key.agent.status in (Agent.Status.REMOVED, Agent.Status.TERMINATED):
        raise BadKey("agent_gone")


def for_agent_key(key: Key, seen: dict[Ref, int]) -> Who:
    """An agent by its own key, or a run by the key minted for it."""
    if key.agent is None:
        raise BadKey("agent_gone")
    who = who_for_agent(key.agent)
    return replace(
        who,
        kind=key.kind,
        key=key.id,
        key_prefix=key.prefix,
        task=key.task_id,
        scopes=held(key),
        version=tuple(seen.values()),
        valid_until=min(who.valid_until or key.expires_at, key.expires_at),
    )


def for_plain_key(key: Key, seen: dict[Ref, int]) -> Who:
    """An operator's automation, or an external client."""
    external = key.kind == Key.Kind.EXTERNAL
    carried = held(key)
    if not external and key.role == Role.VIEWER and scopes.ADMIN in carried:
        carried = (carried - {scopes.ADMIN}) | {scopes.VIEWER}
    return Who(
        kind=key.kind,
        workspace=key.workspace_id,
        name=key.client_id,
        key=key.id,
        key_prefix=key.prefix,
        role="" if external else key.role,
        stopped=stopped(key.workspace_id, None) if external else "",
        scopes=carried,
        switches=workspace_switches(key.workspace_id, responsibilities=not external),
        rate=rate(key.workspace_id, external=external),
        version=tuple(seen.values()),
        valid_until=key.expires_at,
    )


def held(key: Key) -> frozenset[str]:
    """The scopes on a key; what is no list of strings holds nothing."""
    listed = key.scopes if isinstance(key.scopes, list) else []
    return frozenset(scope for scope in listed if isinstance(scope, str))


def who_for_agent(agent: Agent) -> Who:
    """An agent without a named key, judged with scope `admin` (explain, lists, preview)."""
    caps = getattr(agent, "capabilities", None)
    grants = list(Grant.objects.system().filter(agent=agent).active(clock.now()).values_list("tool", "expires_at"))
    return Who(
        kind="agent",
        workspace=agent.workspace_id,
        name=agent.name,
        agent=agent.id,
        status=agent.status,
        department=agent.department,
        stopped=stopped(agent.workspace_id, agent),
        scopes=frozenset({scopes.ADMIN}),
        switches=workspace_switches(agent.workspace_id, responsibilities=True) | agent_switches(caps),
        denied=entries(caps, "denied_tools"),
        allowed=entries(caps, "allowed_tools"),
        scoped=entries(caps, "scoped_tools"),
        approval_required=entries(caps, "approval_required_tools"),
        irreversible=entries(caps, "irreversible_tools"),
        maybe_irreversible=entries(caps, "maybe_irreversible_tools"),
        refused_permissions=refused_permissions(agent),
        rate=rate(agent.workspace_id, external=False),
        grants=frozenset(tool for tool, _ in grants),
        valid_until=min((end for _, end in grants), default=None),
    )


def who_for_user(user: AbstractBaseUser, workspace: str | None = None) -> Who | None:
    """A signed-in person in one workspace (the first membership when none is named), or None."""
    mine = Membership.objects.system().filter(user_id=user.pk, user__is_active=True).select_related("user")
    membership = (mine.filter(workspace_id=workspace) if workspace else mine.order_by("id")).first()
    if membership is None:
        return None
    viewer = membership.role == Role.VIEWER
    return Who(
        kind="person",
        workspace=membership.workspace_id,
        name=membership.user.get_username(),
        user=membership.user_id,
        role=membership.role,
        scopes=frozenset({scopes.VIEWER if viewer else scopes.ADMIN}),
        switches=workspace_switches(membership.workspace_id, responsibilities=True),
    )


def entries(caps: object | None, name: str) -> tuple[str, ...]:
    """A tool list as stored; what is no list of strings restricts nothing (rules 2.2)."""
    value = getattr(caps, name, ())
    return tuple(item for item in value if isinstance(item, str)) if isinstance(value, list) else ()


def agent_switches(caps: object | None) -> frozenset[str]:
    """The per-agent switches that are on; a missing or wrong-typed one is off."""
    on = {name for name in SWITCHES if getattr(caps, name, False) is True}
    sources = getattr(caps, "db_sources", None)
    return frozenset(on | ({"db_sources"} if isinstance(sources, list) and sources else set()))


def workspace_switches(workspace: str, *, responsibilities: bool) -> frozenset[str]:
    """The switches that stand in the workspace's settings."""
    row = PlatformSettings.objects.system().filter(workspace_id=workspace).first()
    if row is None:
        return frozenset()
    integrations = row.integrations if isinstance(row.integrations, dict) else {}
    on = {name for name in ("google_workspace", "github") if integrations.get(name) is True}
    section = row.responsibilities if isinstance(row.responsibilities, dict) else {}
    if responsibilities and section.get("enabled") is True:
        on.add("responsibilities")
    return frozenset(on)


def rate(workspace: str, *, external: bool) -> tuple[int, int, int]:
    """(reads, writes, burst) a minute for a kind of key: the settings where they are whole numbers, else standard."""
    standard = EXTERNAL_RATE if external else KEY_RATE
    row = PlatformSettings.objects.system().filter(workspace_id=workspace).values_list("rate", flat=True).first()
    section = row.get("external" if external else "keys") if isinstance(row, dict) else None
    asked = [section.get(name) if isinstance(section, dict) else None for name in ("read", "write", "burst")]
    read, write, burst = (
        mine if type(mine) is int and mine >= 0 else usual for mine, usual in zip(asked, standard, strict=True)
    )
    return read, write, burst


def refused_permissions(agent: Agent) -> frozenset[str]:
    """The flags that refuse: an explicit false, or a value that is no boolean."""
    row = getattr(agent, "permissions", None)
    return frozenset(flag for flag in FLAGS if not allows(getattr(row, flag, None)))


def allows(flag: object) -> bool:
    """Null (a missing key) and true allow; 1 is no boolean."""
    return flag is None or flag is True


def stopped(workspace: str, agent: Agent | None) -> str:
    """What is stopped that this principal belongs to, in words, widest first; "" when nothing is."""
    stops = FleetStop.objects.system().filter(workspace_id=workspace, released_at=None)
    found = {(stop.scope, stop.target) for stop in stops}
    if (FleetStop.Scope.ALL, "") in found:
        return "the fleet"
    if agent and agent.department and (FleetStop.Scope.DEPARTMENT, agent.department) in found:
        return f"the department {agent.department}"
    if agent and (FleetStop.Scope.AGENT, agent.name) in found:
        return f"the agent {agent.name}"
    return ""
