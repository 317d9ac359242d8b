"""Rules 4.4 as one table: who may do what to whose task, over every transport, and what a refusal leaves behind."""

from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from mcp import validate
from mcp.context import Call
from mcp.registry import get
from tasks.models import Task
from tasks.tests.board import OK, Transport, audit_of, card, snapshot, via_mcp
from tests.build import Company, company

pytestmark = pytest.mark.django_db
DENIED, UNOWNED, INVALID = "delegation_denied", "owner_unknown", "invalid_arguments"

Scene = Callable[[Company], dict[str, Any]]


def scene(tool_arguments: dict[str, Any] | None = None, *, key: str = "task_id", **columns: str) -> Scene:
    """Arguments that point at a fresh card; the values of agent columns are people of the company."""

    def build(people: Company) -> dict[str, Any]:
        over = {name: getattr(people, value) if hasattr(people, value) else value for name, value in columns.items()}
        return {key: card(people.space, **over).id, **(tool_arguments or {})}

    return build


def fixed(arguments: dict[str, Any]) -> Scene:
    """Arguments that need no card."""
    return lambda people: arguments


MINE = {"assigned_to": "owner"}
THEIRS = {"assigned_to": "owner", "creator": "stranger"}
HELD = {"assigned_to": "owner", "claimed_by": "stranger", "status": "in_progress"}
NEW_TITLE, DONE, STUCK, NOTE = (
    {"title": "New"},
    {"summary": "All done"},
    {"reason": "No access"},
    {"summary": "Half way"},
)
CHILD = {"title": "A part"}

