"""A working state as the agent reads it, within what every client reads whole."""

from typing import Any

from duduclaw.knowledge.models import Handoff, StateChange, StateKey
from duduclaw.lib import clock
from duduclaw.lib.canonical import canonical
from mcp.policy import Who
from mcp.results import ENVELOPE, MOST_CHARACTERS, fit


def whole(who: Who, history_limit: int) -> dict[str, Any]:
    """Note, keys and history, in that order of importance; what does not fit is counted in `left_out`."""
    note = Handoff.objects.mine(who).first()
    keys = [key_card(row) for row in StateKey.objects.mine(who).order_by("key")]
    history = [change(row) for row in StateChange.objects.mine(who).order_by("-created_at", "-id")[:history_limit]]
    shown = {"handoff": None if note is None else handoff_card(note)}
    room = MOST_CHARACTERS - ENVELOPE - len(canonical(shown))
    kept_keys = fit(keys, len(keys), room, least=0)
    room -= len(canonical(kept_keys))
    kept_history = fit(history, history_limit, room, least=0)
    left_out = {"keys": len(keys) - len(kept_keys), "history": len(history) - len(kept_history)}
    return shown | {
        "keys": kept_keys,
        "history": kept_history,
        "truncated": any(left_out.values()),
        "left_out": left_out,
    }


def key_card(row: StateKey) -> dict[str, Any]:
    """One key; an expired one stays to be seen until it is set, cleared or its place is needed."""
    return {
        "key": row.key,
        "value": row.value,
        "reason": row.reason,
        "updated_at": clock.stamp(row.updated_at),
        "expires_at": clock.stamp(row.expires_at) if row.expires_at else None,
        "expired": row.expires_at is not None and row.expires_at <= clock.now(),
    }


def change(row: StateChange) -> dict[str, Any]:
    """One line of the history."""
    return {
        "key": row.key or None,
        "action": row.action,
        "value": row.value,
        "reason": row.reason,
        "at": clock.stamp(row.created_at),
    }


def handoff_card(row: Handoff) -> dict[str, Any]:
    """The note as it was left."""
    return {
        "note": row.note,
        "status": row.status or None,
        "next_steps": row.next_steps or None,
        "evidence": row.evidence or None,
        "blocker": row.blocker or None,
        "updated_at": clock.stamp(row.updated_at),
    }


def handoff_summary(row: Handoff) -> dict[str, Any]:
    """What was stored, in short."""
    texts = (row.note, row.next_steps, row.evidence, row.blocker)
    return {
        "status": row.status or None,
        "note_characters": len(row.note),
        "bytes": sum(len(text.encode()) for text in texts),
        "updated_at": clock.stamp(row.updated_at),
    }
