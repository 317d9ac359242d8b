"""Lists of issues and comments: pages, cursors, filters, search, and how much one answer holds."""

from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from duduclaw.lib.canonical import canonical
from mcp.results import MOST_CHARACTERS
from mcp.tests.tools.issues_made import commented, made
from mcp.tests.tools.transports import via_mcp, with_clients
from tasks.actions.issues import LONGEST_COMMENT, LONGEST_TEXT
from tests.build import Company, company

pytestmark = pytest.mark.django_db


@pytest.fixture
def people() -> Company:
    """owner and colleague related, stranger not; operator, viewer; external client with all issue scopes, reader."""
    return with_clients(company())


def everything(people: Company, tool: str, name: str, **arguments: Any) -> list[list[dict[str, Any]]]:
    """All pages of a list."""
    pages, cursor = [], None
    while True:
        body = via_mcp(people, "owner", tool, {**arguments, **({"cursor": cursor} if cursor else {})}).body
        pages.append(body[name])
        assert body["count"] == len(body[name])
        cursor = body["next_cursor"]
        if cursor is None:
            return pages


def test_pages_show_each_issue_once_newest_first(people: Company) -> None:
    for n in range(7):
        made(people, title=f"Issue {n}")
    pages = everything(people, "list_issues", "issues", limit=3)
    assert [[row["number"] for row in page] for page in pages] == [[7, 6, 5], [4, 3, 2], [1]]
    assert [len(page) for page in everything(people, "list_issues", "issues", limit=7)] == [7]


def test_a_new_issue_does_not_disturb_the_pages_behind(people: Company) -> None:
    for n in range(4):
        made(people, title=f"Issue {n}")
    first = via_mcp(people, "owner", "list_issues", {"limit": 2}).body
    made(people, title="Later")
    second = via_mcp(people, "owner", "list_issues", {"limit": 2, "cursor": first["next_cursor"]}).body
    assert [row["number"] for row in second["issues"]] == [2, 1]
    assert second["next_cursor"] is None


def test_comments_come_oldest_first_in_pages(people: Company) -> None:
    issue = made(people)
    wanted = [commented(people, "owner", issue)["id"] for _ in range(5)]
    pages = everything(people, "list_comments", "comments", issue_id=issue["id"], limit=2)
    assert [row["id"] for page in pages for row in page] == wanted
    assert [len(page) for page in pages] == [2, 2, 1]


@pytest.mark.parametrize(
    "cursor",
    [
        "",
        "x",
        "!!!",
        "é",
        "a" * 500,
        "bnVsbA",
        "W10",
        "WyJpc3N1ZXMiLCJ4Il0",
        "WyJpc3N1ZXMiLC0xXQ",
        "WyJpc3N1ZXMiLHRydWVd",
    ],
)
def test_a_bad_cursor_is_named(people: Company, cursor: str) -> None:
    for tool, more in (("list_issues", {}), ("list_comments", {"issue_id": made(people)["id"]})):
        outcome = via_mcp(people, "owner", tool, {"cursor": cursor, **more})
        assert (outcome.code, outcome.body["parameter"]) == ("invalid_arguments", "cursor")


def test_a_cursor_of_another_list_is_refused(people: Company) -> None:
    issue = made(people)
    made(people)
    cursor = via_mcp(people, "owner", "list_issues", {"limit": 1}).body["next_cursor"]
    outcome = via_mcp(people, "owner", "list_comments", {"issue_id": issue["id"], "cursor": cursor})
    assert outcome.body["parameter"] == "cursor"


def test_filters_by_state_and_assignee(people: Company) -> None:
    made(people, assignee="owner")
    second = made(people, assignee="colleague")
    via_mcp(people, "owner", "update_issue", {"issue_id": second["id"], "status": "closed"})
    found = via_mcp(people, "owner", "list_issues", {"assignee": "owner"}).body["issues"]
    assert [row["number"] for row in found] == [1]
    found = via_mcp(people, "owner", "list_issues", {"status": "closed"}).body["issues"]
    assert [row["number"] for row in found] == [2]


TEXTS = [
    "100% done",
    "100 done",
    "snake_case",
    "snakeXcase",
    "會議記錄在這裡",
    "Printer BURNS",
    "back\\slash",
    'it\'s "quoted"',
]


@pytest.mark.parametrize(
    ("query", "wanted"),
    [
        ("100%", ["100% done"]),
        ("%", ["100% done"]),
        ("_", ["snake_case"]),
        ("snake_case", ["snake_case"]),
        ("會議", ["會議記錄在這裡"]),
        ("記錄 會議", ["會議記錄在這裡"]),
        ("burns printer", ["Printer BURNS"]),
        ("\\", ["back\\slash"]),
        ("'", ['it\'s "quoted"']),
        ("done nothing", []),
        ("*", []),
        ("AND", []),
    ],
)
def test_search_takes_words_as_typed(people: Company, query: str, wanted: list[str]) -> None:
    for title in TEXTS:
        made(people, title=title)
    found = via_mcp(people, "owner", "list_issues", {"query": query}).body["issues"]
    assert [row["title"] for row in found] == wanted
    in_text = made(people, title="Other", description="deep inside: 固定資産")
    found = via_mcp(people, "owner", "list_issues", {"query": "固定"}).body["issues"]
    assert [row["id"] for row in found] == [in_text["id"]]


@pytest.mark.parametrize("filler", ['"', "固", "\\"])
def test_a_result_is_cut_at_45000_characters_and_says_so(people: Company, filler: str) -> None:
    for _ in range(100):
        made(people, title=filler * 200)
    body = via_mcp(people, "owner", "list_issues", {"limit": 100}).body
    assert "text" not in body
    assert body["truncated"] is True
    assert 30_000 < len(canonical(body)) <= MOST_CHARACTERS
    assert via_mcp(people, "owner", "list_issues", {"limit": 20}).body["truncated"] is False
    pages = everything(people, "list_issues", "issues", limit=100)
    assert [row["number"] for page in pages for row in page] == list(range(100, 0, -1))


def test_an_issue_with_the_largest_text_is_read_whole(people: Company) -> None:
    issue = made(people, description='"' * LONGEST_TEXT, title='"' * 200)
    for _ in range(3):
        via_mcp(people, "owner", "comment_issue", {"issue_id": issue["id"], "body": '"' * LONGEST_COMMENT})
    body = via_mcp(people, "owner", "get_issue", {"issue_id": issue["id"]}).body
    assert body["description"] == '"' * LONGEST_TEXT
    assert body["truncated"] is True
    pages = everything(people, "list_comments", "comments", issue_id=issue["id"])
    assert sum(len(page) for page in pages) == 3


READS = [
    ("list_issues", {"query": "fire"}),
    ("get_issue", {"issue_id": "AAC-1"}),
    ("list_comments", {"issue_id": "AAC-1"}),
]


@pytest.mark.parametrize(("tool", "arguments"), READS)
def test_a_read_stays_within_twelve_queries(people: Company, tool: str, arguments: dict[str, Any]) -> None:
    issue = made(people)
    for _ in range(20):
        commented(people, "owner", issue)
        made(people)
    with CaptureQueriesContext(connection) as queries:
        via_mcp(people, "owner", tool, arguments)
    assert len(queries) <= 12
