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
from tasks.tests.board import OK, Transport, audit_of, card, snapshot, via_mcp, via_rest
from tests.build import Company, company

pytestmark = pytest.mark.django_db
DENIED, UNOWNED, INVALID = "delegation_denied", "owner_unknown", "invalid_arguments"

Scene = Callable[[Company], dict[str, Any]]


def scene(tool_arguments: dict[str, Any] | None = None, *, key: str = "task_id", **columns: Any) -> Scene:
    """Arguments that point at a fresh card; the values of agent columns are people of the company."""

    def build(people: Company) -> dict[str, Any]:
        over = {name: getattr(people, value) if hasattr(people, value) else value for name, value in columns.items()}
        return {key: card(people.space, **over).id, **(tool_arguments or {})}

    return build


def fixed(arguments: dict[str, Any]) -> Scene:
    """Arguments that need no card."""
    return lambda people: arguments


MINE: dict[str, Any] = {"assigned_to": "owner"}
THEIRS: dict[str, Any] = {"assigned_to": "owner", "creator": "stranger"}
HELD: dict[str, Any] = {"assigned_to": "owner", "claimed_by": "stranger", "status": "in_progress"}
NEW_TITLE, DONE, STUCK, NOTE = (
    {"title": "New"},
    {"summary": "All done"},
    {"reason": "No access"},
    {"summary": "Half way"},
)
CHILD = {"title": "A part"}


def each(owner: str | None, colleague: str | None, stranger: str | None, operator: str | None) -> dict[str, str]:
    """What each person hears; None leaves the person out."""
    heard = {"owner": owner, "colleague": colleague, "stranger": stranger, "operator": operator}
    return {person: code for person, code in heard.items() if code}


RELATED = each(OK, OK, DENIED, OK)
OWNERLESS = each(UNOWNED, UNOWNED, UNOWNED, OK)
NOT_FOUND = each(INVALID, INVALID, INVALID, INVALID)
ALL = each(OK, OK, OK, OK)
ONLY_STRANGER = each(None, None, OK, None)
LATE, ENDED, NOT_MINE = "already_claimed", "wrong_status", "not_the_holder"
TAG, EVENT = "reserved_tag_change", "reserved_event_type"
UNDER = "parent_task_id"

