"""Issues of the key's workspace and their comments (AACWorkflow)."""

from datetime import datetime
from typing import Annotated, Any

from pydantic import Field

from duduclaw.lib.canonical import canonical
from mcp import results
from mcp.context import Call
from mcp.errors import InvalidArguments
from mcp.params import Int, Text
from mcp.registry import tool
from mcp.texts import check_choice, check_text
from tasks.actions import issues
from tasks.issue_render import FULL, comment_card, comment_cursor, issue_card, issue_cursor, issue_line
from tasks.models import Comment, Issue

LONGEST_QUERY = 200
IssueRef = Annotated[Text, Field(description="UUID, or key such as AAC-42.")]
Limit = Annotated[Int, Field(ge=1, le=100, description="How many, 1 to 100.")]
Cursor = Annotated[Text | None, Field(description="next_cursor of the page before.")]


@tool(family="issues", scope="issues:read", read_only=True, idempotent=True)
def list_issues(
    call: Call,
    *,
    status: Annotated[Text | None, Field(description="Only this state: open, in_progress, done or closed.")] = None,
    assignee: Annotated[Text | None, Field(description="Only those of this agent or person.")] = None,
    query: Annotated[Text | None, Field(description="Words that all stand in title or text, as typed.")] = None,
    limit: Limit = 20,
    cursor: Cursor = None,
) -> dict[str, Any]:
    """Lists the issues of the key's workspace without their texts, newest first, in pages."""
    rows = Issue.objects.for_who(call.who).of(
        status=None if status is None else check_choice("status", status, Issue.Status.values),
        assignee=None if assignee is None else check_text("assignee", assignee, 120),
    )
    if query is not None:
        rows = rows.matching(check_text("query", query, LONGEST_QUERY))
    before = None if cursor is None else issue_place(cursor)
    lines = [issue_line(row) for row in rows.newest(before).shown()[: limit + 1]]
    return results.page("issues", lines, limit, issue_cursor)


def issue_place(cursor: str) -> int:
    """The number that a cursor stands at."""
    number = int(results.decode_cursor("issues", cursor, int)[0])
    if not 0 < number < 2**31:
        raise InvalidArguments("Invalid parameter cursor: is no cursor of this list", "cursor")
    return number


@tool(family="issues", scope="issues:read", read_only=True, idempotent=True)
def get_issue(call: Call, *, issue_id: IssueRef) -> dict[str, Any]:
    """Reads one issue with its first comments; list_comments has the rest. Absent and foreign ones answer alike."""
    issue = issues.find_issue(call.who, issue_id)
    card = issue_card(issue)
    rows = Comment.objects.for_who(call.who).filter(issue=issue).oldest()[:51]
    room = FULL - len(canonical(card))
    return card | results.page("comments", [comment_card(row) for row in rows], 50, comment_cursor, room=room, least=0)


@tool(family="issues", scope="comments:read", read_only=True, idempotent=True)
def list_comments(call: Call, *, issue_id: IssueRef, limit: Limit = 20, cursor: Cursor = None) -> dict[str, Any]:
    """Lists the comments of one issue, oldest first, in pages."""
    issue = issues.find_issue(call.who, issue_id)
    after = None if cursor is None else comment_place(cursor)
    rows = Comment.objects.for_who(call.who).filter(issue=issue).oldest(after)[: limit + 1]
    return results.page("comments", [comment_card(row) for row in rows], limit, comment_cursor)


def comment_place(cursor: str) -> tuple[datetime, str]:
    """The instant and id that a cursor stands at."""
    moment, last = results.decode_cursor("comments", cursor, str, str)
    try:
        return datetime.strptime(moment, "%Y-%m-%dT%H:%M:%S.%f%z"), check_text("cursor", last, 36)
    except ValueError:
        raise InvalidArguments("Invalid parameter cursor: is no cursor of this list", "cursor") from None


@tool(family="issues", scope="issues:write")
def create_issue(
    call: Call,
    *,
    title: Annotated[Text, Field(description="One line of 1 to 200 characters.")],
    description: Annotated[Text | None, Field(description="Markdown, at most 20,000 characters.")] = None,
    priority: Annotated[Text, Field(description="urgent, high, medium or low.")] = "medium",
    assignee: Annotated[Text | None, Field(description="Agent or person of the workspace; wakes nobody.")] = None,
) -> dict[str, Any]:
    """Opens an issue. Each call opens another one."""
    return issue_card(
        issues.create_issue(
            by=call.who, title=title, description=description or "", priority=priority, assignee=assignee
        )
    )


@tool(family="issues", scope="issues:write", idempotent=True)
def update_issue(
    call: Call,
    *,
    issue_id: IssueRef,
    title: Annotated[Text | None, Field(description="New title, one line of 1 to 200 characters.")] = None,
    description: Annotated[Text | None, Field(description="New text, at most 20,000 characters.")] = None,
    status: Annotated[Text | None, Field(description="open, in_progress, done or closed.")] = None,
    priority: Annotated[Text | None, Field(description="urgent, high, medium or low.")] = None,
) -> dict[str, Any]:
    """Sets the given fields of an issue; the same call again changes nothing."""
    given = {"title": title, "description": description, "status": status, "priority": priority}
    fields = {name: value for name, value in given.items() if value is not None}
    return issue_card(issues.update_issue(issue_id, by=call.who, **fields))


@tool(family="issues", scope="comments:write")
def comment_issue(
    call: Call,
    *,
    issue_id: IssueRef,
    body: Annotated[Text, Field(description="Markdown, at most 10,000 characters.")],
) -> dict[str, Any]:
    """Adds a comment to an issue. Each call adds another one."""
    return comment_card(issues.comment_issue(issue_id, body, by=call.who))


@tool(family="issues", scope="issues:write", destructive=True, idempotent=True)
def delete_issue(call: Call, *, issue_id: IssueRef) -> dict[str, Any]:
    """Deletes an issue and its comments for good.
    Refused unless confirm is true, and to all but its author and operators."""
    return {"deleted": issues.delete_issue(issue_id, by=call.who)}


@tool(family="issues", scope="comments:write", destructive=True, idempotent=True)
def delete_comment(
    call: Call, *, comment_id: Annotated[Text, Field(description="Id of the comment.")]
) -> dict[str, Any]:
    """Deletes one comment for good. Refused unless confirm is true, and to all but its author and operators."""
    return {"deleted": issues.delete_comment(comment_id, by=call.who)}
