"""The board: cards, claims with leases, and the activity feed."""

from typing import Annotated, Any, Literal

from pydantic import Field

from mcp.context import Call
from mcp.params import Bool, Int, JsonObject, Text, TextList
from mcp.registry import tool
from tasks import render
from tasks.actions import activity, claim, create, finish, leases, moves, update
from tasks.models import Activity, Task

EVERYBODY = "*"
Limit = Annotated[Int, Field(description="How many, newest first; at most 100.", ge=1, le=100)]
TaskRef = Annotated[Text, Field(description="Id or short number (T-121) of the task.")]
Priority = Literal["low", "medium", "high", "urgent"]
Status = Literal[
    "todo", "pending", "in_progress", "blocked", "review", "revising", "needs_human",
    "done", "failed", "cancelled", "stopped",
]  # fmt: skip


def named(call: Call, agent: str | None) -> str | None:
    """Whose rows a list shows: the caller's when nobody is named, everybody's for `*` and for people."""
    return None if agent == EVERYBODY else agent or (call.who.name if call.who.is_agent else None)


@tool(family="tasks", scope="admin", read_only=True, idempotent=True)
def tasks_list(
    call: Call,
    *,
    status: Annotated[Status | None, Field(description="Only cards of this status.")] = None,
    priority: Annotated[Priority | None, Field(description="Only cards of this priority.")] = None,
    assigned_to: Annotated[Text | None, Field(description="Agent's name; absent: the caller; *: everybody.")] = None,
    limit: Limit = 20,
) -> dict[str, Any]:
    """Lists cards of the workspace's board, newest first; without assigned_to those given to the caller."""
    board = Task.objects.for_who(call.who).of(assigned_to=named(call, assigned_to), status=status, priority=priority)
    return render.page("tasks", render.cards(board.shown()[:limit]))


@tool(
    family="tasks",
    scope="admin",
    relation=True,
    permission="can_schedule_tasks",
    permission_when=lambda given: bool(given.get("schedule", "").strip()),
    scope_when=lambda given: "discovery:execute" if given.get("kind") == "discovery" else None,
)
def tasks_create(
    call: Call,
    *,
    title: Annotated[Text, Field(description="1 to 200 characters.")],
    kind: Annotated[
        Literal["task", "goal", "discovery"], Field(description="What is made; task when absent.")
    ] = "task",
    discovery: Annotated[JsonObject | None, Field(description="With kind discovery: root, limits and budget.")] = None,
    schedule: Annotated[
        Text, Field(description="Cron expression, or RFC 3339 instant for one run; not for goals.")
    ] = "",
    notify_channel: Annotated[Text | None, Field(description="With schedule: platform that gets the result.")] = None,
    notify_chat_id: Annotated[Text | None, Field(description="With schedule: chat that gets the result.")] = None,
    notify_thread_id: Annotated[Text | None, Field(description="With schedule: thread that gets the result.")] = None,
    cron_timezone: Annotated[Text | None, Field(description="With schedule: IANA zone of the cron expression.")] = None,
    outcome: Annotated[JsonObject | None, Field(description="With kind goal: the result that can be checked.")] = None,
    duration_hours: Annotated[Int | None, Field(description="With kind goal: hours allowed.", ge=1, le=720)] = None,
    risk_boundary: Annotated[Text | None, Field(description="With kind goal: what must not be done.")] = None,
    require_beliefs: Annotated[Bool | None, Field(description="With kind goal: forecasts are required.")] = None,
    plan_first: Annotated[Bool | None, Field(description="With kind goal: a person approves a plan first.")] = None,
    description: Annotated[Text, Field(description="What is to be done, in Markdown.")] = "",
    assigned_to: Annotated[
        Text | None, Field(description="Agent who gets it; absent: the caller. Must be related.")
    ] = None,
    priority: Annotated[Text, Field(description="low, medium, high or urgent; anything else means medium.")] = "medium",
    tags: Annotated[Text, Field(description="Comma list. Agents may not use outcome:, grant: or auto-research.")] = "",
    parent_task_id: Annotated[
        Text | None, Field(description="Task above this one; refused without a relationship.")
    ] = None,
    goal_id: Annotated[Text | None, Field(description="Goal that it serves; an unknown one is refused.")] = None,
    depends_on: Annotated[TextList, Field(description="Tasks that must be done first, by id or number.")] = [],  # noqa: B006
    goal_mode: Annotated[Bool, Field(description="Completion goes to review instead of done.")] = False,
    acceptance_criteria: Annotated[Text, Field(description="What the review checks; fixed from now on.")] = "",
    max_retries: Annotated[Int, Field(description="How often a lapsed claim is requeued, 0 to 100.")] = 3,
    durable: Annotated[Bool, Field(description="Claims get a lease, and lapsed ones are requeued.")] = False,
) -> dict[str, Any]:
    """Creates a task. Refused: an unrelated assignee or parent, reserved tags, a 201st open sub-task.
    Goals, discovery and schedules answer not_configured.
    """
    draft = create.Draft(
        title=title, kind=kind, discovery=discovery, schedule=schedule, notify_channel=notify_channel,
        notify_chat_id=notify_chat_id, notify_thread_id=notify_thread_id, cron_timezone=cron_timezone, outcome=outcome,
        duration_hours=duration_hours, risk_boundary=risk_boundary, require_beliefs=require_beliefs,
        plan_first=plan_first, description=description, assigned_to=assigned_to, priority=priority, tags=tags,
        parent_task_id=parent_task_id, goal_id=goal_id, depends_on=depends_on, goal_mode=goal_mode,
        acceptance_criteria=acceptance_criteria, max_retries=max_retries, durable=durable,
    )  # fmt: skip
    return render.card(create.create_task(draft, by=call.who, round_task=call.round_task))


