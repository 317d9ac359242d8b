"""Tools over REST: the same choke point, each status of decisions 7, one row a call."""

from collections.abc import Iterator
from typing import Any

import pytest

from agents.models import Grant
from duduclaw.api.tests.house import House, house, send
from mcp import guards, registry
from mcp.context import Call
from mcp.errors import Refused
from mcp.models import AuditRow
from tests.build import key

pytestmark = pytest.mark.django_db


@pytest.fixture
def home() -> House:
    return house()


def call(client: Any, tool_name: str, /, **arguments: Any) -> Any:
    """One call of a tool, held against the document."""
    return send(client, "post", f"/api/v1/tools/{tool_name}/call/", arguments)


def rows() -> list[tuple[str, str, str]]:
    """(tool, outcome, reason) of every recorded call, oldest first."""
    return list(AuditRow.objects.filter(stream="tool_calls").order_by("id").values_list("tool", "outcome", "reason"))


def task(home: House, **over: Any) -> str:
    """The id of a new task."""
    body = {"title": "Count the sheep", **over}
    return str(send(home.key("operator"), "post", "/api/v1/tasks/", body).json()["id"])


def test_the_list_is_what_may_be_called(home: House) -> None:
    for name in ("owner", "run", "operator", "external", "viewer key"):
        listed = send(home.key(name), "get", "/api/v1/tools/").json()["results"]
        names = {tool["name"] for tool in listed}
        for tool in registry.every():
            answer = call(home.key(name), tool.name, nonsense=1)
            hidden = answer.status_code == 403
            assert hidden == (tool.name not in names), (name, tool.name, answer.json())


def test_a_person_lists_and_calls_by_role(home: House) -> None:
    listed = {role: len(send(home.person(role), "get", "/api/v1/tools/").json()["results"]) for role in home.people}
    assert 0 < listed["viewer"] < listed["operator"] == listed["manager"] == listed["admin"]
    assert call(home.person("viewer"), "tasks_list").status_code == 200
    assert call(home.person("viewer"), "tasks_create", title="x").status_code == 403


def test_200_has_content_twice(home: House) -> None:
    answer = call(home.key("owner"), "tasks_list")
    assert answer.status_code == 200
    assert set(answer.json()) == {"content", "structuredContent"}
    assert answer.json()["structuredContent"]["tasks"] == []
    assert rows() == [("tasks_list", "ok", "")]


def test_400_arguments_and_the_exact_word_for_confirm(home: House) -> None:
    client = home.key("owner")
    missing = call(client, "tasks_create")
    assert (missing.status_code, missing.json()["detail"]) == (400, "Missing required parameter: title")
    assert call(client, "tasks_create", title="x", colour="red").status_code == 400
    for confirm in ({}, {"confirm": False}, {"confirm": "true"}, {"confirm": 1}):
        answer = call(client, "delete_issue", issue_id="AAC-1", **confirm)
        assert (answer.status_code, answer.json()) == (
            400,
            {"error": "confirm: true required for destructive operations"},
        )
    assert rows()[-1] == ("delete_issue", "denied", "destructive_flag_missing")


def test_403_for_a_gate_with_its_class(home: House) -> None:
    answer = call(home.key("owner"), "tool_approve", approval_id="x", decision="approve")
    assert (answer.status_code, answer.json()["error"]) == (403, "human_only")
    home.team.owner.capabilities.denied_tools = ["tasks_*"]
    home.team.owner.capabilities.save()
    answer = call(home.key("owner"), "tasks_list")
    assert (answer.status_code, answer.json()["error"]) == (403, "denied_tools")
    assert call(home.key("external"), "tasks_list").json()["error"] == "external_not_available"
    assert call(home.key("external"), "delete_comment", confirm=True).json()["error"] == "insufficient_scope"


def test_403_for_a_relation(home: House) -> None:
    answer = call(home.key("stranger"), "tasks_claim", task_id=task(home, assigned_to="owner"))
    assert (answer.status_code, answer.json()["error"]) == (403, "delegation_denied")


def test_404_for_no_such_tool(home: House) -> None:
    answer = call(home.key("owner"), "no_such_tool")
    assert (answer.status_code, answer.json()["error"]) == (404, "unknown_tool")
    assert rows() == [("no_such_tool", "invalid", "unknown_tool")]


def test_400_for_an_issue_that_is_absent_or_foreign_in_the_same_bytes(home: House) -> None:
    other = house("other")
    foreign = send(other.key("operator"), "post", "/api/v1/issues/", {"title": "Theirs"}).json()["id"]
    absent = "00000000-0000-7000-8000-000000000000"
    for tool in ("get_issue", "list_comments", "update_issue", "delete_issue"):
        answers = [
            call(home.key("operator"), tool, issue_id=ident, **({"confirm": True} if tool == "delete_issue" else {}))
            for ident in (foreign, absent)
        ]
        assert [answer.status_code for answer in answers] == [400, 400], tool
        assert answers[0].content == answers[1].content, tool


