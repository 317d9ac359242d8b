"""The delegation predicate and what hangs on it."""

import json
from typing import Any

import pytest
from pytest_django.fixtures import DjangoAssertNumQueries

from agents.models import Agent, PlatformSettings, Workspace
from agents.principals import who_for_agent
from agents.relations import HOPS, SYSTEM_SENDERS, Delegation, check_record, read_rule, visible_agents, why_denied
from mcp.errors import Refused
from tests import build

pytestmark = pytest.mark.django_db


@pytest.fixture
def space() -> Workspace:
    """A workspace under the default policy."""
    return build.workspace()


def settle(space: Workspace, **section: Any) -> None:
    """Write the workspace's [delegation]."""
    PlatformSettings.objects.system().filter(workspace=space).update(delegation=section)


def chain(space: Workspace, length: int, department: str = "") -> list[Agent]:
    """Agents of which each reports to the one before it."""
    made: list[Agent] = []
    for place in range(length):
        made.append(build.agent(space, f"a{place}", reports_to=made[-1] if made else None, department=department))
    return made


def why(sender: Agent, target: Agent) -> str | None:
    return why_denied(sender.workspace_id, sender, target)


def test_nobody_delegates_to_itself_under_any_policy(space: Workspace) -> None:
    lead = build.agent(space, "lead")
    for policy in ("department", "hierarchy", "open"):
        settle(space, policy=policy)
        assert why(lead, lead) == "self_delegation"


def test_an_agent_of_another_workspace_is_no_agent(space: Workspace) -> None:
    other = build.agent(build.workspace("other"), "lead")
    settle(space, policy="open")
    assert why(build.agent(space, "lead"), other) == "invalid_agent_id"


def test_open_relates_everybody(space: Workspace) -> None:
    settle(space, policy="open")
    assert why(build.agent(space, "lead", department="x"), build.agent(space, "writer", department="y")) is None


@pytest.mark.parametrize("policy", ["department", "hierarchy"])
def test_ancestors_and_descendants_are_related_at_any_depth_up_to_twenty(space: Workspace, policy: str) -> None:
    settle(space, policy=policy)
    agents = chain(space, HOPS + 2)
    for depth in (1, 2, HOPS):
        assert why(agents[0], agents[depth]) is None
        assert why(agents[depth], agents[0]) is None
    assert why(agents[0], agents[HOPS + 1]) == "chain_too_deep"
    assert why(agents[HOPS + 1], agents[0]) == "chain_too_deep"


def test_a_circle_of_superiors_ends(space: Workspace) -> None:
    settle(space, policy="hierarchy")
    first, second, other = (build.agent(space, name) for name in ("first", "second", "other"))
    Agent.objects.system().filter(pk=first.pk).update(reports_to=second)
    Agent.objects.system().filter(pk=second.pk).update(reports_to=first)
    assert why(first, second) is None
    assert why(first, other) == "no_hierarchy_relation"
    Agent.objects.system().filter(pk=other.pk).update(reports_to=other)
    assert why(other, first) == "no_hierarchy_relation"


@pytest.mark.parametrize("policy", ["department", "hierarchy"])
def test_a_pair_is_related_both_ways(space: Workspace, policy: str) -> None:
    lead, writer = build.agent(space, "lead", department="x"), build.agent(space, "writer", department="y")
    settle(space, policy=policy, allow=[["writer", "lead"]])
    assert why(lead, writer) is None
    assert why(writer, lead) is None


@pytest.mark.parametrize(
    ("mine", "theirs", "expected"),
    [
        ("research", "research", None),
        ("research", "Research", "different_department"),
        ("research", "research ", "different_department"),
        ("", "", "missing_department"),
        ("research", "", "missing_department"),
    ],
)
def test_departments_count_when_both_are_named_and_equal(
    space: Workspace, mine: str, theirs: str, expected: str | None
) -> None:
    assert why(build.agent(space, "lead", department=mine), build.agent(space, "writer", department=theirs)) == expected


def test_under_hierarchy_departments_do_not_count(space: Workspace) -> None:
    settle(space, policy="hierarchy")
    lead, writer = build.agent(space, "lead", department="x"), build.agent(space, "writer", department="x")
    assert why(lead, writer) == "no_hierarchy_relation"


