"""Changes of policy: merged per key, whole lists, named faults, versions, history, and what a denial voids."""

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User

from agents.actions import policy, shapes
from agents.actions.presets import LARGEST, PRESETS
from agents.actions.system import platform
from agents.models import Approval, Membership, PolicyChange, Role
from duduclaw.lib import clock
from mcp import registry
from mcp.errors import InvalidArguments, Refused
from tests.build import Company, agent, company, key, workspace

pytestmark = pytest.mark.django_db


@pytest.fixture
def team() -> Company:
    return company()


def update(team: Company, **changes: Any) -> Any:
    return policy.update_agent(team.owner, by=team.who("operator"), changes=changes)


def test_capabilities_merge_per_key_and_lists_are_whole(team: Company) -> None:
    update(team, capabilities={"denied_tools": ["a", "b"], "codrive": True})
    row = update(team, capabilities={"denied_tools": ["c"]}, permissions={"can_create_agents": False})
    row.refresh_from_db()
    assert (row.capabilities.denied_tools, row.capabilities.codrive) == (["c"], True)
    assert row.permissions.can_create_agents is False
    assert row.permissions.can_schedule_tasks is None


def test_nested_objects_merge(team: Company) -> None:
    update(team, capabilities={"computer_use_config": {"max_actions": 5, "allowed_apps": ["editor"]}})
    row = update(team, capabilities={"computer_use_config": {"max_actions": 6}})
    assert row.capabilities.computer_use_config == {"max_actions": 6, "allowed_apps": ["editor"]}


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"colour": 1}, "colour"),
        ({"capabilities": {"fork ": True}}, "capabilities.fork "),
        ({"capabilities": []}, "capabilities"),
        ({"capabilities": {"fork": 1}}, "capabilities.fork"),
        ({"capabilities": {"fork": "true"}}, "capabilities.fork"),
        ({"capabilities": {"fork": None}}, "capabilities.fork"),
        ({"capabilities": {"denied_tools": "x"}}, "capabilities.denied_tools"),
        ({"capabilities": {"denied_tools": [1]}}, "capabilities.denied_tools"),
        ({"capabilities": {"denied_tools": [" x"]}}, "capabilities.denied_tools"),
        ({"capabilities": {"denied_tools": ["x\n"]}}, "capabilities.denied_tools"),
        ({"capabilities": {"denied_tools": [""]}}, "capabilities.denied_tools"),
        ({"capabilities": {"denied_tools": ["x" * 201]}}, "capabilities.denied_tools"),
        ({"capabilities": {"denied_tools": ["x"] * 501}}, "capabilities.denied_tools"),
        ({"capabilities": {"grant_ttl_secs": True}}, "capabilities.grant_ttl_secs"),
        ({"capabilities": {"grant_ttl_secs": 1.5}}, "capabilities.grant_ttl_secs"),
        ({"capabilities": {"computer_use_config": {"speed": 1}}}, "capabilities.computer_use_config.speed"),
        ({"permissions": {"can_create_agents": 1}}, "permissions.can_create_agents"),
        ({"permissions": {"can_fly": True}}, "permissions.can_fly"),
        ({"status": "removed"}, "status"),
        ({"display_name": ""}, "display_name"),
        ({"display_name": "a\nb"}, "display_name"),
        ({"department": "x "}, "department"),
        ({"reports_to": "owner"}, "reports_to"),
        ({"reports_to": "nobody"}, "reports_to"),
        ({"reports_to": 5}, "reports_to"),
        ({"preset": "king"}, "preset"),
    ],
)
def test_faults_name_their_field_and_change_nothing(team: Company, changes: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidArguments) as caught:
        update(team, display_name="Changed", **changes) if "display_name" not in changes else update(team, **changes)
    assert (caught.value.parameter, field in caught.value.message) == (field, True)
    team.owner.refresh_from_db()
    assert (team.owner.version, team.owner.display_name) == (1, "Owner")
    assert not PolicyChange.objects.system().filter(subject="agent").exists()


@pytest.mark.parametrize("seconds", [0, -5, 60])
def test_any_whole_number_of_seconds_is_taken(team: Company, seconds: int) -> None:
    assert update(team, capabilities={"grant_ttl_secs": seconds}).capabilities.grant_ttl_secs == seconds


def test_an_entry_that_stands_already_may_stay(team: Company) -> None:
    team.owner.capabilities.denied_tools = [" old "]
    team.owner.capabilities.save()
    row = update(team, capabilities={"denied_tools": [" old ", "new"]})
    assert row.capabilities.denied_tools == [" old ", "new"]


