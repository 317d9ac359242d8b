"""The issue tools: every limit with who may and who may not, over every transport; pages, search, tenancy."""

from collections.abc import Callable
from typing import Any

import pytest

from mcp import registry
from mcp.refusals import CONFIRM
from mcp.tests.tools.issues_made import commented, made
from mcp.tests.tools.transports import (
    OK,
    TRANSPORTS,
    Transport,
    audit_of,
    cases,
    rows_of,
    via_mcp,
    with_clients,
)
from tasks.actions.issues import LONGEST_COMMENT, LONGEST_TEXT
from tasks.models import Comment, Counter, Issue, Wake
from tests.build import Company, company, key

pytestmark = pytest.mark.django_db

INVALID, SCOPE, EXTERNAL, AUTHOR = "invalid_arguments", "insufficient_scope", "external_not_available", "not_author"
STATUS = {OK: 200, INVALID: 400, CONFIRM: 400, SCOPE: 403, AUTHOR: 403}
NAMES = {"external": "client"}
ABSENT = "01890000-0000-7000-8000-000000000000"

Arguments = Callable[[Company], dict[str, Any]]


@pytest.fixture
def people() -> Company:
    """owner and colleague related, stranger not; operator, viewer; external client with all issue scopes, reader."""
    return with_clients(company())


def on_issue(by: str = "owner", **more: Any) -> Arguments:
    return lambda people: {"issue_id": made(people, by)["id"], **more}


def on_comment(by: str = "colleague", **more: Any) -> Arguments:
    return lambda people: {"comment_id": commented(people, by)["id"], **more}


def fixed(**arguments: Any) -> Arguments:
    return lambda people: arguments


WRITERS = ("owner", "colleague", "stranger", "operator", "external")
EVERYBODY = dict.fromkeys(WRITERS, OK)
NOBODY = dict.fromkeys(WRITERS, INVALID)
READ = EVERYBODY | {"reader": OK, "viewer": OK}
WRITE = EVERYBODY | {"reader": SCOPE, "viewer": SCOPE}
DELETE = {"owner": OK, "colleague": AUTHOR, "stranger": AUTHOR, "operator": OK, "external": AUTHOR, "reader": SCOPE}