# tool, scene, {person: expected}
TABLE: list[tuple[str, str, Scene, dict[str, str]]] = [
    ("tasks_update", "of owner", scene(NEW_TITLE, **MINE), {"owner": OK, "colleague": OK, "stranger": DENIED, "operator": OK}),
    ("tasks_update", "created by stranger", scene(NEW_TITLE, **THEIRS), {"stranger": OK}),
    ("tasks_update", "claimed by stranger", scene(NEW_TITLE, **HELD), {"stranger": OK}),
    ("tasks_update", "of nobody", scene(NEW_TITLE), {"owner": UNOWNED, "colleague": UNOWNED, "stranger": UNOWNED, "operator": OK}),
    ("tasks_update", "unknown task", fixed({"task_id": "T-999", **NEW_TITLE}), {"owner": INVALID, "colleague": INVALID, "stranger": INVALID, "operator": INVALID}),
    ("tasks_update", "taken by colleague", scene({"assigned_to": "colleague"}, **MINE), {"colleague": OK, "operator": OK, "stranger": DENIED}),
    ("tasks_update", "taken by its creator", scene({"assigned_to": "stranger"}, **THEIRS), {"stranger": DENIED, "operator": OK}),
    ("tasks_update", "given to stranger", scene({"assigned_to": "stranger"}, **MINE), {"owner": DENIED, "colleague": DENIED, "operator": OK}),
    ("tasks_update", "given to colleague", scene({"assigned_to": "colleague"}, **MINE), {"owner": OK}),
    ("tasks_update", "given to nobody known", scene({"assigned_to": "ghost"}, **MINE), {"owner": INVALID, "operator": INVALID}),
    ("tasks_complete", "of owner", scene(DONE, **MINE), {"owner": OK, "colleague": OK, "stranger": DENIED, "operator": OK}),
    ("tasks_complete", "created by stranger", scene(DONE, **THEIRS), {"stranger": DENIED}),
    ("tasks_complete", "claimed by stranger", scene(DONE, **HELD), {"owner": OK, "colleague": OK, "stranger": OK, "operator": OK}),
    ("tasks_complete", "of nobody", scene(DONE), {"owner": UNOWNED, "colleague": UNOWNED, "stranger": UNOWNED, "operator": OK}),
    ("tasks_block", "of owner", scene(STUCK, **MINE), {"owner": OK, "colleague": OK, "stranger": DENIED, "operator": OK}),
    ("tasks_block", "created by stranger", scene(STUCK, **THEIRS), {"stranger": DENIED}),
    ("tasks_block", "claimed by stranger", scene(STUCK, **HELD), {"owner": OK, "colleague": OK, "stranger": OK, "operator": OK}),
    ("tasks_block", "of nobody", scene(STUCK), {"owner": UNOWNED, "colleague": UNOWNED, "stranger": UNOWNED, "operator": OK}),
    ("tasks_block", "without reason", scene({"reason": "  "}, **MINE), {"owner": INVALID, "colleague": INVALID, "stranger": INVALID, "operator": INVALID}),
    ("tasks_claim", "of nobody", scene(), {"owner": OK, "colleague": OK, "stranger": OK, "operator": OK}),
    ("tasks_claim", "durable of nobody", scene(status="pending"), {"owner": OK, "colleague": OK, "stranger": OK, "operator": OK}),
    ("tasks_claim", "durable of owner", scene(status="pending", **MINE), {"owner": OK, "colleague": OK, "stranger": DENIED, "operator": OK}),
    ("tasks_claim", "sent back to owner", scene(status="revising", **MINE), {"owner": OK, "colleague": OK, "stranger": DENIED, "operator": OK}),
    ("tasks_claim", "plain of owner", scene(**MINE), {"owner": OK, "colleague": "assigned_to_other", "stranger": DENIED, "operator": OK}),
    ("tasks_claim", "held by owner", scene(claimed_by="owner", status="in_progress", **MINE), {"owner": OK, "colleague": "already_claimed", "stranger": "already_claimed", "operator": "already_claimed"}),
    ("tasks_claim", "done", scene(status="done", **MINE), {"owner": "wrong_status", "colleague": "wrong_status", "stranger": DENIED, "operator": "wrong_status"}),
    ("tasks_renew", "plain, held by owner", scene(claimed_by="owner", status="in_progress", **MINE), {"owner": "no_lease", "colleague": "not_the_holder", "stranger": "not_the_holder", "operator": "not_the_holder"}),
    ("tasks_create", "under a task of owner", scene(CHILD, key="parent_task_id", **MINE), {"owner": OK, "colleague": OK, "stranger": DENIED, "operator": OK}),
    ("tasks_create", "under a task of its creator", scene(CHILD, key="parent_task_id", **THEIRS), {"stranger": OK}),
    ("tasks_create", "under a claimed task", scene(CHILD, key="parent_task_id", **HELD), {"stranger": OK}),
    ("tasks_create", "under a task of nobody", scene(CHILD, key="parent_task_id"), {"owner": UNOWNED, "colleague": UNOWNED, "stranger": UNOWNED, "operator": OK}),
    ("tasks_create", "under an unknown task", fixed({"parent_task_id": "T-999", **CHILD}), {"owner": INVALID, "colleague": INVALID, "stranger": INVALID, "operator": INVALID}),
    ("tasks_create", "for owner", fixed({"assigned_to": "owner", **CHILD}), {"owner": OK, "colleague": OK, "stranger": DENIED, "operator": OK}),
    ("tasks_create", "reserved tag", fixed({"tags": "x, grant:web_fetch_cached", **CHILD}), {"owner": "reserved_tag_change", "colleague": "reserved_tag_change", "stranger": "reserved_tag_change", "operator": OK}),
    ("activity_post", "without a task", fixed(NOTE), {"owner": OK, "colleague": OK, "stranger": OK, "operator": OK}),
    ("activity_post", "of owner", scene(NOTE, **MINE), {"owner": OK, "colleague": OK, "stranger": DENIED, "operator": OK}),
    ("activity_post", "created by stranger", scene(NOTE, **THEIRS), {"stranger": OK}),
    ("activity_post", "claimed by stranger", scene(NOTE, **HELD), {"stranger": OK}),
    ("activity_post", "of nobody", scene(NOTE), {"owner": UNOWNED, "colleague": UNOWNED, "stranger": UNOWNED, "operator": OK}),
    ("activity_post", "unknown task", fixed({"task_id": "T-999", **NOTE}), {"owner": INVALID, "colleague": INVALID, "stranger": INVALID, "operator": INVALID}),
    ("activity_post", "platform's event", fixed({"event_type": "task.stopped", **NOTE}), {"owner": "reserved_event_type", "colleague": "reserved_event_type", "stranger": "reserved_event_type", "operator": OK}),
    ("activity_post", "responsibility's event", fixed({"event_type": "Responsibility.x", **NOTE}), {"owner": "reserved_event_type", "operator": OK}),
]  # fmt: skip
ROWS = [
    pytest.param(tool, build, person, expected, id=f"{tool}-{name}-{person}".replace(" ", "_"))
    for tool, name, build, people in TABLE
    for person, expected in people.items()
]
TRANSPORTS = [pytest.param(via_mcp, id="mcp")]