@pytest.mark.parametrize("policy", ["anarchy", "", None, 1, ["open"]])
def test_an_unknown_policy_means_department(space: Workspace, policy: Any, caplog: pytest.LogCaptureFixture) -> None:
    settle(space, policy=policy)
    assert why(build.agent(space, "lead", department="x"), build.agent(space, "writer", department="x")) is None
    assert "unknown" in caplog.text


@pytest.mark.parametrize(
    "entry", [["lead"], ["lead", "lead"], ["lead", ""], ["lead", "writer", "x"], "lead,writer", ["lead", 1], None, {}]
)
def test_what_is_no_pair_is_dropped(entry: Any, caplog: pytest.LogCaptureFixture) -> None:
    rule = read_rule(json.dumps({"allow": [entry, ["analyst", "writer"]]}))
    assert rule.pairs == {frozenset({"analyst", "writer"})}
    assert "dropped" in caplog.text


@pytest.mark.parametrize("section", [[], "open", None, {"allow": "lead"}])
def test_a_malformed_section_means_the_default(section: Any) -> None:
    assert read_rule(json.dumps(section)) == read_rule(None) == Delegation("department", frozenset())


def test_a_change_counts_at_the_next_question(space: Workspace) -> None:
    lead, writer = build.agent(space, "lead", department="x"), build.agent(space, "writer", department="y")
    who = who_for_agent(lead)
    assert why_denied(space.id, who, writer) == "different_department"
    Agent.objects.system().filter(pk=lead.pk).update(department="y")
    assert why_denied(space.id, who, writer) is None


def test_one_query_decides(space: Workspace, django_assert_num_queries: DjangoAssertNumQueries) -> None:
    agents = chain(space, HOPS)
    with django_assert_num_queries(1):
        why(agents[0], agents[-1])


def test_an_operator_passes_every_record_check() -> None:
    people = build.company()
    check_record(people.who("operator"), None, what="T-1")
    check_record(people.who("operator"), people.stranger, what="T-1")


@pytest.mark.parametrize("name", sorted(SYSTEM_SENDERS))
def test_a_system_senders_name_owns_nothing(space: Workspace, name: str) -> None:
    agent = build.agent(space, name)
    with pytest.raises(Refused) as refusal:
        check_record(who_for_agent(agent), agent, what="T-1", parties=(agent.id,))
    assert refusal.value.reason == "system_sender_identity"


def test_a_client_is_no_caller_of_records() -> None:
    people = build.company()
    people.tokens["client"] = build.key(people.space, "external", client_id="owner", scopes_held=["issues:read"])[1]
    with pytest.raises(Refused) as refusal:
        check_record(people.who("client"), people.owner, what="T-1")
    assert refusal.value.reason == "caller_unknown"


def seen(agent: Agent) -> set[str]:
    return set(visible_agents(who_for_agent(agent)).values_list("name", flat=True))


def test_an_agent_sees_its_line_its_department_and_its_partners(space: Workspace) -> None:
    boss = build.agent(space, "boss")
    lead = build.agent(space, "lead", reports_to=boss, department="research")
    writer = build.agent(space, "writer", reports_to=lead)
    build.agent(space, "peer", reports_to=boss)
    build.agent(space, "mate", department="research")
    build.agent(space, "partner", department="sales")
    build.agent(build.workspace("other"), "foreign", department="research")
    settle(space, allow=[["partner", "lead"]])
    assert seen(lead) == {"boss", "lead", "writer", "mate", "partner"}
    assert seen(writer) == {"boss", "lead", "writer"}
    assert seen(boss) == {"boss", "lead", "writer", "peer"}
    settle(space, policy="hierarchy")
    assert seen(lead) == {"boss", "lead", "writer"}
    settle(space, policy="open")
    assert seen(lead) == {"boss", "lead", "writer", "peer", "mate", "partner"}
    Agent.objects.system().filter(pk=writer.pk).update(status="removed")
    assert "writer" not in seen(lead)


def test_people_see_all_and_clients_nobody() -> None:
    people = build.company()
    people.tokens["client"] = build.key(people.space, "external", scopes_held=["issues:read"])[1]
    assert visible_agents(people.who("operator")).count() == 3
    assert visible_agents(people.who("client")).count() == 0
