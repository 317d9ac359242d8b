"""The activity feed: one line a change, and the notes that agents and people post."""

import json
import re
from typing import Any

from django.db import transaction

from agents.relations import check_identity, check_record
from duduclaw import events
from duduclaw.lib import clock
from mcp.errors import InvalidArguments, Refused
from mcp.policy import Who
from tasks.actions.moves import find_task, owner_of, parties_of
from tasks.models import Activity
from tasks.render import label

COMMENT = "agent_comment"
EVENT_TYPE = re.compile(r"[A-Za-z0-9_.:-]{1,64}\Z", re.ASCII)
RESERVED = ("responsibility.", "task.stop")
LARGEST_METADATA = 16_384  # characters of JSON


def post_activity(
    *,
    by: Who,
    summary: str,
    task_id: str | None = None,
    event_type: str = COMMENT,
    metadata: dict[str, Any] | None = None,
) -> Activity:
    """Post a note. With a task the caller must be its assignee, claimer or creator, or related to its assignee."""
    check_note(by, summary, event_type, metadata or {})
    with transaction.atomic():
        task = find_task(by, task_id) if task_id is not None else None
        if task is not None:
            parties = (*parties_of(task), task.creator_id)
            check_record(by, owner_of(task), what=label(task), parties=parties)
        row = Activity.objects.create(
            workspace_id=by.workspace,
            task=task,
            agent_id=by.agent or None,
            actor=by.name,
            event_type=event_type,
            summary=summary,
            metadata=metadata or {},
            created_at=clock.now(),
        )
        events.publish("board", workspace=by.workspace)
    return row


def check_note(by: Who, summary: str, event_type: str, metadata: dict[str, Any]) -> None:
    """Every rule about a note that needs no database."""
    check_identity(by)
    if not summary.strip():
        raise InvalidArguments("Invalid parameter summary: must not be blank", "summary")
    if not EVENT_TYPE.match(event_type):
        raise InvalidArguments("Invalid parameter event_type: up to 64 letters, digits and . _ : -", "event_type")
    if not by.is_human and event_type.casefold().startswith(RESERVED):
        raise Refused("reserved_event_type", f"events {RESERVED[0]}... and {RESERVED[1]}... are the platform's own")
    if not storable(metadata):
        raise InvalidArguments("Invalid parameter metadata: plain JSON of at most 16,384 characters", "metadata")


def storable(metadata: dict[str, Any]) -> bool:
    """Whether both databases keep the value as it is: no NaN, no NUL, no half a surrogate pair."""
    try:
        text = json.dumps(metadata, allow_nan=False, ensure_ascii=False)
        text.encode()
    except (ValueError, RecursionError):
        return False
    return len(text) <= LARGEST_METADATA and "\\u0000" not in text
