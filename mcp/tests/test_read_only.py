"""A tool that says read-only cannot write: each runs inside a transaction in which the database refuses writes."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.db import connection, transaction
from django.db.utils import DatabaseError
from django.test.utils import CaptureQueriesContext

from mcp import registry, validate
from mcp.context import Call
from tasks.models import Issue
from tasks.tests.board import card, via_mcp
from tests.build import Company, company

pytestmark = [pytest.mark.django_db, pytest.mark.engines]
READ_ONLY = {
    "sqlite": ("PRAGMA query_only = ON", "PRAGMA query_only = OFF"),
    "postgresql": ("SET TRANSACTION READ ONLY", ""),
}
# Arguments that get past every check to the query, and words that prove by their place in the answer that rows came.
REACHES: dict[str, tuple[dict[str, Any], str]] = {
    "activity_list": ({"agent_id": "*", "task_id": "T-1", "event_type": "note"}, "a note"),
    "agent_status": ({"agent_id": "colleague"}, "Colleague"),
    "get_issue": ({"issue_id": "ISSUE"}, "a comment"),
    "list_agents": ({}, "Colleague"),
    "list_comments": ({"issue_id": "ISSUE"}, "a comment"),
    "list_issues": ({"status": "open", "query": "broken"}, "Broken"),
    "tasks_list": ({"assigned_to": "owner", "status": "todo", "priority": "medium"}, "a card"),
    "working_state_get": ({"history_limit": 5}, "a value"),
}
FOR_AGENTS = {"working_state_get"}


@pytest.fixture
def people() -> Company:
    """A company in which every list has a row."""
    made = company()
    card(made.space, assigned_to=made.owner, title="a card")
    for tool, arguments in (
        ("activity_post", {"summary": "a note", "task_id": "T-1", "event_type": "note"}),
        ("create_issue", {"title": "Broken"}),
        ("working_state_set", {"key": "k", "value": "a value", "reason": "test"}),
    ):
        assert via_mcp(made, "owner", tool, arguments).code == "ok"
    issue = Issue.objects.system().get()
    assert via_mcp(made, "owner", "comment_issue", {"issue_id": issue.id, "body": "a comment"}).code == "ok"
    return made


@contextmanager
def no_writes() -> Iterator[None]:
    """The database refuses every write until the end, which takes everything back."""
    begin, end = READ_ONLY[connection.vendor]
    try:
        with transaction.atomic():
            with connection.cursor() as cursor:
                cursor.execute(begin)
            try:
                yield
            finally:
                transaction.set_rollback(True)
    finally:
        if end:
            with connection.cursor() as cursor:
                cursor.execute(end)


def handler(people: Company, name: str, person: str, arguments: dict[str, Any]) -> Callable[[], dict[str, Any]]:
    """The tool's own function with validated arguments; the choke point would write its audit row."""
    tool = registry.get(name)
    assert tool is not None
    issue = Issue.objects.system().get().id
    given = {key: issue if value == "ISSUE" else value for key, value in arguments.items()}
    clean = validate.arguments(tool, given)
    call = Call(people.who(person), name)
    return lambda: tool.function(call, **clean)


def test_the_table_has_every_read_only_tool() -> None:
    assert set(REACHES) == {tool.name for tool in registry.every() if tool.read_only}


@pytest.mark.parametrize(
    ("name", "person"),
    [(name, "owner") for name in sorted(REACHES)] + [(name, "operator") for name in sorted(set(REACHES) - FOR_AGENTS)],
)
def test_a_read_only_tool_answers_where_nothing_can_be_written(people: Company, name: str, person: str) -> None:
    arguments, proof = REACHES[name]
    run = handler(people, name, person, arguments)
    with no_writes(), CaptureQueriesContext(connection) as queries:
        answer = run()
    assert proof in str(answer)
    verbs = {query["sql"].split()[0].upper() for query in queries.captured_queries}
    assert verbs <= {"SELECT", "WITH"}, verbs


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("tasks_claim", {"task_id": "T-1"}),
        ("tasks_create", {"title": "x"}),
        ("comment_issue", {"issue_id": "ISSUE", "body": "x"}),
        ("working_state_clear", {"key": "k", "reason": "x"}),
    ],
)
def test_the_same_place_stops_a_tool_that_writes(people: Company, name: str, arguments: dict[str, Any]) -> None:
    run = handler(people, name, "owner", arguments)
    with no_writes(), pytest.raises(DatabaseError):
        run()
