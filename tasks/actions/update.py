"""Changes of a task's fields. Everything is checked before anything is written."""

from collections.abc import Callable
from typing import Any

from django.db import transaction

from agents.models import Agent, Workspace
from agents.relations import check_delegation, check_record
from mcp.errors import InvalidArguments, Refused
from mcp.policy import Who
from tasks.actions import moves
from tasks.actions import tags as tag_rules
from tasks.actions.create import check_title, find_agent, known_priority
from tasks.actions.dependencies import refuse_circle, relink, resolve
from tasks.actions.parents import check_new_parent
from tasks.models import Task
from tasks.render import label

FIELDS = ("title", "description", "priority", "tags", "assigned_to", "depends_on", "parent_task_id")
FROZEN_FOR_AGENTS = ("title", "description")
TREE = ("depends_on", "parent_task_id")


def update_task(task: Task | str, *, by: Who, version: int | None = None, **fields: Any) -> Task:
    """Change the given fields. A person may also move a task under another parent, or take its assignee away.

    Raises `stale` when `version` is given and is no longer the task's, `goal_contract_frozen`,
    `reserved_tag_change`, `system_managed`, a circle, or a refusal of record or delegation checks.
    """
    check_names(by, fields)
    with transaction.atomic():
        if any(name in fields for name in TREE):
            Workspace.objects.select_for_update(no_key=True).get(pk=by.workspace)
        row = moves.find_task(by, task if isinstance(task, str) else task.pk, lock=True)
        check_record(by, moves.owner_of(row), what=label(row), parties=(*moves.parties_of(row), row.creator_id))
        if version is not None and version != row.version:
            raise Refused("stale", f"{label(row)} is at version {row.version}, not {version}", version=row.version)
        refuse_frozen(row, by, fields)
        changes = prepare(row, by, fields)
        write(row, by, changes)
    return row


def check_names(by: Who, fields: dict[str, Any]) -> None:
    """Unknown fields are refused by name; agents have no say in parents."""
    allowed = (*FIELDS, "acceptance_criteria") if by.is_human else (*FIELDS[:-1], "acceptance_criteria")
    for name in fields:
        if name not in allowed:
            raise InvalidArguments(f"Invalid parameter {name}: cannot be changed", name)


def refuse_frozen(task: Task, by: Who, fields: dict[str, Any]) -> None:
    """The goal's contract is fixed at its creation, and a run's root task is the platform's."""
    frozen = "acceptance_criteria" in fields
    if task.goal_mode and not by.is_human:
        frozen = frozen or any(name in fields for name in FROZEN_FOR_AGENTS)
    if frozen:
        raise Refused(
            "goal_contract_frozen", f"what {label(task)} is judged by was fixed when it was created; make a new task"
        )
    managed = [name for name in fields if name in ("title", "description", "tags", "assigned_to")]
    if task.occurrence and managed:
        raise Refused("system_managed", f"{label(task)} is managed by its responsibility; {managed[0]} stays as it is")


def prepare(task: Task, by: Who, fields: dict[str, Any]) -> dict[str, Any]:
    """The columns that change, checked; fields that stay as they are drop out."""
    wanted = {name: PREPARE[name](task, by, value) for name, value in fields.items()}
    return {name: value for name, value in wanted.items() if value != current(task, name)}


def current(task: Task, name: str) -> Any:
    """A field as `prepare` compares it."""
    if name == "depends_on":
        return list(task.depends_on.order_by("number"))
    return task.parent if name == "parent_task_id" else getattr(task, name)


def title(task: Task, by: Who, value: Any) -> str:
    check_title(text("title", value))
    return str(value)


def description(task: Task, by: Who, value: Any) -> str:
    return text("description", value)


def priority(task: Task, by: Who, value: Any) -> str:
    return known_priority(text("priority", value))


def tags(task: Task, by: Who, value: Any) -> list[str]:
    parsed = tag_rules.parse(value if isinstance(value, str | list) else text("tags", value))
    tag_rules.check_change(by, task.tags, parsed)
    return parsed


def assigned_to(task: Task, by: Who, value: Any) -> Agent | None:
    """The new assignee. Taking another's task needs a relationship with its owner, even for its creator."""
    if value is None and by.is_human:
        return None
    agent = find_agent(by, text("assigned_to", value))
    owner = moves.owner_of(task)
    if agent.id == by.agent and owner is not None:
        check_record(by, owner, what=label(task))
    elif agent.id == by.agent and task.holder:
        raise moves.already_claimed(task)
    elif agent.id != by.agent:
        check_delegation(by, agent, f"{agent.name} cannot be given {label(task)}")
    return agent


def depends_on(task: Task, by: Who, value: Any) -> list[Task]:
    if not isinstance(value, list) or not all(isinstance(ref, str) for ref in value):
        raise InvalidArguments("Invalid parameter depends_on: must be a list of task ids", "depends_on")
    others = sorted(resolve(by, value), key=lambda other: other.number)
    refuse_circle(task, others)
    return others


def parent_task_id(task: Task, by: Who, value: Any) -> Task | None:
    if value is None:
        return None
    parent = moves.find_task(by, text("parent_task_id", value), parameter="parent_task_id")
    if parent != task.parent:
        check_new_parent(by, task, parent)
    return parent


def text(name: str, value: Any) -> str:
    """A string, or a refusal that names the field."""
    if not isinstance(value, str):
        raise InvalidArguments(f"Invalid parameter {name}: must be a string", name)
    return value


PREPARE: dict[str, Callable[[Task, Who, Any], Any]] = {
    "title": title,
    "description": description,
    "priority": priority,
    "tags": tags,
    "assigned_to": assigned_to,
    "depends_on": depends_on,
    "parent_task_id": parent_task_id,
}


def write(task: Task, by: Who, changes: dict[str, Any]) -> None:
    """One UPDATE, the links, and a line each for the change and for a new assignee."""
    if not changes:
        return
    names = sorted(changes)
    if "depends_on" in changes:
        relink(task, changes.pop("depends_on"))
    if "parent_task_id" in changes:
        changes["parent"] = changes.pop("parent_task_id")
    if "assigned_to" in changes:
        changes["pooled"] = False
    moves.move(
        task,
        by,
        task.status,
        "task_updated",
        f"{by.name} changed {', '.join(names)}",
        note={"fields": names},
        **changes,
    )
    if changes.get("assigned_to"):
        moves.tell(by, task, "task_assigned", f"{by.name} gave {label(task)} to {changes['assigned_to'].name}")