# tool, what it is about, its arguments, what each person hears
TABLE: list[tuple[str, str, Scene, dict[str, str]]] = [
    ("tasks_update", "of owner", scene(NEW_TITLE, **MINE), RELATED),
    ("tasks_update", "created by stranger", scene(NEW_TITLE, **THEIRS), ONLY_STRANGER),
    ("tasks_update", "claimed by stranger", scene(NEW_TITLE, **HELD), ONLY_STRANGER),
    ("tasks_update", "of nobody", scene(NEW_TITLE), OWNERLESS),
    ("tasks_update", "unknown", fixed({"task_id": "T-999", **NEW_TITLE}), NOT_FOUND),
    ("tasks_update", "taken", scene({"assigned_to": "colleague"}, **MINE), each(None, OK, DENIED, OK)),
    ("tasks_update", "taken by creator", scene({"assigned_to": "stranger"}, **THEIRS), each(None, None, DENIED, OK)),
    ("tasks_update", "given to stranger", scene({"assigned_to": "stranger"}, **MINE), each(DENIED, DENIED, DENIED, OK)),
    ("tasks_update", "given to colleague", scene({"assigned_to": "colleague"}, **MINE), each(OK, OK, DENIED, OK)),
    (
        "tasks_update",
        "given to a ghost",
        scene({"assigned_to": "ghost"}, **MINE),
        each(INVALID, INVALID, DENIED, INVALID),
    ),
    ("tasks_complete", "of owner", scene(DONE, **MINE), RELATED),
    ("tasks_complete", "created by stranger", scene(DONE, **THEIRS), each(None, None, DENIED, None)),
    ("tasks_complete", "claimed by stranger", scene(DONE, **HELD), ALL),
    ("tasks_complete", "of nobody", scene(DONE), OWNERLESS),
    ("tasks_complete", "unknown", fixed({"task_id": "T-999"}), NOT_FOUND),
    ("tasks_block", "of owner", scene(STUCK, **MINE), RELATED),
    ("tasks_block", "created by stranger", scene(STUCK, **THEIRS), each(None, None, DENIED, None)),
    ("tasks_block", "claimed by stranger", scene(STUCK, **HELD), ALL),
    ("tasks_block", "of nobody", scene(STUCK), OWNERLESS),
    ("tasks_block", "without reason", scene({"reason": "  "}, **MINE), NOT_FOUND),
    ("tasks_claim", "of nobody", scene(), ALL),
    ("tasks_claim", "durable of nobody", scene(status="pending"), ALL),
    ("tasks_claim", "durable of owner", scene(status="pending", **MINE), RELATED),
    ("tasks_claim", "sent back to owner", scene(status="revising", **MINE), RELATED),
    ("tasks_claim", "plain of owner", scene(**MINE), each(OK, "assigned_to_other", DENIED, OK)),
    ("tasks_claim", "held", scene(claimed_by="owner", status="in_progress", **MINE), each(OK, LATE, LATE, LATE)),
    ("tasks_claim", "done", scene(status="done", **MINE), each(ENDED, ENDED, DENIED, ENDED)),
    ("tasks_claim", "unknown", fixed({"task_id": "T-999"}), NOT_FOUND),
    (
        "tasks_renew",
        "plain, held",
        scene(claimed_by="owner", status="in_progress", **MINE),
        each("no_lease", NOT_MINE, NOT_MINE, NOT_MINE),
    ),
    ("tasks_create", "under a task of owner", scene(CHILD, key=UNDER, **MINE), RELATED),
    ("tasks_create", "under a task of its creator", scene(CHILD, key=UNDER, **THEIRS), ONLY_STRANGER),
    ("tasks_create", "under a claimed task", scene(CHILD, key=UNDER, **HELD), ONLY_STRANGER),
    ("tasks_create", "under a task of nobody", scene(CHILD, key=UNDER), OWNERLESS),
    ("tasks_create", "under an unknown task", fixed({UNDER: "T-999", **CHILD}), NOT_FOUND),
    ("tasks_create", "for owner", fixed({"assigned_to": "owner", **CHILD}), RELATED),
    ("tasks_create", "reserved tag", fixed({"tags": "x, grant:wiki_read", **CHILD}), each(TAG, TAG, TAG, OK)),
    ("activity_post", "without a task", fixed(NOTE), ALL),
    ("activity_post", "of owner", scene(NOTE, **MINE), RELATED),
    ("activity_post", "created by stranger", scene(NOTE, **THEIRS), ONLY_STRANGER),
    ("activity_post", "claimed by stranger", scene(NOTE, **HELD), ONLY_STRANGER),
    ("activity_post", "of nobody", scene(NOTE), OWNERLESS),
    ("activity_post", "unknown", fixed({"task_id": "T-999", **NOTE}), NOT_FOUND),
    ("activity_post", "platform's", fixed({"event_type": "task.stopped", **NOTE}), each(EVENT, EVENT, EVENT, OK)),
    ("activity_post", "a run's", fixed({"event_type": "Responsibility.x", **NOTE}), each(EVENT, EVENT, EVENT, OK)),
]
ROWS = [
    pytest.param(tool, build, person, expected, id=f"{tool}-{name}-{person}".replace(" ", "_"))
    for tool, name, build, people in TABLE
    for person, expected in people.items()
]
TRANSPORTS = [pytest.param(via_mcp, id="mcp"), pytest.param(via_rest, id="rest")]
STATUS = {OK: 200, INVALID: 400, DENIED: 403, UNOWNED: 403, "assigned_to_other": 403, NOT_MINE: 403, LATE: 409}
UNPROCESSABLE = 422


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
    assert outcome.status in (None, STATUS.get(expected, UNPROCESSABLE))
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


@pytest.mark.parametrize(
    ("arguments", "parameter"),
    [
        ({"summary": "  "}, "summary"),
        ({"summary": "x", "event_type": ""}, "event_type"),
        ({"summary": "x", "event_type": "two words"}, "event_type"),
        ({"summary": "x", "event_type": "x" * 65}, "event_type"),
    ],
)
def test_notes_have_a_line_and_a_plain_kind(people: Company, arguments: dict[str, Any], parameter: str) -> None:
    outcome = via_mcp(people, "owner", "activity_post", arguments)
    assert (outcome.code, outcome.body["parameter"]) == (INVALID, parameter)


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
