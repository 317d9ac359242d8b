"""How work ends: complete and block by those who hold a task, the rest by people."""

from typing import Any

from django.db import transaction

from agents.relations import check_identity, check_record
from mcp import scopes
from mcp.errors import InvalidArguments, Refused
from mcp.policy import Who
from tasks.actions import moves
from tasks.actions.dependencies import refuse_unmet
from tasks.actions.leases import lose
from tasks.actions.parents import refuse_stopped
from tasks.models import Task
from tasks.render import label

Status = Task.Status
WORKABLE = (Status.TODO, Status.PENDING, Status.IN_PROGRESS, Status.REVISING, Status.BLOCKED)
UNCLAIMED: dict[str, Any] = {"claim_key": "", "lease_expires_at": None}
# verb of a person -> the statuses it starts from
PERSON_MAY: dict[str, tuple[str, ...]] = {
    "cancelled": tuple(set(Status.values) - set(Task.FINISHED)),
    "accepted": (Status.REVIEW, Status.NEEDS_HUMAN),
    "rejected": (Status.REVIEW,),
    "retried": (Status.NEEDS_HUMAN, Status.BLOCKED, Status.FAILED, Status.CANCELLED),
    "escalated": (Status.PENDING, Status.IN_PROGRESS, Status.REVIEW, Status.REVISING, Status.BLOCKED),
}


def complete_task(ref: str, *, by: Who, summary: str = "") -> Task:
    """Mark a task done; one in goal mode goes to review. A repeat changes nothing, and `done` is never overwritten."""
    with transaction.atomic():
        task = moves.find_task(by, ref, lock=True)
        check_hold(task, by)
        to = Status.REVIEW if task.goal_mode else Status.DONE
        if task.status in (to, Status.DONE):
            return task
        refuse_unworkable(task, "completed")
        refuse_unmet(task, "completed")
        changes: dict[str, Any] = UNCLAIMED | {"summary": summary, "blocked_reason": ""}
        return moves.move(task, by, to, "task_completed", summary or f"{by.name} completed {label(task)}", **changes)


def block_task(ref: str, *, by: Who, reason: str) -> Task:
    """Mark a task blocked, with what stands in the way. Its lease ends; a person lets it go on."""
    if not reason.strip():
        raise InvalidArguments("Invalid parameter reason: must not be blank", "reason")
    with transaction.atomic():
        task = moves.find_task(by, ref, lock=True)
        check_hold(task, by)
        if task.status == Status.BLOCKED and task.blocked_reason == reason:
            return task
        refuse_unworkable(task, "blocked")
        changes: dict[str, Any] = {"lease_expires_at": None, "blocked_reason": reason}
        return moves.move(task, by, Status.BLOCKED, "task_blocked", reason, **changes)


def check_hold(task: Task, by: Who) -> None:
    """Raise unless the caller may end this work: its holder; without a living lease the assignee or a related agent."""
    check_identity(by)
    if moves.is_holder(task, by):
        return
    if moves.lost_claim(task, by):
        raise moves.claim_lost(task)
    hint = f"{task.holder} holds it" if task.holder else "nobody owns it yet; take it with tasks_claim first"
    check_record(by, moves.owner_of(task), what=label(task), hint=hint, parties=moves.parties_of(task))
    if moves.lease_lives(task):
        raise moves.already_claimed(task)


def refuse_unworkable(task: Task, verb: str) -> None:
    """Raise when the task has ended, waits for a judge or a person, or was stopped from above."""
    if task.status not in WORKABLE:
        raise moves.wrong_status(task, verb)
    refuse_stopped(task, verb)


def cancel_task(task: Task, *, by: Who, reason: str = "") -> Task:
    """A person gives the task up."""
    return decide(task, by, "cancelled", Status.CANCELLED, reason, **UNCLAIMED)


def accept_task(task: Task, *, by: Who, note: str = "") -> Task:
    """A person finds the work good."""
    return decide(task, by, "accepted", Status.DONE, note, **UNCLAIMED, blocked_reason="")


def reject_task(task: Task, *, by: Who, feedback: str) -> Task:
    """A person sends the work back; the feedback stands on the card for whoever claims it next."""
    if not feedback.strip():
        raise InvalidArguments("Invalid parameter feedback: must not be blank", "feedback")
    return decide(task, by, "rejected", Status.REVISING, feedback, **moves.FREE, blocked_reason=feedback)


def retry_task(task: Task, *, by: Who, note: str = "") -> Task:
    """A person lets the task go on, free to be claimed; its counters stay."""
    return decide(task, by, "retried", None, note, blocked_reason="")


def escalate_task(task: Task, *, by: Who, reason: str) -> Task:
    """Work stops until a person has decided; the task's grants end."""
    return decide(task, by, "escalated", Status.NEEDS_HUMAN, reason, **moves.FREE, blocked_reason=reason)


def decide(task: Task, by: Who, verb: str, to: str | None, says: str, **changes: Any) -> Task:
    """A person's move. `to` None puts the task back to where it waits for a claim."""
    if not by.is_human or scopes.ADMIN not in by.scopes:
        raise Refused("human_only", f"only an operator decides that a task is {verb}")
    with transaction.atomic():
        row = moves.find_task(by, task.pk, lock=True)
        may = PERSON_MAY[verb] + ((Status.DONE,) if verb == "retried" and row.goal_mode else ())
        if row.status not in may:
            raise moves.wrong_status(row, verb)
        if to is None:
            refuse_stopped(row, verb)
            changes |= lose(row)
            to = waiting(row)
        return moves.move(row, by, to, f"task_{verb}", says or f"{by.name} {verb} {label(row)}", **changes)


def waiting(task: Task) -> str:
    """The status from which a task of this sort is claimed."""
    durable = task.durable or task.goal_mode or task.depends_on.exists()
    return str(Status.PENDING if durable else Status.TODO)
