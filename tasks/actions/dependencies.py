"""What a task waits for: ids that exist, in no circle."""

from collections.abc import Sequence

from django.db import connection
from django.db.models import Q

from mcp.errors import InvalidArguments, Refused
from mcp.policy import Who
from tasks.models import Task
from tasks.querysets import REF, number_of
from tasks.render import label

REACH = """
WITH RECURSIVE reach (id) AS (
    SELECT id FROM tasks_task WHERE id IN ({marks})
    UNION
    SELECT d.to_task_id FROM tasks_task_depends_on d JOIN reach ON d.from_task_id = reach.id
)
SELECT 1 FROM reach WHERE id = %s
"""


def resolve(by: Who, refs: Sequence[str]) -> list[Task]:
    """The tasks of these ids or numbers, each once, as ordered. Raises `InvalidArguments` for an unknown one."""
    wanted = list(dict.fromkeys(refs))
    if not wanted:
        return []
    sound = [ref for ref in wanted if REF.match(ref)]
    numbers = [number for ref in sound if (number := number_of(ref)) is not None]
    rows = Task.objects.for_who(by).filter(Q(id__in=sound) | Q(number__in=numbers))
    found = {key: task for task in rows for key in (task.id, label(task))}
    missing = [ref for ref in wanted if canonical(ref) not in found]
    if missing:
        shown = missing[0][:64].encode("unicode_escape").decode()
        raise InvalidArguments(f"Invalid parameter depends_on: no such task: {shown}", "depends_on")
    return list(dict.fromkeys(found[canonical(ref)] for ref in wanted))


def canonical(ref: str) -> str:
    """`T-7` for `t-007`; an id as it is."""
    number = number_of(ref)
    return ref if number is None else f"T-{number}"


def refuse_circle(task: Task, others: Sequence[Task]) -> None:
    """Raise when one of `others` is the task or already waits for it. Call it under the workspace's lock."""
    if not others:
        return
    ids = [other.id for other in others]
    with connection.cursor() as cursor:
        cursor.execute(REACH.format(marks=", ".join(["%s"] * len(ids))), (*ids, task.id))
        if cursor.fetchone():
            raise Refused("dependency_cycle", f"{label(task)} would wait for itself")


def refuse_unmet(task: Task, verb: str) -> None:
    """Raise when the task waits for another that is not done."""
    unmet = list(task.depends_on.exclude(status=Task.Status.DONE).order_by("number"))
    if unmet:
        raise Refused(
            "dependencies_unmet",
            f"{label(task)} cannot be {verb} before {', '.join(label(other) for other in unmet)} is done",
            unmet=[other.id for other in unmet],
        )


def relink(task: Task, others: Sequence[Task]) -> None:
    """Make the task wait for exactly `others`."""
    old = Task.depends_on.through.objects.filter(from_task_id=task.id)
    old.exclude(to_task_id__in=[other.id for other in others]).delete()
    link(task, others)


def link(task: Task, others: Sequence[Task]) -> None:
    """Make the task wait for `others` as well."""
    through = Task.depends_on.through
    through.objects.bulk_create(
        [through(from_task_id=task.id, to_task_id=other.id) for other in others], ignore_conflicts=True
    )