@pytest.fixture
def people() -> Company:
    """owner and colleague related, stranger not, operator."""
    return company()


@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize(("tool", "build", "person", "expected"), ROWS)
def test_who_may_do_what(
    people: Company, transport: Transport, tool: str, build: Scene, person: str, expected: str
) -> None:
    arguments = build(people)
    before = snapshot()
    outcome = transport(people, person, tool, arguments)
    assert outcome.code == expected, outcome.body
    row = audit_of(tool)
    assert len(row) == 1
    assert row[0]["agent"] == person
    if expected == OK:
        assert row[0]["outcome"] == OK
        return
    assert snapshot() == before
    assert row[0]["outcome"] == ("invalid" if expected == INVALID else "denied")
    assert row[0]["reason"] == expected


def test_a_refusal_names_the_owner_and_no_remedy_by_reorganising(people: Company) -> None:
    task = card(people.space, assigned_to=people.owner)
    outcome = via_mcp(people, "stranger", "tasks_update", {"task_id": task.id, "title": "Mine"})
    assert "owner" in outcome.body["detail"]
    assert not {"reports_to", "department", "settings"} & set(outcome.body["detail"].replace("_", " ").split())
    assert '"target": "owner"' in audit_of("tasks_update")[0]["details"]


def test_an_ownerless_task_says_claim_it_first(people: Company) -> None:
    outcome = via_mcp(people, "owner", "tasks_complete", {"task_id": card(people.space).id})
    assert "tasks_claim" in outcome.body["detail"]


def test_another_workspace_is_as_absent_as_nothing(people: Company) -> None:
    other = company("other")
    task = card(other.space, assigned_to=other.owner)
    absent = via_mcp(
        people, "operator", "tasks_update", {"task_id": "01890000-0000-7000-8000-000000000000", "title": "x"}
    )
    foreign = via_mcp(people, "operator", "tasks_update", {"task_id": task.id, "title": "x"})
    assert absent == foreign


def test_a_card_has_every_field_in_its_place(people: Company) -> None:
    body = via_mcp(people, "owner", "tasks_create", {"title": "Plan", "durable": "true", "tags": "a, b"}).body
    task = Task.objects.system().get()
    assert body["number"] == "T-1"
    assert body["id"] == task.id
    assert body["assigned_to"] == body["created_by"] == "owner"
    assert body["status"] == "pending"
    assert body["tags"] == ["a", "b"]
    assert body["claimed_by"] is None
    claimed = via_mcp(people, "owner", "tasks_claim", {"task_id": "T-1"}).body
    assert claimed["claimed_by"] == "owner"
    assert claimed["lease_expires_at"].endswith("Z")


def test_lists_show_the_callers_own_by_default(people: Company) -> None:
    card(people.space, assigned_to=people.owner, title="one")
    card(people.space, assigned_to=people.owner, title="two", priority="high")
    card(people.space, assigned_to=people.stranger, title="three")
    card(people.space, title="four")

    def titles(person: str, **arguments: Any) -> list[str]:
        return [task["title"] for task in via_mcp(people, person, "tasks_list", arguments).body["tasks"]]

    assert titles("owner") == ["two", "one"]
    assert titles("owner", assigned_to="stranger") == ["three"]
    assert titles("owner", assigned_to="*") == titles("operator") == ["four", "three", "two", "one"]
    assert titles("owner", priority="high") == ["two"]
    assert titles("owner", assigned_to="*", limit="2") == ["four", "three"]
    assert titles("owner", status="done") == []


