"""How a task changes: found under a lock, moved by compare-and-set, with its line in the feed.

Every change of status goes through `move`, so that grants end wherever a task ends.
"""

from typing import Any

from django.conf import settings
from django.db.models import F

from agents.actions.grants import end_for_task
from agents.models import Agent
from duduclaw import events
from duduclaw.lib import clock
from mcp.errors import InvalidArguments, Refused
from mcp.policy import Who
from tasks.models import Activity, Task
from tasks.render import label

Status = Task.Status
FREE: dict[str, Any] = {"holder": "", "claimed_by": None, "claim_key": "", "lease_expires_at": None}


def find_task(by: Who, ref: str, *, lock: bool = False, parameter: str = "task_id") -> Task:
    """The task of that id or number; one of another workspace is as absent as none. Raises `InvalidArguments`."""
    rows = Task.objects.for_who(by).named(ref).select_related("assigned_to", "claimed_by")
    task = (rows.select_for_update(of=("self",)) if lock else rows).first()
    if task is None:
        raise InvalidArguments(f"Invalid parameter {parameter}: no such task", parameter)
    return task


def owner_of(task: Task) -> Agent | None:
    """Whose record it is: the assignee's, else the claimer's."""
    return task.assigned_to or task.claimed_by


def parties_of(task: Task) -> tuple[str | None, str | None]:
    """Assignee and claimer, by id."""
    return task.assigned_to_id, task.claimed_by_id


def is_holder(task: Task, by: Who) -> bool:
    """Whether the caller holds the claim."""
    if not task.holder:
        return False
    return task.claimed_by_id == by.agent if by.agent else not task.claimed_by_id and task.holder == by.name


def lease_lives(task: Task) -> bool:
    """Whether a lease keeps others off the task now."""
    lease = task.lease_expires_at
    return task.status == Status.IN_PROGRESS and lease is not None and lease > clock.now()


def lost_claim(task: Task, by: Who) -> bool:
    """Whether the caller once claimed what another holds now."""
    if not by.agent or not task.holder or is_holder(task, by):
        return False
    return Activity.objects.for_who(by).filter(task=task, agent_id=by.agent, event_type="task_claimed").exists()


def claim_lost(task: Task) -> Refused:
    """The answer to an old holder."""
    return Refused(
        "claim_lost",
        f"your claim of {label(task)} has ended: {task.holder or 'nobody'} holds it now",
        target=task.holder or None,
        holder=task.holder or None,
    )


def already_claimed(task: Task) -> Refused:
    """The answer to everybody but the holder."""
    until = f" until {clock.stamp(task.lease_expires_at)}" if task.lease_expires_at else ""
    return Refused(
        "already_claimed", f"{label(task)} is held by {task.holder}{until}", target=task.holder, holder=task.holder
    )


def wrong_status(task: Task, verb: str) -> Refused:
    """The answer to a move that the task's status does not allow."""
    why = f" ({task.blocked_reason})" if task.status == Status.BLOCKED and task.blocked_reason else ""
    return Refused("wrong_status", f"{label(task)} is {task.status}{why} and cannot be {verb}", status=task.status)


def move(
    task: Task, by: Who, to: str, event: str, says: str, *, note: dict[str, Any] | None = None, **changes: Any
) -> Task:
    """Take a locked task to a status, write its line, and end its grants when that ends it.

    Raises `stale` when the row is no longer as it was read.
    """
    now = clock.now()
    changes |= {"status": to, "updated_at": now, "finished_at": now if to in Task.FINISHED else None}
    same = Task.objects.for_who(by).filter(pk=task.pk, version=task.version)
    if not same.update(version=F("version") + 1, **changes):
        raise Refused("stale", f"{label(task)} has changed meanwhile; read it again")
    apply(task, changes | {"version": task.version + 1})
    if to in Task.GRANTS_END:
        end_for_task(task.id, reason="task_stopped" if to == Status.STOPPED else "task_phase_end")
    tell(by, task, event, says, **(note or {}))
    return task


def apply(task: Task, changes: dict[str, Any]) -> None:
    """Give the object in memory what the row has got."""
    for name, value in changes.items():
        setattr(task, name, value)


def tell(by: Who, task: Task, event: str, says: str, **metadata: Any) -> None:
    """One line of the feed about a task, and the news that the board has changed."""
    Activity.objects.create(
        workspace_id=task.workspace_id,
        task=task,
        agent_id=by.agent or None,
        actor=by.name,
        event_type=event,
        summary=says,
        metadata=metadata,
        created_at=clock.now(),
    )
    events.publish("board", workspace=task.workspace_id)


def lease_seconds() -> int:
    """How long a lease lives."""
    return int(settings.TASK_LEASE_SECONDS)