TABLE: list[tuple[str, str, Arguments, dict[str, str]]] = [
    ("list_issues", "all", fixed(), READ),
    ("list_issues", "limit 1", fixed(limit=1), READ),
    ("list_issues", "limit 100 as text", fixed(limit="100"), READ),
    ("list_issues", "limit 0", fixed(limit=0), NOBODY),
    ("list_issues", "limit 101", fixed(limit=101), NOBODY),
    ("list_issues", "known state", fixed(status="in_progress"), READ),
    ("list_issues", "unknown state", fixed(status="Open"), NOBODY),
    ("list_issues", "query of 200", fixed(query="x" * 200), READ),
    ("list_issues", "query of 201", fixed(query="x" * 201), NOBODY),
    ("list_issues", "blank query", fixed(query="  "), NOBODY),
    ("list_issues", "bad cursor", fixed(cursor="bm8="), NOBODY),
    ("get_issue", "by id", on_issue(), READ),
    ("get_issue", "absent", fixed(issue_id=ABSENT), NOBODY),
    ("get_issue", "no id at all", fixed(issue_id="../etc"), NOBODY),
    ("list_comments", "of an issue", on_issue(), EVERYBODY | {"viewer": OK, "reader": SCOPE}),
    ("list_comments", "limit 0", on_issue(limit=0), NOBODY),
    ("list_comments", "limit 100", on_issue(limit=100), EVERYBODY),
    ("list_comments", "bad cursor", on_issue(cursor="x"), NOBODY),
    ("create_issue", "plain", fixed(title="A"), WRITE),
    ("create_issue", "title of 200", fixed(title="x" * 200), EVERYBODY),
    ("create_issue", "title of 201", fixed(title="x" * 201), NOBODY),
    ("create_issue", "blank title", fixed(title=" "), NOBODY),
    ("create_issue", "title of two lines", fixed(title="a\nb"), NOBODY),
    ("create_issue", "longest text", fixed(title="A", description="固" * LONGEST_TEXT), EVERYBODY),
    ("create_issue", "over-long text", fixed(title="A", description="x" * (LONGEST_TEXT + 1)), NOBODY),
    ("create_issue", "control characters", fixed(title="a\x07b"), NOBODY),
    ("create_issue", "priority", fixed(title="A", priority="urgent"), EVERYBODY),
    ("create_issue", "unknown priority", fixed(title="A", priority="asap"), NOBODY),
    ("create_issue", "for an agent", fixed(title="A", assignee="colleague"), EVERYBODY),
    ("create_issue", "for nobody known", fixed(title="A", assignee="ghost"), NOBODY),
    ("create_issue", "unknown parameter", fixed(title="A", workspace_id="x"), NOBODY),
    ("update_issue", "state", on_issue(status="done"), WRITE),
    ("update_issue", "unknown state", on_issue(status="gone"), NOBODY),
    ("update_issue", "title of 200", on_issue(title="y" * 200), EVERYBODY),
    ("update_issue", "title of 201", on_issue(title="y" * 201), NOBODY),
    ("update_issue", "over-long text", on_issue(description="x" * (LONGEST_TEXT + 1)), NOBODY),
    ("update_issue", "absent", fixed(issue_id="AAC-999", status="done"), NOBODY),
    ("comment_issue", "plain", on_issue(body="Hello"), WRITE),
    ("comment_issue", "longest", on_issue(body="x" * LONGEST_COMMENT), EVERYBODY),
    ("comment_issue", "over-long", on_issue(body="x" * (LONGEST_COMMENT + 1)), NOBODY),
    ("comment_issue", "blank", on_issue(body="\n"), NOBODY),
    ("comment_issue", "absent", fixed(issue_id=ABSENT, body="Hello"), NOBODY),
    ("assign_issue_to_agent", "to an agent", on_issue(agent_id="colleague"), WRITE),
    ("assign_issue_to_agent", "to nobody known", on_issue(agent_id="ghost"), NOBODY),
    ("assign_issue_to_agent", "absent issue", fixed(issue_id=ABSENT, agent_id="colleague"), NOBODY),
    ("delete_issue", "of owner", on_issue(confirm=True), DELETE),
    ("delete_issue", "of external", on_issue("external", confirm=True), {"external": OK, "owner": AUTHOR}),
    ("delete_issue", "confirm missing", on_issue(), dict.fromkeys(WRITERS, CONFIRM) | {"reader": SCOPE}),
    ("delete_issue", "confirm as text", on_issue(confirm="true"), dict.fromkeys(WRITERS, CONFIRM)),
    ("delete_issue", "confirm 1", on_issue(confirm=1), {"owner": CONFIRM}),
    ("delete_issue", "confirm before existence", fixed(issue_id=ABSENT), {"owner": CONFIRM, "external": CONFIRM}),
    ("delete_issue", "absent", fixed(issue_id=ABSENT, confirm=True), NOBODY | {"reader": SCOPE}),
    ("delete_comment", "of colleague", on_comment(confirm=True), {**DELETE, "owner": AUTHOR, "colleague": OK}),
    ("delete_comment", "confirm false", on_comment(confirm=False), dict.fromkeys(WRITERS, CONFIRM)),
    ("delete_comment", "absent", fixed(comment_id=ABSENT, confirm=True), NOBODY),
]


@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize(("tool", "arguments", "expected"), cases(TABLE))
def test_who_may_do_what(
    people: Company, transport: Transport, tool: str, arguments: Arguments, expected: dict[str, str]
) -> None:
    for person, code in expected.items():
        given = arguments(people)
        before, told = rows_of(Issue, Comment, Wake, Counter), len(audit_of(tool))
        outcome = transport(people, person, tool, given)
        assert (person, outcome.code) == (person, code), outcome.body
        assert outcome.status in (0, STATUS[code])
        row = audited(tool, told)
        if code == OK:
            assert row[0] == OK
            continue
        assert rows_of(Issue, Comment, Wake, Counter) == before
        reason = "destructive_flag_missing" if code == CONFIRM else code
        assert row == ("invalid" if code == INVALID else "denied", reason, NAMES.get(person, person))


def audited(tool: str, told: int) -> tuple[str, str, str]:
    """The one row that was added since there were `told`."""
    (row,) = audit_of(tool)[told:]
    return row


ANNOTATIONS = {
    "list_issues": ("issues:read", True, False, True),
    "get_issue": ("issues:read", True, False, True),
    "list_comments": ("comments:read", True, False, True),
    "create_issue": ("issues:write", False, False, False),
    "update_issue": ("issues:write", False, False, True),
    "comment_issue": ("comments:write", False, False, False),
    "assign_issue_to_agent": ("agents:write", False, False, True),
    "delete_issue": ("issues:write", False, True, True),
    "delete_comment": ("comments:write", False, True, True),
}


@pytest.mark.parametrize("name", ANNOTATIONS)
def test_scopes_and_annotations(name: str) -> None:
    tool = registry.TOOLS[name]
    hints = tool.annotations
    shown = (tool.scope, hints["readOnlyHint"], hints["destructiveHint"], hints["idempotentHint"])
    assert shown == ANNOTATIONS[name]
    assert hints["openWorldHint"] is False