def test_entries_that_name_no_tool_are_kept_with_a_warning(team: Company) -> None:
    name = registry.every()[0].name
    row = update(team, capabilities={"denied_tools": [name, "no_such_tool", "mcp__other__x", "*"]})
    assert shapes.warnings(row) == [
        "denied_tools: 'no_such_tool' names no tool",
        "denied_tools: 'mcp__other__x' names no tool",
    ]


def test_another_version_is_stale(team: Company) -> None:
    by = team.who("operator")
    assert policy.update_agent(team.owner, by=by, changes={"role": "a"}, version=1).version == 2
    with pytest.raises(Refused) as caught:
        policy.update_agent(team.owner, by=by, changes={"role": "b"}, version=1)
    assert (caught.value.code, caught.value.extra) == ("stale", {"version": 2})
    with pytest.raises(InvalidArguments):
        policy.update_agent(team.owner, by=by, changes={"role": "b"}, version="2")  # type: ignore[arg-type]


def test_what_is_the_same_is_no_change(team: Company) -> None:
    row = update(team, display_name="Owner", capabilities={"fork": False}, reports_to=None)
    assert row.version == 1
    assert not PolicyChange.objects.system().filter(subject="agent").exists()


def test_true_and_one_differ(team: Company) -> None:
    team.owner.permissions.can_create_agents = 1
    team.owner.permissions.save()
    assert update(team, permissions={"can_create_agents": True}).version == 2


def test_history_says_who_what_from_and_to(team: Company) -> None:
    update(team, department="sales", capabilities={"codrive": True}, reports_to="stranger")
    lines = PolicyChange.objects.system().filter(ref=team.owner.id)
    assert {(line.field, line.before, line.after, line.changed_by) for line in lines} == {
        ("department", "research", "sales", "operator"),
        ("codrive", False, True, "operator"),
        ("reports_to", None, "stranger", "operator"),
    }


def test_no_circles(team: Company) -> None:
    by = team.who("operator")
    policy.update_agent(team.owner, by=by, changes={"reports_to": "colleague"})
    policy.update_agent(team.colleague, by=by, changes={"reports_to": "stranger"})
    with pytest.raises(InvalidArguments, match="circle"):
        policy.update_agent(team.stranger, by=by, changes={"reports_to": "owner"})
    for root in ("", "none", None):
        assert policy.update_agent(team.owner, by=by, changes={"reports_to": root}).reports_to is None


def test_a_preset_brings_its_list_unless_one_is_given(team: Company) -> None:
    assert update(team, preset="worker").capabilities.allowed_tools == list(PRESETS["worker"])
    own = update(team, preset="lead", capabilities={"allowed_tools": ["tasks_list"]})
    assert own.capabilities.allowed_tools == ["tasks_list"]
    assert update(team, preset="lead").capabilities.allowed_tools == ["tasks_list"]


def test_presets_are_small_and_name_tools_that_exist() -> None:
    known = {tool.name for tool in registry.every()}
    for name, tools in PRESETS.items():
        assert len(tools) == len(set(tools)) <= LARGEST, name
        assert set(tools) <= known, name


@pytest.mark.parametrize("name", ["owner", "colleague", "stranger"])
def test_agents_change_nothing(team: Company, name: str) -> None:
    with pytest.raises(Refused, match="insufficient_role"):
        policy.update_agent(team.owner, by=team.who(name), changes={"role": "x"})
    with pytest.raises(Refused, match="insufficient_role"):
        policy.update_settings(by=team.who(name), changes={"integrations": {"github": True}})


def test_another_workspace_sees_no_agent(team: Company) -> None:
    with pytest.raises(Refused, match="not_found"):
        policy.update_agent(team.owner, by=platform(workspace("other")), changes={"role": "x"})


def pending(team: Company, tool: str) -> Approval:
    now = clock.now()
    return Approval.objects.create(
        workspace=team.space, agent=team.owner, kind="capability_grant", tool=tool, call_tool="capability_request",
        arguments="{}", digest="0" * 64, requested_by="owner", requested_at=now, expires_at=now + timedelta(minutes=5),
    )  # fmt: skip


