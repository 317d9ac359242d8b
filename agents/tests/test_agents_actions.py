"""Hiring, removing and restoring agents: names, places, the trash."""

from datetime import timedelta
from typing import Any

import pytest
from django.db import DatabaseError

from agents import principals
from agents.actions import agents, grants, policy
from agents.actions.presets import PRESETS
from agents.actions.system import platform
from agents.models import Agent, Approval, Grant, PolicyChange
from duduclaw.lib import clock
from mcp.errors import InvalidArguments, Refused
from tests.build import Company, company, workspace

pytestmark = pytest.mark.django_db


@pytest.fixture
def team() -> Company:
    return company()


def hire(team: Company, name: str = "writer", by: str = "operator", **over: Any) -> Agent:
    return agents.create_agent(by=team.who(by), name=name, **{"display_name": "Writer", **over})


def test_a_new_agent_has_every_switch_off_and_every_list_empty(team: Company) -> None:
    made = Agent.objects.system().get(pk=hire(team).pk)
    who = principals.who_for_agent(made)
    assert (who.switches, who.denied, who.allowed, who.scoped, who.refused_permissions) == (
        frozenset(), (), (), (), frozenset()
    )  # fmt: skip
    assert (made.status, made.version, made.reports_to) == ("active", 1, None)
    assert PolicyChange.objects.system().filter(ref=made.id, field="created").exists()


def test_all_that_is_asked_is_given(team: Company) -> None:
    made = hire(
        team, department="office", reports_to="owner", preset="worker", status="paused", role="typist",
        capabilities={"codrive": True}, permissions={"can_create_agents": False},
    )  # fmt: skip
    made = Agent.objects.system().get(pk=made.pk)
    assert (made.department, made.reports_to, made.status, made.role) == ("office", team.owner, "paused", "typist")
    assert made.capabilities.allowed_tools == list(PRESETS["worker"])
    assert (made.capabilities.codrive, made.permissions.can_create_agents) == (True, False)


BAD = [
    "", "Writer", "WRITER", "\u0430dmin", "\uff57riter", "writ\u200der", "\u202ewriter", "con", "com1", "nul",
    "writer.", "_trash", "__x", "writer ", " writer", "wri ter", "wri/ter", "..", "a" * 65, "writer\n", "caf\u00e9",
    "cafe\u0301", "dashboard", "webhook", "cron", "heartbeat", "autopilot", "goal-loop-driver", "a2a-client",
    "default", "doctor-probe", "standalone-codex", "\ufb01le", None, 5, ["writer"],
]  # fmt: skip


@pytest.mark.parametrize("name", BAD)
@pytest.mark.parametrize("by", ["operator", "owner"])
def test_T50_names_that_no_agent_gets(team: Company, name: Any, by: str) -> None:
    before = Agent.objects.system().count()
    with pytest.raises(InvalidArguments, match="name"):
        hire(team, name, by)
    assert Agent.objects.system().count() == before


def test_T50_twins_by_case_or_width_are_one(team: Company) -> None:
    Agent.objects.create(workspace=team.space, name="Writer", name_key="writer", display_name="old")
    with pytest.raises(Refused, match="name_taken"):
        hire(team, "writer")


def test_T50_neither_a_name_nor_an_id_twice(team: Company) -> None:
    for name in ("owner", team.owner.id):
        with pytest.raises(Refused, match="name_taken"):
            hire(team, name)
    assert agents.create_agent(by=platform(workspace("other")), name="owner", display_name="Owner")


def test_T50_a_removed_name_is_kept_from_mcp_and_free_for_people(team: Company) -> None:
    agents.remove_agent(hire(team), by=team.who("operator"))
    for by in ("operator", "owner"):
        with pytest.raises(Refused) as caught:
            hire(team, by=by)
        assert (caught.value.code, caught.value.reason) == ("agent_name_reserved", "removed_to_trash")
    assert hire(team, "writer-2", by="owner").name == "writer-2"
    assert hire(team, reuse=True).name == "writer"
    assert Agent.objects.system().filter(name="writer").count() == 2


