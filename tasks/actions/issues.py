"""Changes of issues and their comments. An object of another workspace is as absent as one that never was."""

from typing import Any

from django.db import transaction
from django.db.models import F

from agents.models import Agent, Membership, Role
from duduclaw import events
from duduclaw.lib import clock
from mcp.errors import InvalidArguments, Refused
from mcp.policy import Who
from mcp.texts import check_choice, check_line, check_text
from tasks.actions.numbers import next_number
from tasks.models import Comment, Issue, Task, Wake

LONGEST_TITLE, LONGEST_TEXT, LONGEST_COMMENT = 200, 20_000, 10_000
WAKE_REASON = "issue_assigned"


def find_issue(by: Who, ref: str, *, lock: bool = False) -> Issue:
    """The issue of that id or key. Raises `InvalidArguments`, with the same text for absent and foreign ones."""
    row = Issue.objects.for_who(by).named(ref).shown().first()
    if row is not None and lock:
        row = Issue.objects.for_who(by).filter(pk=row.pk).shown().select_for_update(of=("self",)).first()
    if row is None:
        raise InvalidArguments("Invalid parameter issue_id: no such issue", "issue_id")
    return row


def find_agent(by: Who, name: str) -> Agent:
    """A living agent of the workspace, by name. Raises `InvalidArguments`."""
    agent = None if len(name) > 64 or not name.isascii() or not name.isprintable() else named_agent(by, name)
    if agent is None:
        raise InvalidArguments("Invalid parameter agent_id: no such agent", "agent_id")
    return agent


def named_agent(by: Who, name: str) -> Agent | None:
    """The living agent of that name, if there is one."""
    return Agent.objects.for_who(by).living().filter(name=name).first()


def create_issue(
    *, by: Who, title: str, description: str = "", priority: str = "medium", assignee: str | None = None
) -> Issue:
    """Open an issue. Raises `InvalidArguments` naming the field."""
    check_fields({"title": title, "description": description, "priority": priority})
    now = clock.now()
    with transaction.atomic():
        agent = find_assignee(by, assignee) if assignee is not None else None
        issue = Issue.objects.create(
            workspace_id=by.workspace,
            number=next_number(by.workspace, "issue"),
            title=title,
            description=description,
            priority=priority,
            assignee=assignee or "",
            agent=agent,
            created_by=by.name,
            author_ref=author_ref(by),
            created_at=now,
            updated_at=now,
        )
        tell(by)
    return issue


def check_fields(fields: dict[str, Any]) -> None:
    """Every rule about the fields of an issue."""
    if "title" in fields:
        check_line("title", fields["title"], LONGEST_TITLE)
    if "description" in fields:
        check_text("description", fields["description"], LONGEST_TEXT, blank=True)
    if "status" in fields:
        check_choice("status", fields["status"], Issue.Status.values)
    if "priority" in fields:
        check_choice("priority", fields["priority"], Task.Priority.values)


def find_assignee(by: Who, name: str) -> Agent | None:
    """The agent of that name, None for a person of the workspace. Raises `InvalidArguments` for anybody else."""
    check_line("assignee", name, 120)
    agent = named_agent(by, name)
    if agent is None and not Membership.objects.for_who(by).filter(user__username=name, user__is_active=True).exists():
        raise InvalidArguments("Invalid parameter assignee: no such agent or person", "assignee")
    return agent


def update_issue(ref: str, *, by: Who, **fields: str) -> Issue:
    """Set the given fields. What is so already is left alone, so that the same call again changes nothing."""
    check_fields(fields)
    with transaction.atomic():
        issue = find_issue(by, ref, lock=True)
        changed = {name: value for name, value in fields.items() if getattr(issue, name) != value}
        if changed:
            write(issue, by, **changed)
    return issue


def write(issue: Issue, by: Who, **changes: Any) -> None:
    """One UPDATE of a locked issue."""
    changes |= {"updated_at": clock.now()}
    Issue.objects.for_who(by).filter(pk=issue.pk).update(version=F("version") + 1, **changes)
    for name, value in (changes | {"version": issue.version + 1}).items():
        setattr(issue, name, value)
    tell(by)


def assign_issue(ref: str, agent_id: str, *, by: Who) -> tuple[Issue, Wake]:
    """Give an issue to an agent and queue its wake. The same call again answers the same wake."""
    with transaction.atomic():
        agent = find_agent(by, agent_id)
        issue = find_issue(by, ref, lock=True)
        wakes = Wake.objects.for_issue(by, issue, agent)
        if issue.agent_id == agent.id and (wake := wakes.first()):
            return issue, wake
        wake = wakes.filter(state=Wake.State.QUEUED).first() or Wake.objects.create(
            workspace_id=by.workspace,
            agent=agent,
            reason=WAKE_REASON,
            issue=issue,
            requested_by=by.name,
            created_at=clock.now(),
        )
        write(issue, by, agent_id=agent.id, assignee=agent.name)
    return issue, wake


def comment_issue(ref: str, body: str, *, by: Who) -> Comment:
    """Add a comment."""
    check_text("body", body, LONGEST_COMMENT)
    with transaction.atomic():
        issue = find_issue(by, ref, lock=True)
        comment = Comment.objects.create(
            workspace_id=by.workspace,
            issue=issue,
            author=by.name,
            author_ref=author_ref(by),
            body=body,
            created_at=clock.now(),
        )
        tell(by)
    return comment


def delete_issue(ref: str, *, by: Who) -> str:
    """Delete an issue, its comments and the wakes that wait for it; answers its id. Raises `not_author`."""
    with transaction.atomic():
        issue = find_issue(by, ref, lock=True)
        check_author(by, issue.author_ref, "issue", issue.created_by)
        Wake.objects.for_who(by).filter(issue=issue, state=Wake.State.QUEUED).delete()
        Issue.objects.for_who(by).filter(pk=issue.pk).delete()
        tell(by)
    return str(issue.id)


def delete_comment(ref: str, *, by: Who) -> str:
    """Delete one comment; answers its id. Raises `not_author`."""
    with transaction.atomic():
        comment = Comment.objects.for_who(by).named(ref).select_for_update().first()
        if comment is None:
            raise InvalidArguments("Invalid parameter comment_id: no such comment", "comment_id")
        check_author(by, comment.author_ref, "comment", comment.author)
        Comment.objects.for_who(by).filter(pk=comment.pk).delete()
        tell(by)
    return str(comment.id)


def author_ref(by: Who) -> str:
    """Who wrote something, for good: names can be given again, and a client may be called like an agent."""
    if by.agent:
        return f"agent:{by.agent}"
    return f"person:{by.user}" if by.user is not None else f"{by.kind}:{by.name}"


def check_author(by: Who, author: str, what: str, name: str) -> None:
    """Raise unless the caller wrote it, or is a person (or a person's key) of role operator or above."""
    trusted = by.is_human and by.role and Role(by.role).rank >= Role.OPERATOR.rank
    if not trusted and author != author_ref(by):
        raise Refused("not_author", f"this {what} was written by {name}: only its author or an operator deletes it")


def tell(by: Who) -> None:
    """The news that the board has changed."""
    events.publish("board", workspace=by.workspace)
