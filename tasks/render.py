"""Cards and feed lines as every transport shows them: agents by name, times RFC 3339 in UTC."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from duduclaw.lib import clock
from duduclaw.lib.canonical import canonical
from tasks.models import Activity, Task

LIST_CHARACTERS = 44_500  # a result has at most 45,000


def label(task: Task) -> str:
    """`T-121`."""
    return f"T-{task.number}"


def card(task: Task, depends_on: Sequence[str] | None = None) -> dict[str, Any]:
    """One task. `depends_on` saves the query for the ids when the caller knows them."""
    waits_for = task.depends_on.order_by("number").values_list("id", flat=True) if depends_on is None else depends_on
    return {
        "id": task.id,
        "number": label(task),
        "title": task.title,
        "description": task.description,
        "kind": task.kind,
        "status": task.status,
        "priority": task.priority,
        "assigned_to": task.assigned_to.name if task.assigned_to else None,
        "claimed_by": task.holder or None,
        "created_by": task.created_by,
        "tags": task.tags,
        "depends_on": list(waits_for),
        "parent_task_id": task.parent_id,
        "blocked_reason": task.blocked_reason,
        "summary": task.summary,
        "lease_expires_at": moment(task.lease_expires_at),
        "created_at": moment(task.created_at),
        "goal_mode": task.goal_mode,
        "acceptance_criteria": task.acceptance_criteria,
        "version": task.version,
    }


def cards(tasks: Iterable[Task]) -> list[dict[str, Any]]:
    """Many tasks with one query for all that they depend on."""
    shown = list(tasks)
    links = Task.depends_on.through.objects.filter(from_task_id__in=[task.id for task in shown])
    waits: dict[str, list[str]] = {task.id: [] for task in shown}
    for task, on in links.order_by("id").values_list("from_task_id", "to_task_id"):
        waits[task].append(on)
    return [card(task, waits[task.id]) for task in shown]


def line(event: Activity) -> dict[str, Any]:
    """One line of the feed."""
    return {
        "id": event.id,
        "event_type": event.event_type,
        "summary": event.summary,
        "actor": event.actor,
        "agent_id": event.agent.name if event.agent else None,
        "task_id": event.task_id,
        "task_number": label(event.task) if event.task else None,
        "metadata": event.metadata,
        "created_at": moment(event.created_at),
    }


def page(name: str, rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Rows up to the size that every client reads whole; what did not fit is counted, newest come first."""
    kept: list[dict[str, Any]] = []
    room = LIST_CHARACTERS
    for row in rows:
        room -= len(canonical(row))
        if room < 0 and kept:
            break
        kept.append(row)
    left_out = len(rows) - len(kept)
    return {name: kept, "count": len(kept), "truncated": bool(left_out), "left_out": left_out}


def moment(value: datetime | None) -> str | None:
    """RFC 3339 with `Z`, or null."""
    return clock.stamp(value) if value else None
