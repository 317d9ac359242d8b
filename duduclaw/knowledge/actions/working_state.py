"""Changes of what an agent keeps between wakes: its keys. The agent is always the caller itself."""

import re
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.db import transaction

from agents.models import Agent
from duduclaw.knowledge.models import StateChange, StateKey
from duduclaw.lib import clock
from mcp.errors import InvalidArguments, Refused
from mcp.policy import Who
from mcp.texts import check_line

KEY = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}\Z", re.ASCII)
MOST_KEYS, LONGEST_VALUE, LONGEST_REASON, LONGEST_HOURS = 32, 400, 200, 720


@dataclass(frozen=True, slots=True)
class Wanted:
    """A key as it shall stand. `expected` "" means: only when nothing stands there; None asks for nothing."""

    key: str
    value: str
    reason: str
    ttl_hours: int | None = None
    expected: str | None = None


def set_key(wanted: Wanted, *, by: Who) -> StateKey:
    """Set one key. Raises `InvalidArguments`, `state_changed` with the present value, or `too_many_keys`."""
    check_key(wanted.key)
    check_line("value", wanted.value, LONGEST_VALUE)
    check_line("reason", wanted.reason, LONGEST_REASON)
    if wanted.ttl_hours is not None and not 1 <= wanted.ttl_hours <= LONGEST_HOURS:
        raise InvalidArguments(f"Invalid parameter ttl_hours: must be 1 to {LONGEST_HOURS}", "ttl_hours")
    with transaction.atomic():
        lock(by)
        row = StateKey.objects.mine(by).filter(key=wanted.key).first()
        if row is not None and stands(row, wanted):
            return row
        if not swap(by, wanted):
            insert(by, wanted)
        remember(by, wanted.key, "set", wanted.value, wanted.reason)
        return StateKey.objects.mine(by).get(key=wanted.key)


def check_key(key: str) -> None:
    """Lowercase ASCII, 1 to 64 characters."""
    if not KEY.match(key):
        raise InvalidArguments("Invalid parameter key: must match ^[a-z0-9][a-z0-9._-]{0,63}$", "key")


def lock(by: Who) -> Agent:
    """One writer an agent: the count of keys is taken before the insert."""
    return Agent.objects.for_who(by).select_for_update(no_key=True).get(pk=by.agent)


def stands(row: StateKey, wanted: Wanted) -> bool:
    """Whether the very same call was made before and nothing has moved since."""
    same = (row.value, row.reason) == (wanted.value, wanted.reason)
    return same and wanted.expected is None and wanted.ttl_hours is None and row.expires_at is None


def swap(by: Who, wanted: Wanted) -> bool:
    """Compare-and-set of a key that exists; False when there is none that has not expired."""
    now = clock.now()
    rows = StateKey.objects.mine(by).filter(key=wanted.key).standing(now)
    same = rows if wanted.expected is None else rows.filter(value=wanted.expected)
    if same.update(**columns(wanted)):
        return True
    current = rows.values_list("value", flat=True).first()
    if wanted.expected not in (None, "") or current is not None:
        raise Refused(
            "state_changed",
            f"{wanted.key} does not have the expected value; decide again from the present one",
            key=wanted.key,
            current=current,
        )
    return False


def columns(wanted: Wanted) -> dict[str, Any]:
    """What a set writes."""
    now = clock.now()
    ends = None if wanted.ttl_hours is None else now + timedelta(hours=wanted.ttl_hours)
    return {"value": wanted.value, "reason": wanted.reason, "expires_at": ends, "updated_at": now}


def insert(by: Who, wanted: Wanted) -> None:
    """A new key. Expired ones make room first."""
    now = clock.now()
    mine = StateKey.objects.mine(by)
    mine.filter(key=wanted.key).delete()
    if mine.count() >= MOST_KEYS:
        mine.lapsed(now).delete()
    if mine.count() >= MOST_KEYS:
        raise Refused(
            "too_many_keys", f"{MOST_KEYS} keys are set; retire one with working_state_clear first", limit=MOST_KEYS
        )
    StateKey.objects.create(workspace_id=by.workspace, agent_id=by.agent, key=wanted.key, **columns(wanted))


def clear_key(key: str, reason: str, *, by: Who) -> bool:
    """Retire one key and keep the reason. False when it was not set."""
    check_key(key)
    check_line("reason", reason, LONGEST_REASON)
    with transaction.atomic():
        lock(by)
        gone, _ = StateKey.objects.mine(by).filter(key=key).delete()
        if gone:
            remember(by, key, "clear", "", reason)
    return bool(gone)


def remember(by: Who, key: str, action: str, value: str, reason: str) -> None:
    """One line of the history."""
    StateChange.objects.create(
        workspace_id=by.workspace,
        agent_id=by.agent,
        key=key,
        action=action,
        value=value,
        reason=reason,
        created_at=clock.now(),
    )