@pytest.mark.parametrize("arguments", [{"limit": 0}, {"limit": 101}, {"status": "gone"}, {"priority": "x"}])
def test_lists_refuse_what_they_do_not_know(people: Company, arguments: dict[str, Any]) -> None:
    assert via_mcp(people, "owner", "tasks_list", arguments).code == INVALID


def test_twenty_rows_are_shown_and_a_hundred_are_the_most(people: Company) -> None:
    for _ in range(101):
        card(people.space, assigned_to=people.owner)
    assert via_mcp(people, "owner", "tasks_list", {}).body["count"] == 20
    assert via_mcp(people, "owner", "tasks_list", {"limit": 100}).body["count"] == 100


def test_a_long_list_says_what_it_left_out(people: Company) -> None:
    for _ in range(3):
        card(people.space, assigned_to=people.owner, description="x" * 30_000)
    body = via_mcp(people, "owner", "tasks_list", {}).body
    assert (body["count"], body["truncated"], body["left_out"]) == (1, True, 2)


def test_the_feed_shows_the_callers_own_by_default(people: Company) -> None:
    task = card(people.space, assigned_to=people.owner)
    via_mcp(people, "owner", "activity_post", {"summary": "a", "task_id": task.id, "metadata": '{"n": 1}'})
    via_mcp(people, "colleague", "activity_post", {"summary": "b", "event_type": "note"})

    def lines(person: str, **arguments: Any) -> list[str]:
        return [line["summary"] for line in via_mcp(people, person, "activity_list", arguments).body["events"]]

    assert lines("owner") == ["a"]
    assert lines("owner", agent_id="*") == lines("operator") == ["b", "a"]
    assert lines("owner", agent_id="*", event_type="note") == ["b"]
    assert lines("operator", task_id="T-1") == ["a"]
    assert via_mcp(people, "owner", "activity_list", {"task_id": "T-9"}).code == INVALID


@pytest.mark.parametrize("metadata", ['{"n": NaN}', '{"n": "\\u0000"}', '{"n": "\\ud800"}', {"n": "x" * 17_000}])
def test_metadata_that_a_database_could_not_keep_is_refused(people: Company, metadata: Any) -> None:
    assert via_mcp(people, "owner", "activity_post", {"summary": "a", "metadata": metadata}).code == INVALID


MOST_QUERIES = 12


def worst(people: Company) -> Task:
    """A card whose every check costs its queries: not the caller's, below another, waiting for a third."""
    parent = card(people.space, assigned_to=people.owner)
    task = card(people.space, assigned_to=people.owner, parent=parent, status="pending")
    task.depends_on.add(card(people.space, status="done"))
    return task


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("tasks_list", {"assigned_to": "*"}),
        ("tasks_create", {"title": "x", "assigned_to": "owner", "parent_task_id": "T-1"}),
        ("tasks_create", {"title": "x", "parent_task_id": "T-1", "depends_on": ["T-2"]}),
        ("tasks_update", {"task_id": "T-2", "title": "x", "depends_on": ["T-1"]}),
        ("tasks_update", {"task_id": "T-2", "assigned_to": "colleague"}),
        ("tasks_claim", {"task_id": "T-2"}),
        ("tasks_complete", {"task_id": "T-2"}),
        ("tasks_block", {"task_id": "T-2", "reason": "x"}),
        ("activity_post", {"summary": "x", "task_id": "T-2"}),
        ("activity_list", {"agent_id": "*", "task_id": "T-2"}),
    ],
)
def test_no_handler_asks_the_database_more_than_twelve_times(
    people: Company, name: str, arguments: dict[str, Any]
) -> None:
    worst(people)
    tool = get(name)
    assert tool is not None
    call = Call(people.who("colleague"), name)
    with CaptureQueriesContext(connection) as queries:
        tool.function(call, **validate.arguments(tool, arguments))
    sql = [query["sql"] for query in queries.captured_queries if "SAVEPOINT" not in query["sql"]]
    assert len(sql) <= MOST_QUERIES, "\n".join(sql)
