"""Make and revoke keys. The key itself leaves this module once, as the return value."""

import secrets
from datetime import datetime, timedelta

from django.conf import settings
from django.db import transaction

from agents.actions.history import record
from agents.models import Agent, Key, Role
from agents.principals import PREFIX_LENGTH, digest_of
from duduclaw import events
from duduclaw.lib import clock
from mcp import scopes
from mcp.errors import InvalidArguments, Refused
from mcp.policy import Who

DEFAULT_LIFE = timedelta(days=30)
LONGEST_LIFE = timedelta(days=365)


def create_key(
    *,
    by: Who,
    kind: str,
    agent: Agent | None = None,
    scopes_held: list[str] | None = None,
    role: str = "",
    client_id: str = "",
    label: str = "",
    task_id: str = "",
    expires_at: datetime | None = None,
) -> tuple[Key, str]:
    """A new key and its text, which is not kept. Raises `InvalidArguments` naming the field."""
    held = default_scopes(kind) if scopes_held is None else scopes_held
    check(kind, agent, held, role, by)
    token = f"ddc_{settings.KEY_ENVIRONMENT}_{secrets.token_hex(16)}"
    with transaction.atomic():
        key = Key.objects.create(
            workspace_id=by.workspace,
            kind=kind,
            agent=agent,
            client_id=agent.name if agent else (client_id or label or kind),
            label=label,
            prefix=token[:PREFIX_LENGTH],
            digest=digest_of(token),
            scopes=sorted(held),
            role=(role or Role.OPERATOR) if kind == Key.Kind.OPERATOR else "",
            task_id=task_id,
            created_by=by.name,
            expires_at=life(expires_at),
        )
        record(by, "key", key.id, key.prefix, "created", None, {"kind": kind, "scopes": sorted(held)})
    return key, token


def default_scopes(kind: str) -> list[str]:
    """Agents, runs and operators hold `admin`; a client holds what it is given."""
    return [] if kind == Key.Kind.EXTERNAL else [scopes.ADMIN]


def check(kind: str, agent: Agent | None, held: list[str], role: str, by: Who) -> None:
    """Every rule about what a key may be."""
    if kind not in Key.Kind.values:
        raise InvalidArguments(f"kind: must be one of {', '.join(Key.Kind.values)}", "kind")
    if (kind in (Key.Kind.AGENT, Key.Kind.RUN)) != (agent is not None):
        raise InvalidArguments("agent: agent and run keys name an agent, the others do not", "agent")
    if agent is not None and agent.workspace_id != by.workspace:
        raise InvalidArguments("agent: no such agent", "agent")
    unknown = [scope for scope in held if scope not in scopes.SCOPES]
    if unknown:
        raise InvalidArguments(f"scopes: unknown scope {unknown[0]}", "scopes")
    if kind == Key.Kind.EXTERNAL and not set(held) <= scopes.GRANTABLE:
        raise InvalidArguments(f"scopes: external keys hold {', '.join(sorted(scopes.GRANTABLE))} only", "scopes")
    if role and role not in Role.values:
        raise InvalidArguments(f"role: must be one of {', '.join(Role.values)}", "role")
    if by.role and Role(role or Role.OPERATOR).rank > Role(by.role).rank:
        raise InvalidArguments("role: a key cannot have a higher role than its maker", "role")


def life(expires_at: datetime | None) -> datetime:
    """The end of a key's life: 30 days from now when none is asked, at most 365."""
    now = clock.now()
    end = expires_at or now + DEFAULT_LIFE
    if not now < end <= now + LONGEST_LIFE:
        raise InvalidArguments("expires_at: must lie in the future, at most 365 days from now", "expires_at")
    return end


def revoke_key(key: Key, *, by: Who) -> Key:
    """End a key now. Refused when it has ended already."""
    with transaction.atomic():
        now = clock.now()
        changed = Key.objects.for_who(by).filter(pk=key.pk, revoked_at=None).update(revoked_at=now, revoked_by=by.name)
        if not changed:
            raise Refused("already_revoked", f"{key.prefix} is revoked already")
        record(by, "key", key.id, key.prefix, "revoked_at", None, clock.stamp(now))
        events.publish("key", id=key.id)
    key.refresh_from_db()
    return key