@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize(
    ("tool", "more"),
    [
        ("get_issue", {}),
        ("list_comments", {}),
        ("update_issue", {"status": "done"}),
        ("comment_issue", {"body": "hi"}),
        ("assign_issue_to_agent", {"agent_id": "owner"}),
        ("delete_issue", {"confirm": True}),
        ("delete_comment", {"confirm": True}),
    ],
)
def test_T47_another_workspace_is_as_absent_as_nothing(
    people: Company, transport: Transport, tool: str, more: dict[str, Any]
) -> None:
    other = with_clients(company("other"))
    issue = made(other)
    comment = commented(other, "owner", issue)
    name = "comment_id" if tool == "delete_comment" else "issue_id"
    foreign = [comment["id"]] if tool == "delete_comment" else [issue["id"], issue["key"]]
    before = rows_of(Issue, Comment, Wake)
    for person in ("owner", "operator", "external"):
        absent = transport(people, person, tool, {name: ABSENT, **more})
        assert absent.code == INVALID
        assert [transport(people, person, tool, {name: ref, **more}) for ref in foreign] == [absent] * len(foreign)
    assert rows_of(Issue, Comment, Wake) == before


def test_T47_an_agent_of_another_workspace_cannot_be_named(people: Company) -> None:
    other = company("other")
    other.owner.name = other.owner.name_key = "only-there"
    other.owner.save()
    outcome = via_mcp(people, "owner", "assign_issue_to_agent", on_issue(agent_id="only-there")(people))
    assert outcome.code == INVALID


@pytest.mark.parametrize("ref", ["AAC-1", "aac-1", "id", "ID"])
def test_keys_and_ids_name_an_issue(people: Company, ref: str) -> None:
    issue = made(people)
    ref = {"id": issue["id"], "ID": issue["id"].upper()}.get(ref, ref)
    assert via_mcp(people, "owner", "get_issue", {"issue_id": ref}).body["id"] == issue["id"]


@pytest.mark.parametrize(
    "ref", ["AAC-2", "XYZ-1", "AAC-01", "AAC-", "AAC-1 ", "1", "", "AAC-99999999999999999999", "AAC-\uff11"]
)
def test_other_texts_name_none(people: Company, ref: str) -> None:
    made(people)
    assert via_mcp(people, "owner", "get_issue", {"issue_id": ref}).code == INVALID


def test_the_prefix_is_the_workspaces_own(people: Company) -> None:
    people.space.issue_prefix = "OPS"
    people.space.save()
    assert made(people)["key"] == "OPS-1"
    assert via_mcp(people, "owner", "get_issue", {"issue_id": "OPS-1"}).code == OK
    assert via_mcp(people, "owner", "get_issue", {"issue_id": "AAC-1"}).code == INVALID


def test_a_card_has_every_field_in_its_place(people: Company) -> None:
    body = made(people, "external", description="**hot**", priority="high", assignee="owner")
    row = Issue.objects.system().get()
    assert body["id"] == row.id
    assert (body["key"], body["number"], body["version"]) == ("AAC-1", 1, 1)
    assert (body["title"], body["description"]) == ("Printer is on fire", "**hot**")
    assert (body["status"], body["priority"]) == ("open", "high")
    assert (body["assignee"], body["created_by"]) == ("owner", "client")
    assert body["created_at"].endswith("Z")
    assert row.agent == people.owner
    assert not Wake.objects.system().exists()


def test_the_same_update_again_changes_nothing(people: Company) -> None:
    arguments = on_issue(status="done", title="New")(people)
    first = via_mcp(people, "owner", "update_issue", arguments).body
    before = rows_of(Issue)
    assert via_mcp(people, "colleague", "update_issue", arguments).body == first
    assert rows_of(Issue) == before
    assert first["version"] == 2


def test_creates_are_not_idempotent(people: Company) -> None:
    issue = made(people)
    assert made(people)["number"] == issue["number"] + 1
    assert commented(people, "owner", issue)["id"] != commented(people, "owner", issue)["id"]


def test_deleting_takes_comments_and_waiting_wakes_along(people: Company) -> None:
    issue = made(people)
    commented(people, "stranger", issue)
    via_mcp(people, "owner", "assign_issue_to_agent", {"issue_id": issue["id"], "agent_id": "colleague"})
    kept = made(people)
    outcome = via_mcp(people, "owner", "delete_issue", {"issue_id": issue["key"], "confirm": True})
    assert outcome.body == {"deleted": issue["id"]}
    assert [row.id for row in Issue.objects.system()] == [kept["id"]]
    assert not Comment.objects.system().exists()
    assert not Wake.objects.system().exists()
    assert made(people)["number"] == kept["number"] + 1


def test_a_client_called_like_an_agent_is_not_that_agent(people: Company) -> None:
    people.tokens["twin"] = key(people.space, "external", client_id="owner", scopes_held=["issues:write"])[1]
    issue = made(people)
    outcome = via_mcp(people, "twin", "delete_issue", {"issue_id": issue["id"], "confirm": True})
    assert outcome.code == AUTHOR