def test_T50_a_name_that_only_the_organisation_knows_is_kept(team: Company) -> None:
    row = hire(team)
    Agent.objects.system().filter(pk=row.pk).delete()
    with pytest.raises(Refused) as caught:
        hire(team, by="owner")
    assert caught.value.reason == "dangling_org_record"
    team.space.settings.delegation = {"allow": [["ghost", "owner"], 5]}
    team.space.settings.save()
    with pytest.raises(Refused) as caught:
        hire(team, "ghost", by="owner")
    assert caught.value.reason == "dangling_org_record"


def test_T50_a_trash_that_cannot_be_read_reserves_all(team: Company, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(by: Any, name: str) -> str:
        raise DatabaseError("gone")

    monkeypatch.setattr(agents, "reservation", broken)
    with pytest.raises(Refused) as caught:
        hire(team, by="owner")
    assert caught.value.reason == "trash_unlistable"


def test_an_agents_hire_is_placed_below_it_and_starts_with_less(team: Company) -> None:
    made = hire(team, by="owner")
    assert (made.reports_to, made.permissions.can_create_agents, made.permissions.can_schedule_tasks) == (
        team.owner, False, False
    )  # fmt: skip
    assert hire(team, "second", by="owner", reports_to="writer").reports_to == made
    with pytest.raises(Refused, match="org_placement_denied"):
        hire(team, "third", by="owner", reports_to="stranger")
    with pytest.raises(Refused, match="insufficient_role"):
        hire(team, "third", by="owner", capabilities={"codrive": True})


def test_faults_name_their_field_and_leave_nothing(team: Company) -> None:
    faults: list[dict[str, Any]] = [
        {"display_name": " "},
        {"department": 5},
        {"preset": "king"},
        {"capabilities": {"x": 1}},
        {"permissions": {"can_create_agents": 0}},
        {"reports_to": "nobody"},
        {"status": "removed"},
    ]
    for over in faults:
        with pytest.raises(InvalidArguments):
            hire(team, **over)
    assert not Agent.objects.system().filter(name="writer").exists()


def test_removing_ends_keys_grants_and_questions(team: Company) -> None:
    by, now = team.who("operator"), clock.now()
    grants.mint(team.owner, "fork_run", source=Grant.Source.OPERATOR, by=by)
    asked = Approval.objects.create(
        workspace=team.space, agent=team.owner, kind="mcp_call", tool="x", call_tool="x", arguments="{}",
        digest="0" * 64, requested_by="owner", requested_at=now, expires_at=now + timedelta(minutes=5),
    )  # fmt: skip
    agents.remove_agent(team.owner, by=by)
    asked.refresh_from_db()
    assert (asked.status, asked.void_reason) == ("void", "agent_removed")
    assert not Grant.objects.system().active(clock.now()).exists()
    with pytest.raises(principals.BadKey, match="agent_gone"):
        team.who("owner")
    with pytest.raises(Refused, match="not_found"):
        agents.remove_agent(team.owner, by=by)


def test_a_restored_agent_is_what_it_was(team: Company) -> None:
    by = team.who("operator")
    policy.update_agent(team.owner, by=by, changes={"status": "paused"})
    agents.remove_agent(team.owner, by=by)
    assert agents.restore_agent(team.owner, by=by).status == "paused"
    assert team.who("owner").status == "paused"
    with pytest.raises(Refused, match="not_found"):
        agents.restore_agent(team.owner, by=by)


def test_a_name_with_a_new_owner_is_not_restored(team: Company) -> None:
    by, old = team.who("operator"), hire(team)
    agents.remove_agent(old, by=by)
    hire(team, reuse=True)
    with pytest.raises(Refused, match="name_taken"):
        agents.restore_agent(old, by=by)


@pytest.mark.parametrize("name", ["owner", "colleague", "stranger"])
def test_agents_neither_remove_nor_restore(team: Company, name: str) -> None:
    for verb in (agents.remove_agent, agents.restore_agent):
        with pytest.raises(Refused, match="insufficient_role"):
            verb(team.colleague, by=team.who(name))


def test_another_workspace_removes_nobody(team: Company) -> None:
    with pytest.raises(Refused, match="not_found"):
        agents.remove_agent(team.owner, by=platform(workspace("other")))
