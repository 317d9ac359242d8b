"""Issues and comments as every transport shows them."""

from typing import Any

from mcp import results
from tasks.models import Comment, Issue
from tasks.render import label, moment

FULL = results.MOST_CHARACTERS - results.ENVELOPE


def key_of(issue: Issue) -> str:
    """`AAC-42`."""
    return f"{issue.workspace.issue_prefix}-{issue.number}"


def issue_line(issue: Issue) -> dict[str, Any]:
    """An issue as a list shows it: all but its text."""
    return {
        "id": issue.id,
        "key": key_of(issue),
        "number": issue.number,
        "title": issue.title,
        "status": issue.status,
        "priority": issue.priority,
        "assignee": issue.assignee or None,
        "task": label(issue.task) if issue.task else None,
        "created_by": issue.created_by,
        "created_at": moment(issue.created_at),
        "updated_at": moment(issue.updated_at),
        "version": issue.version,
    }


def issue_card(issue: Issue) -> dict[str, Any]:
    """One issue with its text."""
    return issue_line(issue) | {"description": issue.description}


def comment_card(comment: Comment) -> dict[str, Any]:
    """One comment."""
    return {
        "id": comment.id,
        "issue_id": comment.issue_id,
        "author": comment.author,
        "body": comment.body,
        "created_at": moment(comment.created_at),
    }


def comment_cursor(card: dict[str, Any]) -> str:
    """The place after a comment."""
    return results.encode_cursor("comments", card["created_at"], card["id"])


def issue_cursor(line: dict[str, Any]) -> str:
    """The place after an issue."""
    return results.encode_cursor("issues", line["number"])
