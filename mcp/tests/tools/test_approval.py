"""capability_request, tool_approve, emergency_stop: who may call them, what they change, what a refusal leaves."""

from typing import Any

import pytest

from agents.models import Agent, Approval, Capabilities, FleetStop, Grant
from mcp.calls import Answer, CallRequest, call
from mcp.tests.tools.transports import audit_of, rows_of, via_mcp, with_clients
from tests.build import Company, company

pytestmark = pytest.mark.django_db
WANTED = {"tool": "web_fetch", "reason": "prices of suppliers"}


@pytest.fixture
def people() -> Company:
    """The owner's web_fetch is scoped; colleague reports to the owner."""
    made = with_clients(company())
    Capabilities.objects.filter(agent=made.owner).update(scoped_tools=["web_fetch"])
    Agent.objects.system().filter(pk=made.colleague.pk).update(reports_to=made.owner)
    return made


def asked(people: Company, **over: Any) -> Answer:
    """The owner's call as it comes back from the choke point, parked or not."""
    return call(CallRequest(lambda: people.who("owner"), "capability_request", {**WANTED, **over}))


def test_a_request_files_one_question_and_waits(people: Company) -> None:
    first, again = asked(people), asked(people)
    row = Approval.objects.system().get()
    assert first.parked and again.parked
    assert first.parked.id == again.parked.id == row.id
    assert (row.agent, row.tool, row.status) == (people.owner, "web_fetch", "pending")
    assert audit_of("capability_request") == []
    assert not Grant.objects.system().exists()


def test_the_answer_is_told_to_the_same_call_once(people: Company) -> None:
    asked(people)
    approval = {"approval_id": Approval.objects.system().get().id, "decision": "approve", "note": "once"}
    assert via_mcp(people, "operator", "tool_approve", approval).body["status"] == "approved"
    grant = Grant.objects.system().get()
    told = asked(people)
    assert told.structured and told.structured["grant_id"] == grant.id
    assert (grant.agent, grant.tool, grant.approved_by) == (people.owner, "web_fetch", "operator")
    assert audit_of("capability_request") == [("ok", "", "owner")]


@pytest.mark.parametrize(
    ("person", "arguments", "code"),
    [
        ("owner", {"tool": "mail_send", "reason": "x"}, "not_scoped"),
        ("colleague", WANTED, "not_scoped"),
        ("operator", WANTED, "not_an_agent"),
        ("owner", {**WANTED, "task_id": "T-99"}, "not_found"),
        ("owner", {**WANTED, "reason": " "}, "invalid_arguments"),
    ],
)
def test_a_request_that_cannot_be_granted(people: Company, person: str, arguments: dict[str, Any], code: str) -> None:
    assert via_mcp(people, person, "capability_request", arguments).code == code
    assert rows_of(Approval, Grant) == [[], []]
    assert len(audit_of("capability_request")) == 1


@pytest.mark.parametrize(
    ("person", "decision", "code"),
    [
        ("owner", "approve", "human_only"),
        ("colleague", "approve", "human_only"),
        ("stranger", "deny", "human_only"),
        ("external", "approve", "external_not_available"),
        ("viewer", "approve", "insufficient_scope"),
        ("operator", "perhaps", "invalid_arguments"),
    ],
)
def test_who_may_not_decide(people: Company, person: str, decision: str, code: str) -> None:
    asked(people)
    before = rows_of(Approval, Grant)
    arguments = {"approval_id": Approval.objects.system().get().id, "decision": decision}
    assert via_mcp(people, person, "tool_approve", arguments).code == code
    assert rows_of(Approval, Grant) == before
    assert len(audit_of("tool_approve")) == 1


def test_a_decision_stands(people: Company) -> None:
    asked(people)
    arguments = {"approval_id": Approval.objects.system().get().id, "decision": "deny"}
    assert via_mcp(people, "operator", "tool_approve", arguments).body["status"] == "denied"
    before = rows_of(Approval)
    assert via_mcp(people, "operator", "tool_approve", {**arguments, "decision": "approve"}).code == "already_decided"
    assert via_mcp(people, "operator", "tool_approve", {**arguments, "approval_id": "none"}).code == "not_found"
    assert rows_of(Approval, Grant) == [*before, []]
    told = asked(people)
    assert (told.is_error, told.code) == (True, "approval_denied")


@pytest.mark.parametrize("lists", [{"denied_tools": ["web_fetch"]}, {"scoped_tools": []}], ids=["denied", "unscoped"])
def test_a_policy_that_changed_meanwhile_beats_the_answer(people: Company, lists: dict[str, list[str]]) -> None:
    asked(people)
    Capabilities.objects.filter(agent=people.owner).update(**lists)
    arguments = {"approval_id": Approval.objects.system().get().id, "decision": "approve"}
    assert via_mcp(people, "operator", "tool_approve", arguments).code == "policy_changed"
    assert not Grant.objects.system().exists()
    assert Approval.objects.system().get().status == "pending"


@pytest.mark.parametrize(
    ("person", "scope", "code"),
    [
        ("owner", "owner", "ok"),
        ("owner", "colleague", "ok"),
        ("operator", "all", "ok"),
        ("operator", "research", "ok"),
        ("owner", "all", "delegation_denied"),
        ("colleague", "owner", "delegation_denied"),
        ("stranger", "owner", "delegation_denied"),
        ("viewer", "all", "insufficient_scope"),
    ],
)
def test_who_may_stop_what(people: Company, person: str, scope: str, code: str) -> None:
    assert via_mcp(people, person, "emergency_stop", {"reason": "drill", "scope": scope}).code == code
    assert FleetStop.objects.system().count() == (code == "ok")
    assert len(audit_of("emergency_stop")) == 1
