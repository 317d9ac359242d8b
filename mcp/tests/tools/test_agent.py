"""The directory of agents: who is shown to whom, and what of it."""

from typing import Any

import pytest

from agents.models import Agent, PlatformSettings
from mcp.refusals import SWITCH_TEXTS
from mcp.tests.tools.transports import OK, TRANSPORTS, Transport, audit_of, rows_of, via_mcp, with_clients
from tests.build import Company, agent, company

pytestmark = pytest.mark.django_db

EVERYBODY = {"boss", "colleague", "owner", "report", "stranger"}


@pytest.fixture
def people() -> Company:
    """boss above owner above report, all of departments of their own but owner and colleague; stranger unrelated."""
    made = with_clients(company())
    boss = agent(made.space, "boss", department="board")
    Agent.objects.system().filter(pk=made.owner.pk).update(reports_to=boss)
    agent(made.space, "report", department="field", reports_to=made.owner)
    return made


def listed(people: Company, person: str, transport: Transport = via_mcp, **arguments: Any) -> set[str]:
    """The names that `list_agents` shows."""
    outcome = transport(people, person, "list_agents", arguments)
    assert outcome.code == OK, outcome.body
    names = [row["id"] for row in outcome.body["agents"]]
    assert names == sorted(names)
    return set(names)


def delegation(people: Company, **section: Any) -> None:
    PlatformSettings.objects.system().filter(workspace=people.space).update(delegation=section)


SEEN = {
    "owner": {"boss", "colleague", "owner", "report"},
    "colleague": {"colleague", "owner"},
    "stranger": {"stranger"},
    "operator": EVERYBODY,
    "viewer": EVERYBODY,
}


@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize("person", SEEN)
def test_each_sees_itself_its_line_and_its_department(people: Company, transport: Transport, person: str) -> None:
    assert listed(people, person, transport) == SEEN[person]
    assert audit_of("list_agents")[0][0] == OK


@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize("person", SEEN)
def test_status_answers_for_whom_the_list_shows(people: Company, transport: Transport, person: str) -> None:
    before = rows_of(Agent)
    for name in (*sorted(EVERYBODY), "ghost"):
        seen = name in SEEN[person]
        outcome = transport(people, person, "agent_status", {"agent_id": name})
        assert (name, outcome.code) == (name, OK if seen else "not_found")
        assert audit_of("agent_status")[-1][1] == ("" if seen else "not_found")
    assert len(audit_of("agent_status")) == len(EVERYBODY) + 1
    assert rows_of(Agent) == before


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_the_invisible_answers_the_same_bytes_as_the_missing(people: Company, transport: Transport) -> None:
    other = company("other")
    agent(other.space, "elsewhere")
    missing = transport(people, "stranger", "agent_status", {"agent_id": "ghost"})
    for name in ("owner", "elsewhere", "", "../x", "owner\u200d", "x" * 500):
        assert transport(people, "stranger", "agent_status", {"agent_id": name}) == missing


@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize("tool", ["list_agents", "agent_status"])
def test_external_clients_have_no_directory(people: Company, transport: Transport, tool: str) -> None:
    outcome = transport(people, "external", tool, {"agent_id": "owner"} if tool == "agent_status" else {})
    assert outcome.code == "external_not_available"
    assert audit_of(tool) == [("denied", "external_not_available", "client")]


def test_open_policy_shows_all_and_hierarchy_no_department(people: Company) -> None:
    delegation(people, policy="open")
    assert listed(people, "stranger") == EVERYBODY
    delegation(people, policy="hierarchy")
    assert listed(people, "colleague") == {"colleague"}
    delegation(people, policy="hierarchy", allow=[["colleague", "stranger"]])
    assert listed(people, "colleague") == {"colleague", "stranger"}
    assert listed(people, "stranger") == {"colleague", "stranger"}


STATES = {"active": (True, True), "paused": (False, True), "terminated": (False, True), "removed": (False, False)}


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("person", ["owner", "operator"])
def test_archived_ones_on_request_and_removed_ones_never(people: Company, state: str, person: str) -> None:
    Agent.objects.system().filter(name="report").update(status=state)
    plain, archived = STATES[state]
    assert ("report" in listed(people, person)) is plain
    assert ("report" in listed(people, person, include_archived="true")) is archived
    code = via_mcp(people, person, "agent_status", {"agent_id": "report"}).code
    assert code == (OK if archived else "not_found")


def test_an_invisible_boss_is_not_named(people: Company) -> None:
    rows = {row["id"]: row for row in via_mcp(people, "colleague", "list_agents", {}).body["agents"]}
    assert rows["owner"]["reports_to"] is None
    assert via_mcp(people, "colleague", "agent_status", {"agent_id": "owner"}).body["reports_to"] is None
    assert via_mcp(people, "owner", "agent_status", {"agent_id": "owner"}).body["reports_to"] == "boss"
    assert via_mcp(people, "operator", "agent_status", {"agent_id": "owner"}).body["reports_to"] == "boss"


def test_tool_lists_are_for_people(people: Company) -> None:
    caps = people.owner.capabilities
    caps.scoped_tools, caps.recording = ["secret_tool"], True
    caps.save()
    seen = via_mcp(people, "owner", "agent_status", {"agent_id": "owner"}).body
    assert seen["capabilities"]["recording"] is True
    assert "secret_tool" not in str(seen)
    seen = via_mcp(people, "operator", "agent_status", {"agent_id": "owner"}).body
    assert seen["capabilities"]["scoped_tools"] == ["secret_tool"]


def test_a_status_has_every_field_in_its_place(people: Company) -> None:
    body = via_mcp(people, "owner", "agent_status", {"agent_id": "report"}).body
    assert (body["id"], body["department"], body["status"], body["reports_to"]) == (
        "report",
        "field",
        "active",
        "owner",
    )
    assert set(body["permissions"]) == {
        "can_create_agents",
        "can_send_cross_agent",
        "can_schedule_tasks",
        "can_modify_own_skills",
    }
    assert set(SWITCH_TEXTS) & set(body["capabilities"]) == {"fork"}
