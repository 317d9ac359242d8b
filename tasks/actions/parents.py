"""Parents: which task a new one hangs under, and how wide and deep a tree may grow."""

from typing import NamedTuple

from django.db import connection

from agents.relations import check_record
from mcp.errors import Refused
from mcp.policy import Who
from tasks.actions.moves import find_task, owner_of, parties_of
from tasks.models import Task
from tasks.querysets import REF
from tasks.render import label

MOST_CHILDREN = 200
DEEPEST = 64
LINEAGE = """
WITH RECURSIVE up (id, parent_id, status, occurrence, depth) AS (
    SELECT id, parent_id, status, occurrence, 1 FROM tasks_task WHERE id = %s
    UNION ALL
    SELECT t.id, t.parent_id, t.status, t.occurrence, up.depth + 1
    FROM tasks_task t JOIN up ON t.id = up.parent_id WHERE up.depth <= %s
)
SELECT id, status, occurrence FROM up ORDER BY depth
"""
HEIGHT = """
WITH RECURSIVE down (id, depth) AS (
    SELECT id, 1 FROM tasks_task WHERE id = %s
    UNION ALL
    SELECT t.id, down.depth + 1 FROM tasks_task t JOIN down ON t.parent_id = down.id WHERE down.depth <= %s
)
SELECT MAX(depth) FROM down
"""


class Link(NamedTuple):
    """One task of a chain."""

    id: str
    status: str
    occurrence: bool


def lineage(task_id: str) -> list[Link]:
    """A task and all above it, nearest first; ends after `DEEPEST` + 1 links."""
    with connection.cursor() as cursor:
        cursor.execute(LINEAGE, (task_id, DEEPEST))
        return [Link(task, status, bool(occurrence)) for task, status, occurrence in cursor.fetchall()]


def choose_parent(by: Who, asked: str | None, round_task: str | None) -> Task | None:
    """The parent of a task that `by` creates. `round_task` is the round's header: None when absent.

    Within a run of a responsibility the round's task is the default and the limit; elsewhere a given parent
    needs a relationship and there is no default.
    """
    current = read_round(by, round_task)
    if by.is_human:
        return find_task(by, asked, parameter="parent_task_id") if asked else None
    inside = (
        current is not None and by.agent in parties_of(current) and any(link.occurrence for link in lineage(current.id))
    )
    if asked is None:
        return current if inside else None
    parent = find_task(by, asked, parameter="parent_task_id")
    if inside and current is not None and all(link.id != current.id for link in lineage(parent.id)):
        raise Refused("outside_round", f"in this round new tasks belong under {label(current)}", target=label(parent))
    check_record(by, owner_of(parent), what=label(parent), parties=(*parties_of(parent), parent.creator_id))
    return parent


def read_round(by: Who, sent: str | None) -> Task | None:
    """The task of the round that the caller is in. What is sent and cannot be read refuses; it is never "no round"."""
    bound = by.task if by.kind == "run" else ""
    if sent is not None and not REF.match(sent):
        raise Refused("round_invalid", "the round's task is blank or malformed; restart the session")
    ref = sent if sent is not None else bound
    if not ref:
        return None
    task = Task.objects.for_who(by).named(ref).select_related("assigned_to", "claimed_by").first()
    if task is None:
        raise Refused("round_unreadable", "the round's task cannot be read; restart the session")
    if by.kind == "run" and task.id != bound:
        raise Refused("round_mismatch", "this key was made for another round than the one named")
    return task


def check_child(by: Who, parent: Task, *, height: int = 1) -> None:
    """Raise when `parent` may not get one more child (a tree of `height`). Call it under the workspace's lock."""
    chain = lineage(parent.id)
    refuse_stopped_chain(chain, parent, "given sub-tasks")
    if len(chain) + height > DEEPEST:
        raise Refused(
            "too_deep", f"tasks nest at most {DEEPEST} deep; {label(parent)} is at {len(chain)}", limit=DEEPEST
        )
    if by.is_agent and Task.objects.for_who(by).filter(parent=parent).open().count() >= MOST_CHILDREN:
        raise Refused(
            "too_many_children",
            f"{label(parent)} has {MOST_CHILDREN} unfinished sub-tasks, which is the most; finish one first",
            limit=MOST_CHILDREN,
        )


def check_new_parent(by: Who, task: Task, parent: Task) -> None:
    """Raise when moving `task` under `parent` would make a circle or too deep a tree."""
    if any(link.id == task.id for link in lineage(parent.id)):
        raise Refused("parent_cycle", f"{label(parent)} is {label(task)} itself or below it", target=label(parent))
    with connection.cursor() as cursor:
        cursor.execute(HEIGHT, (task.id, DEEPEST))
        height = int(cursor.fetchone()[0])
    check_child(by, parent, height=height)


def refuse_stopped(task: Task, verb: str) -> None:
    """Raise when the task or one above it was stopped."""
    alone = [Link(task.id, task.status, task.occurrence)]
    refuse_stopped_chain(lineage(task.id) if task.parent_id else alone, task, verb)


def refuse_stopped_chain(chain: list[Link], task: Task, verb: str) -> None:
    if any(link.status == Task.Status.STOPPED for link in chain):
        raise Refused("stopped_root", f"{label(task)} belongs to stopped work and cannot be {verb}")
