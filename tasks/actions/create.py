"""New tasks. The checks run in one fixed order, so that a caller always hears of the same fault first."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.db import transaction

from agents.models import Agent, Workspace
from agents.relations import check_delegation, check_identity
from duduclaw import events
from duduclaw.lib import clock
from mcp.errors import InvalidArguments, Refused
from mcp.policy import Who
from tasks import schedules
from tasks.actions import tags as tag_rules
from tasks.actions.dependencies import link, resolve
from tasks.actions.numbers import next_number
from tasks.actions.parents import check_child, choose_parent
from tasks.models import Activity, Task
from tasks.querysets import REF
from tasks.render import label

KINDS = ("task", "goal", "discovery")
LONGEST_TITLE = 200
MOST_RETRIES = 100
MISSING = {
    "goal": "goals need the goal loop and its judge, which this server does not have yet; "
    "create a task with goal_mode and acceptance_criteria, a person accepts it",
    "discovery": "discovery runs need the discovery engine, which this server does not have yet",
    "schedule": "scheduled work needs the routine and reminder runner, which this server does not have yet; "
    "create the task without schedule",
}
FOR_GOALS = ("outcome", "duration_hours", "risk_boundary", "require_beliefs", "plan_first")
FOR_SCHEDULES = ("notify_channel", "notify_chat_id", "notify_thread_id", "cron_timezone")


@dataclass(frozen=True, slots=True)
class Draft:
    """A task as asked for, with the parameters that only goals, discovery and scheduled work have."""

    title: str
    kind: str = "task"
    schedule: str = ""
    description: str = ""
    assigned_to: str | None = None
    priority: str = "medium"
    tags: str | Sequence[str] = ""
    parent_task_id: str | None = None
    goal_id: str | None = None
    depends_on: Sequence[str] = ()
    goal_mode: bool = False
    acceptance_criteria: str = ""
    max_retries: int = 3
    durable: bool = False
    discovery: dict[str, Any] | None = None
    outcome: dict[str, Any] | None = None
    duration_hours: int | None = None
    risk_boundary: str | None = None
    require_beliefs: bool | None = None
    plan_first: bool | None = None
    notify_channel: str | None = None
    notify_chat_id: str | None = None
    notify_thread_id: str | None = None
    cron_timezone: str | None = None


def create_task(draft: Draft, *, by: Who, round_task: str | None = None) -> Task:
    """Create a task on the board. `round_task` is the header of the caller's round, None when absent.

    Raises `InvalidArguments`, a refusal of the delegation policy, `reserved_tag_change`, a refusal about the
    parent, or `not_configured` (outcome `error`) for goals, discovery and schedules.
    """
    check_kind_and_schedule(draft)
    check_title(draft.title)
    if draft.kind == "goal" and draft.schedule.strip():
        raise InvalidArguments("Invalid parameter schedule: a goal cannot be scheduled", "schedule")
    with transaction.atomic():
        assignee = choose_assignee(by, draft.assigned_to)
        tags = tag_rules.parse(draft.tags)
        tag_rules.check_change(by, [], tags)
        parent = choose_parent(by, draft.parent_task_id, round_task)
        refuse_other_branches(draft)
        return insert(draft, by, assignee, tags, parent)


def check_kind_and_schedule(draft: Draft) -> None:
    """The first two checks: a known kind, and a schedule that is a cron expression or an instant."""
    if draft.kind not in KINDS:
        raise InvalidArguments(f"Invalid parameter kind: must be one of {', '.join(KINDS)}", "kind")
    if draft.schedule.strip() and schedules.classify(draft.schedule.strip()) is None:
        raise InvalidArguments(
            "Invalid parameter schedule: must be a cron expression or an RFC 3339 instant with offset", "schedule"
        )


def check_title(title: str) -> None:
    """1 to 200 characters that are not all blank."""
    if not title.strip() or len(title) > LONGEST_TITLE:
        raise InvalidArguments(f"Invalid parameter title: must have 1 to {LONGEST_TITLE} characters", "title")


def choose_assignee(by: Who, name: str | None) -> Agent | None:
    """The named agent, under the delegation policy; else the caller, and nobody for a person."""
    agent = None if name is None else find_agent(by, name)
    check_identity(by)
    if agent is None:
        return Agent.objects.for_who(by).get(pk=by.agent) if by.agent else None
    if agent.id != by.agent:
        check_delegation(by, agent, f"{agent.name} cannot be given this task")
    return agent


def find_agent(by: Who, name: str) -> Agent:
    """A living agent of the workspace, by name. Raises `InvalidArguments`."""
    agent = Agent.objects.for_who(by).living().filter(name=name).first() if REF.match(name) else None
    if agent is None:
        raise InvalidArguments("Invalid parameter assigned_to: no such agent", "assigned_to")
    return agent


def refuse_other_branches(draft: Draft) -> None:
    """What is no plain task has no backend yet and says so; its parameters mean nothing on a plain task."""
    instant = schedules.classify(draft.schedule.strip()) == schedules.INSTANT
    for name in ("notify_channel", "notify_chat_id") if instant else ():
        if not getattr(draft, name):
            raise InvalidArguments(f"Missing required parameter: {name}", name)
    branch = draft.kind if draft.kind != "task" else "schedule" if draft.schedule.strip() else ""
    if branch:
        raise Refused("not_configured", MISSING[branch], outcome="error")
    for name in (*FOR_GOALS, *FOR_SCHEDULES, "discovery"):
        if getattr(draft, name):
            owner = "kind goal" if name in FOR_GOALS else "kind discovery" if name == "discovery" else "schedule"
            raise InvalidArguments(f"Invalid parameter {name}: goes with {owner} only", name)
    if draft.goal_id is not None:
        raise InvalidArguments("Invalid parameter goal_id: no such goal", "goal_id")


def insert(draft: Draft, by: Who, assignee: Agent | None, tags: list[str], parent: Task | None) -> Task:
    """Number, count of siblings, row, links and feed, in that order."""
    others = resolve(by, draft.depends_on)
    if parent is not None:
        Workspace.objects.select_for_update(no_key=True).get(pk=by.workspace)
        check_child(by, parent)
    waits = draft.durable or draft.goal_mode or bool(others)
    task = Task.objects.create(
        workspace_id=by.workspace,
        number=next_number(by.workspace, "task"),
        title=draft.title,
        description=draft.description,
        status=Task.Status.PENDING if waits else Task.Status.TODO,
        priority=known_priority(draft.priority),
        durable=draft.durable,
        goal_mode=draft.goal_mode,
        acceptance_criteria=(draft.acceptance_criteria or draft.description)
        if draft.goal_mode
        else draft.acceptance_criteria,
        assigned_to=assignee,
        created_by=by.name,
        creator_id=by.agent or None,
        parent=parent,
        tags=tags,
        max_retries=min(max(draft.max_retries, 0), MOST_RETRIES),
        created_at=clock.now(),
    )
    if others:
        link(task, others)
    announce(task, by)
    return task


def known_priority(text: str) -> str:
    """An unknown priority means medium."""
    return text if text in Task.Priority.values else str(Task.Priority.MEDIUM)


def announce(task: Task, by: Who) -> None:
    """The feed's lines about a new task, and the news that the board has changed."""
    lines = [("task_created", f"{by.name} created {label(task)}")]
    if task.assigned_to and task.assigned_to_id != by.agent:
        lines.append(("task_assigned", f"{by.name} gave {label(task)} to {task.assigned_to.name}"))
    now = clock.now()
    Activity.objects.bulk_create(
        Activity(
            workspace_id=task.workspace_id,
            task=task,
            agent_id=by.agent or None,
            actor=by.name,
            event_type=event,
            summary=says,
            created_at=now + timedelta(microseconds=place),  # the feed keeps their order
        )
        for place, (event, says) in enumerate(lines)
    )
    events.publish("board", workspace=task.workspace_id)
