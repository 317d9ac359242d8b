"""Stopping and releasing: who may stop what, and that it takes effect with the next call."""

import pytest

from agents.actions import fleet, policy
from agents.actions.system import platform
from agents.models import FleetStop, PolicyChange, Role
from mcp import policy as kernel
from mcp import registry
from mcp.errors import InvalidArguments, Refused
from tests.build import Company, agent, company, key, workspace

pytestmark = pytest.mark.django_db


@pytest.fixture
def team() -> Company:
    return company()


def stopped(team: Company) -> set[str]:
    """Who of the three is refused by G1 now."""
    tool = registry.every()[0]
    return {
        name
        for name in ("owner", "colleague", "stranger")
        if (refusal := kernel.closed(tool, team.who(name))) and refusal.gate == "G1"
    }


def test_all_a_department_an_agent(team: Company) -> None:
    by = team.who("operator")
    assert fleet.stop(by=by, scope="all", reason="drill")["stopped"] == 3
    assert stopped(team) == {"owner", "colleague", "stranger"}
    assert fleet.release(by=by, scope="all")["stopped"] == 0
    assert fleet.stop(by=by, scope="research", reason="drill")["stopped"] == 2
    assert stopped(team) == {"owner", "colleague"}
    fleet.release(by=by, scope="research")
    answer = fleet.stop(by=by, scope="stranger", reason="drill")
    assert (answer["stopped"], answer["still_moving"], stopped(team)) == (1, [], {"stranger"})
    assert 0 <= answer["seconds"] < 60


def test_a_release_ends_exactly_its_own_stop(team: Company) -> None:
    by = team.who("operator")
    for scope in ("all", "research", "owner"):
        fleet.stop(by=by, scope=scope, reason="drill")
    assert fleet.release(by=by, scope="all")["stopped"] == 2
    assert stopped(team) == {"owner", "colleague"}
    assert fleet.release(by=by, scope="research")["stopped"] == 1
    assert stopped(team) == {"owner"}
    with pytest.raises(Refused, match="not_stopped"):
        fleet.release(by=by, scope="research")


def test_stopping_twice_is_one_stop(team: Company) -> None:
    by = team.who("operator")
    for _ in range(2):
        assert fleet.stop(by=by, scope="all", reason="drill")["stopped"] == 3
    assert FleetStop.objects.system().count() == 1
    assert PolicyChange.objects.system().filter(subject="stop").count() == 1


def test_a_name_of_both_stops_both_and_a_kind_tells_them_apart(team: Company) -> None:
    by = team.who("operator")
    agent(team.space, "research", department="office")
    assert fleet.stop(by=by, scope="research", reason="drill")["stopped"] == 3
    assert fleet.release(by=by, scope="agent:research")["stopped"] == 0
    assert stopped(team) == {"owner", "colleague"}
    fleet.release(by=by, scope="department:research")
    assert stopped(team) == set()


def test_an_agent_stops_itself_and_those_below(team: Company) -> None:
    policy.update_agent(team.colleague, by=team.who("operator"), changes={"reports_to": "owner"})
    policy.update_agent(team.stranger, by=team.who("operator"), changes={"reports_to": "colleague"})
    fleet.stop(by=team.who("owner"), scope="stranger", reason="loops")
    fleet.stop(by=team.who("owner"), scope="owner", reason="loops")
    assert stopped(team) == {"owner", "stranger"}


@pytest.mark.parametrize("scope", ["all", "colleague", "stranger", "research", "nobody", "department:research", ""])
def test_an_agent_stops_nobody_else(team: Company, scope: str) -> None:
    with pytest.raises(Refused) as caught:
        fleet.stop(by=team.who("owner"), scope=scope, reason="loops")
    assert caught.value.code == "delegation_denied"
    assert not FleetStop.objects.system().exists()


def test_foreign_and_absent_names_read_alike(team: Company) -> None:
    agent(workspace("other"), "elsewhere")
    texts = set()
    for name in ("elsewhere", "nowhere", "stranger"):
        with pytest.raises(Refused) as caught:
            fleet.stop(by=team.who("owner"), scope=name, reason="loops")
        texts.add(str(caught.value))
    assert len(texts) == 1
    with pytest.raises(Refused, match="not_found"):
        fleet.stop(by=team.who("operator"), scope="elsewhere", reason="loops")


def test_only_people_release(team: Company) -> None:
    fleet.stop(by=team.who("owner"), scope="owner", reason="loops")
    viewer = key(team.space, "operator", role=Role.VIEWER, client_id="viewer")[1]
    team.tokens["viewer"] = viewer
    for name in ("owner", "viewer"):
        with pytest.raises(Refused, match="insufficient_role"):
            fleet.release(by=team.who(name), scope="owner")
    with pytest.raises(Refused, match="insufficient_role"):
        fleet.stop(by=team.who("viewer"), scope="all", reason="no")


@pytest.mark.parametrize("reason", ["", "  ", "x" * 501])
def test_a_stop_says_why(team: Company, reason: str) -> None:
    with pytest.raises(InvalidArguments, match="reason"):
        fleet.stop(by=team.who("operator"), scope="all", reason=reason)


def test_stops_end_at_the_workspace(team: Company) -> None:
    other = workspace("other")
    agent(other, "lead")
    fleet.stop(by=platform(other), scope="all", reason="drill")
    assert stopped(team) == set()
    with pytest.raises(Refused, match="not_stopped"):
        fleet.release(by=team.who("operator"), scope="all")