def test_a_denial_voids_what_is_being_asked(team: Company) -> None:
    gone, stays = pending(team, "fork_run"), pending(team, "codrive_run")
    update(team, capabilities={"denied_tools": ["fork_*"]})
    gone.refresh_from_db()
    stays.refresh_from_db()
    assert (gone.status, gone.void_reason, stays.status) == ("void", "policy_changed", "pending")


def test_settings_merge_and_are_counted(team: Company) -> None:
    by = team.who("operator")
    policy.update_settings(by=by, changes={"integrations": {"github": True}})
    row = policy.update_settings(
        by=by,
        changes={"integrations": {"google_workspace": True}, "container": {"sandbox": {"image": "x:1"}}},
        version=2,
    )
    assert row.integrations == {"github": True, "google_workspace": True}
    assert (row.container, row.version) == ({"sandbox": {"image": "x:1"}}, 3)
    line = PolicyChange.objects.system().get(field="integrations.google_workspace")
    assert (line.subject, line.before, line.after) == ("settings", None, True)
    with pytest.raises(Refused, match="stale"):
        policy.update_settings(by=by, changes={"odoo": {"features_hr": True}}, version=2)


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"chat": {}}, "chat"),
        ({"integrations": {"gitlab": True}}, "integrations.gitlab"),
        ({"integrations": None}, "integrations"),
        ({"integrations": {"github": "yes"}}, "integrations.github"),
        ({"responsibilities": {"enabled": 0}}, "responsibilities.enabled"),
        ({"delegation": {"policy": "anarchy"}}, "delegation.policy"),
        ({"delegation": {"allow": {}}}, "delegation.allow"),
        ({"delegation": {"allow": [["owner", "nobody"]]}}, "delegation.allow"),
        ({"delegation": {"allow": [["owner", "owner"]]}}, "delegation.allow"),
        ({"delegation": {"allow": [["owner"]]}}, "delegation.allow"),
        ({"delegation": {"allow": [["owner", "colleague"]] * 201}}, "delegation.allow"),
        ({"container": {"sandbox": {"privileged": True}}}, "container.sandbox.privileged"),
        ({"container": {"sandbox": {"script_when_unavailable": "shrug"}}}, "container.sandbox.script_when_unavailable"),
        ({"odoo": {"features_hr": 1}}, "odoo.features_hr"),
        ({"memory": {"working_state_handoff_max_bytes": 0}}, "memory.working_state_handoff_max_bytes"),
        ({"rate": {"external": {"read": -1}}}, "rate.external.read"),
        ({"rate": {"keys": {"write": 1.0}}}, "rate.keys.write"),
    ],
)
def test_settings_faults_name_their_field(team: Company, changes: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidArguments) as caught:
        policy.update_settings(by=team.who("operator"), changes=changes)
    assert (caught.value.parameter, field in caught.value.message) == (field, True)
    assert not PolicyChange.objects.system().filter(subject="settings").exists()


def test_pairs_of_known_agents_are_kept(team: Company) -> None:
    row = policy.update_settings(by=team.who("operator"), changes={"delegation": {"allow": [["owner", "stranger"]]}})
    assert row.delegation == {"allow": [["owner", "stranger"]]}


def test_settings_need_the_role_admin(team: Company) -> None:
    for role in (Role.VIEWER, Role.OPERATOR, Role.MANAGER):
        team.tokens["clerk"] = key(team.space, "operator", role=role, client_id=role)[1]
        with pytest.raises(Refused, match="insufficient_role"):
            policy.update_settings(by=team.who("clerk"), changes={"integrations": {"github": True}})


def test_roles_of_people_change_and_the_last_admin_stays(team: Company) -> None:
    by = team.who("operator")
    first, second = (User.objects.create_user(name, password="a long password") for name in ("owner", "colleague"))
    policy.set_role(first, by=by, role="admin")
    with pytest.raises(Refused, match="last_admin"):
        policy.set_role(first, by=by, role="viewer")
    policy.set_role(second, by=by, role="admin")
    assert policy.set_role(first, by=by, role="viewer").role == "viewer"  # type: ignore[union-attr]
    assert policy.set_role(first, by=by, role="") is None
    assert Membership.objects.system().count() == 1
    assert PolicyChange.objects.system().filter(subject="membership").count() == 4


def test_a_removed_agent_is_changed_no_more(team: Company) -> None:
    extra = agent(team.space, "temporary")
    extra.status = "removed"
    extra.save()
    with pytest.raises(Refused, match="not_found"):
        policy.update_agent(extra, by=team.who("operator"), changes={"role": "x"})