def test_409_and_422(home: House) -> None:
    mine = task(home)
    assert call(home.key("owner"), "tasks_claim", task_id=mine).status_code == 200
    lost = call(home.key("colleague"), "tasks_claim", task_id=mine)
    assert (lost.status_code, lost.json()["error"]) == (409, "already_claimed")
    unready = call(home.key("owner"), "tasks_create", title="x", kind="goal", outcome={"result": "y"})
    assert (unready.status_code, unready.json()["error"]) == (422, "not_configured")


def test_removed_names_name_their_heir(home: House) -> None:
    answer = call(home.key("owner"), "schedule_task")
    assert (answer.status_code, answer.json()["error"]) == (422, "removed_tool")
    assert "tasks_create" in answer.json()["detail"]


@pytest.fixture
def empty_buckets() -> Iterator[None]:
    guards.limiter._levels.clear()
    yield
    guards.limiter._levels.clear()


def test_429_says_when(home: House, empty_buckets: None) -> None:
    home.team.space.settings.rate = {"external": {"read": 2, "write": 1, "burst": 2}}
    home.team.space.settings.save()
    client = home.key("external")
    answers = [call(client, "list_issues") for _ in range(3)]
    assert [answer.status_code for answer in answers] == [200, 200, 429]
    assert int(answers[2]["Retry-After"]) >= 1
    assert answers[2].json()["error"] == "rate_limited"
    assert rows()[-1][1:] == ("denied", "rate_limited")


def test_202_then_a_person_then_200(home: House) -> None:
    home.team.owner.capabilities.scoped_tools = ["tasks_list"]
    home.team.owner.capabilities.save()
    client, asked = home.key("owner"), {"tool": "tasks_list", "reason": "the board"}
    assert call(client, "tasks_list").json()["error"] == "capability_grant_missing"
    parked = call(client, "capability_request", **asked)
    assert (parked.status_code, parked.json()["status"]) == (202, "approval_pending")
    approval = parked.json()["approval"]
    assert (approval["agent"], approval["tool"], approval["status"]) == ("owner", "tasks_list", "pending")
    decide = f"/api/v1/approvals/{approval['id']}/decide/"
    assert send(home.key("operator"), "post", decide, {"decision": "approve"}).json()["status"] == "approved"
    granted = call(client, "capability_request", **asked)
    assert granted.json()["structuredContent"]["grant_id"] == Grant.objects.system().get().id
    assert call(client, "tasks_list").status_code == 200
    assert [row[1:] for row in rows()] == [
        ("denied", "capability_grant_missing"), ("denied", "approval_pending"), ("ok", ""), ("ok", ""),
    ]  # fmt: skip


def test_500_says_nothing(home: House) -> None:
    def broken(call: Call) -> dict[str, Any]:
        """A tool that fails."""
        raise RuntimeError("the secret reason")

    made = registry.build(broken, "broken", "tests", "admin", {})
    with registry.temporarily(made):
        answer = call(home.key("owner"), "broken")
    assert answer.status_code == 500
    assert "secret reason" not in str(answer.content)
    assert rows() == [("broken", "error", "internal")]


@pytest.mark.parametrize(
    ("code", "status"),
    [("already_decided", 409), ("stale", 409), ("claim_lost", 409), ("owner_unknown", 403), ("anything", 422)],
)
def test_statuses_of_refusals(home: House, code: str, status: int) -> None:
    def refusing(call: Call) -> dict[str, Any]:
        """A tool that refuses."""
        raise Refused(code, "because")

    with registry.temporarily(registry.build(refusing, "refusing", "tests", "admin", {})):
        answer = call(home.key("owner"), "refusing")
    assert (answer.status_code, answer.json()) == (status, {"error": code, "detail": "because"})


def test_a_dead_key_calls_nothing(home: House) -> None:
    for name in ("owner", "operator"):
        client = home.key(name)
        assert client.get("/api/v1/tools/").status_code == 200
    row, token = key(home.team.space, "agent", agent=home.team.owner)
    home.tokens["second"] = token
    send(home.key("admin key"), "delete", f"/api/v1/keys/{row.id}/")
    answer = call(home.key("second"), "tasks_list")
    assert (answer.status_code, answer.json()["error"]) == (401, "invalid_key")
    assert answer["WWW-Authenticate"] == "Bearer"
