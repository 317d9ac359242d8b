"""Issues and comments for tests, made through the tools."""

from typing import Any

from mcp.tests.tools.transports import via_mcp
from tests.build import Company


def made(people: Company, by: str = "owner", **over: Any) -> dict[str, Any]:
    """An issue of `by`."""
    return via_mcp(people, by, "create_issue", {"title": "Printer is on fire", **over}).body


def commented(people: Company, by: str, issue: dict[str, Any] | None = None) -> dict[str, Any]:
    """A comment of `by`, on an issue of owner when none is given."""
    issue = issue or made(people)
    return via_mcp(people, by, "comment_issue", {"issue_id": issue["id"], "body": "I saw it"}).body