@tool(family="tasks", scope="admin", relation=True, idempotent=True)
def tasks_update(
    call: Call,
    *,
    task_id: TaskRef,
    title: Annotated[Text | None, Field(description="New title, 1 to 200 characters.")] = None,
    description: Annotated[Text | None, Field(description="New text.")] = None,
    priority: Annotated[Text | None, Field(description="low, medium, high or urgent.")] = None,
    tags: Annotated[Text | None, Field(description="New comma list; agents leave reserved tags as they are.")] = None,
    assigned_to: Annotated[Text | None, Field(description="New assignee; must be related to the caller.")] = None,
    depends_on: Annotated[TextList | None, Field(description="New list of tasks to wait for; no circles.")] = None,
    acceptance_criteria: Annotated[Text | None, Field(description="Always refused: fixed at creation.")] = None,
) -> dict[str, Any]:
    """Changes a task. For its assignee, claimer, creator or a related agent; a goal's title and text for people."""
    fields: dict[str, Any] = {
        "title": title, "description": description, "priority": priority, "tags": tags, "assigned_to": assigned_to,
        "depends_on": depends_on, "acceptance_criteria": acceptance_criteria,
    }  # fmt: skip
    given = {name: value for name, value in fields.items() if value is not None}
    return render.card(update.update_task(task_id, by=call.who, **given))


@tool(family="tasks", scope="admin", relation=True)
def tasks_claim(call: Call, *, task_id: TaskRef) -> dict[str, Any]:
    """Takes a task for the caller; one caller wins, the others hear who holds it. Another's task needs a
    relationship, unmet dependencies refuse.
    """
    return render.card(claim.claim_task(task_id, by=call.who))


@tool(family="tasks", scope="admin", relation=True, idempotent=True)
def tasks_renew(call: Call, *, task_id: TaskRef) -> dict[str, Any]:
    """Gives the caller's claim another full lease from now; refused to everybody but the holder."""
    return render.card(leases.renew_lease(task_id, by=call.who))


@tool(family="tasks", scope="admin", relation=True, idempotent=True)
def tasks_complete(
    call: Call,
    *,
    task_id: TaskRef,
    summary: Annotated[Text, Field(description="What was done; shown on the card and in the feed.")] = "",
) -> dict[str, Any]:
    """Marks a task done, or sends it to review in goal mode. For its assignee, claimer or a related agent;
    while a lease lives, for its holder only.
    """
    return render.card(finish.complete_task(task_id, by=call.who, summary=summary))


@tool(family="tasks", scope="admin", relation=True, idempotent=True)
def tasks_block(
    call: Call,
    *,
    task_id: TaskRef,
    reason: Annotated[Text, Field(description="What stands in the way; shown on the card.")],
) -> dict[str, Any]:
    """Marks a task blocked, with a reason. For its assignee, claimer or a related agent; while a lease lives, for
    its holder only.
    """
    return render.card(finish.block_task(task_id, by=call.who, reason=reason))


@tool(family="tasks", scope="admin", relation=True)
def activity_post(
    call: Call,
    *,
    summary: Annotated[Text, Field(description="One readable line.")],
    task_id: Annotated[Text | None, Field(description="Task that it is about; refused without a relationship.")] = None,
    event_type: Annotated[
        Text, Field(description="Kind of note. Not responsibility.* or task.stop*.")
    ] = activity.COMMENT,
    metadata: Annotated[JsonObject | None, Field(description="Further data, at most 16,384 characters.")] = None,
) -> dict[str, Any]:
    """Posts a note to the feed. With a task_id the caller must be its assignee, claimer, creator or related."""
    posted = activity.post_activity(
        by=call.who, summary=summary, task_id=task_id, event_type=event_type, metadata=metadata
    )
    return render.line(posted)


@tool(family="tasks", scope="admin", read_only=True, idempotent=True)
def activity_list(
    call: Call,
    *,
    task_id: Annotated[Text | None, Field(description="Only lines about this task.")] = None,
    agent_id: Annotated[Text | None, Field(description="Agent's name; absent: the caller; *: everybody.")] = None,
    event_type: Annotated[Text | None, Field(description="Only lines of this kind.")] = None,
    limit: Limit = 20,
) -> dict[str, Any]:
    """Lists lines of the activity feed, newest first; without agent_id those of the caller."""
    task = None if task_id is None else moves.find_task(call.who, task_id).id
    feed = Activity.objects.for_who(call.who).of(task=task, agent__name=named(call, agent_id), event_type=event_type)
    return render.page("events", [render.line(row) for row in feed.select_related("agent", "task")[:limit]])
