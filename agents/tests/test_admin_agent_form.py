"""The agent's and the settings' forms: they call the actions, refuse outer blanks, and never overwrite newer state."""

from typing import Any

import pytest

from agents.actions import policy
from agents.actions.system import platform
from agents.models import Agent, Capabilities, Permissions, PlatformSettings, PolicyChange
from agents.tests.admin_house import House, house

pytestmark = [pytest.mark.django_db, pytest.mark.engines]


@pytest.fixture(name="home_of")
def build_house() -> House:
    return house()


def address(agent: Agent) -> str:
    return f"/admin/agents/agent/{agent.pk}/change/"


def fields_of(client: Any, where: str) -> dict[str, Any]:
    """What a browser would send back unchanged."""
    form = client.get(where).context["adminform"].form
    sent: dict[str, Any] = {}
    for name in form.fields:
        shown = form[name].value()
        if shown is True:
            sent[name] = "on"
        elif shown not in (None, False):
            sent[name] = shown
    return sent


def test_a_change_goes_through_the_action(home_of: House) -> None:
    client, agent = home_of.client("operator"), home_of.acme.owner
    sent = fields_of(client, address(agent))
    sent |= {"denied_tools": "mail_send\r\nweb_*", "codrive": "on", "can_create_agents": "false", "role": "typist"}
    assert client.post(address(agent), sent).status_code == 302
    agent = Agent.objects.system().get(pk=agent.pk)
    assert agent.capabilities.denied_tools == ["mail_send", "web_*"]
    assert (agent.capabilities.codrive, agent.permissions.can_create_agents, agent.role) == (True, False, "typist")
    assert agent.version == 2
    history = PolicyChange.objects.system().filter(ref=agent.pk)
    assert set(history.values_list("field", flat=True)) == {"denied_tools", "codrive", "can_create_agents", "role"}
    assert set(history.values_list("changed_by", flat=True)) == {"operator"}


def test_an_unchanged_form_writes_nothing(home_of: House) -> None:
    client, agent = home_of.client("operator"), home_of.acme.owner
    policy.update_agent(
        agent,
        by=platform(home_of.acme.space),
        changes={
            "capabilities": {"denied_tools": ["a", "b"], "computer_use_config": {"max_actions": 3}},
            "permissions": {"can_create_agents": True},
        },
    )
    before = PolicyChange.objects.system().count()
    assert client.post(address(agent), fields_of(client, address(agent))).status_code == 302
    agent.refresh_from_db()
    assert (agent.version, PolicyChange.objects.system().count()) == (2, before)


def test_a_stale_form_overwrites_nothing_and_says_what_changed(home_of: House) -> None:
    client, agent = home_of.client("operator"), home_of.acme.owner
    sent = fields_of(client, address(agent))
    policy.update_agent(
        agent, by=platform(home_of.acme.space), changes={"capabilities": {"denied_tools": ["mail_send"]}}
    )
    page = client.post(address(agent), {**sent, "codrive": "on"})
    assert page.status_code == 200
    text = page.content.decode()
    assert "was changed meanwhile" in text
    assert "denied_tools: [] → [&#x27;mail_send&#x27;] (platform)" in text
    assert "reload the page" in text
    capabilities = Capabilities.objects.get(agent=agent)
    assert (capabilities.codrive, capabilities.denied_tools) == (False, ["mail_send"])
    again = client.post(address(agent), {**sent, "codrive": "on", "opened_at": "nonsense"})
    assert again.status_code == 200
    assert not Capabilities.objects.get(agent=agent).codrive


def test_a_form_without_its_version_is_stale(home_of: House) -> None:
    client, agent = home_of.client("operator"), home_of.acme.owner
    sent = {**fields_of(client, address(agent)), "codrive": "on"}
    del sent["seen_version"]
    assert client.post(address(agent), sent).status_code == 200
    assert not Capabilities.objects.get(agent=agent).codrive


@pytest.mark.parametrize("entry", [" mail_send", "mail_send ", "ok\n mail_send", "\tmail_send", "mail_send\u3000"])
def test_outer_blanks_are_refused(home_of: House, entry: str) -> None:
    client, agent = home_of.client("operator"), home_of.acme.owner
    page = client.post(address(agent), {**fields_of(client, address(agent)), "denied_tools": entry})
    assert b"has a blank at its beginning or end" in page.content
    assert Capabilities.objects.get(agent=agent).denied_tools == []


def test_what_was_stored_with_a_blank_does_not_block_the_form(home_of: House) -> None:
    client, agent = home_of.client("operator"), home_of.acme.owner
    Capabilities.objects.filter(agent=agent).update(denied_tools=[" odd"])
    sent = {**fields_of(client, address(agent)), "codrive": "on"}
    assert client.post(address(agent), sent).status_code == 302
    stored = Capabilities.objects.get(agent=agent)
    assert (stored.codrive, stored.denied_tools) == (True, [" odd"])


def test_an_entry_that_names_no_tool_is_stored_with_a_warning(home_of: House) -> None:
    client, agent = home_of.client("operator"), home_of.acme.owner
    sent = {**fields_of(client, address(agent)), "denied_tools": "no_such_tool"}
    page = client.post(address(agent), sent, follow=True)
    assert b"names no tool" in page.content
    assert Capabilities.objects.get(agent=agent).denied_tools == ["no_such_tool"]


def test_a_malformed_flag_is_shown_and_stays_until_it_is_set(home_of: House) -> None:
    client, agent = home_of.client("operator"), home_of.acme.owner
    Permissions.objects.filter(agent=agent).update(can_create_agents="yes")
    sent = {**fields_of(client, address(agent)), "codrive": "on"}
    assert sent["can_create_agents"] == "malformed"
    page = client.post(address(agent), sent)
    assert page.status_code == 302, page.context["errors"]
    assert Permissions.objects.get(agent=agent).can_create_agents == "yes"
    sent = {**fields_of(client, address(agent)), "can_create_agents": "false"}
    assert client.post(address(agent), sent).status_code == 302
    assert Permissions.objects.get(agent=agent).can_create_agents is False


@pytest.mark.parametrize(
    ("over", "says"),
    [
        ({"display_name": ""}, "This field is required"),
        ({"grant_ttl_secs": "many"}, "Enter a whole number"),
        ({"computer_use_config": "{"}, "valid JSON"),
        ({"computer_use_config": '{"nonsense": 1}'}, "unknown field"),
        ({"computer_use_mode": "other"}, "valid choice"),
        ({"preset": "other"}, "valid choice"),
    ],
)
def test_a_faulty_field_is_named_and_nothing_is_written(home_of: House, over: dict[str, str], says: str) -> None:
    client, agent = home_of.client("operator"), home_of.acme.owner
    page = client.post(address(agent), {**fields_of(client, address(agent)), "codrive": "on", **over})
    assert page.status_code == 200
    assert says in page.content.decode()
    assert not Capabilities.objects.get(agent=agent).codrive


def test_a_superior_is_chosen_and_a_circle_refused(home_of: House) -> None:
    client, team = home_of.client("operator"), home_of.acme
    sent = {**fields_of(client, address(team.owner)), "reports_to": team.colleague.pk}
    assert client.post(address(team.owner), sent).status_code == 302
    team.owner.refresh_from_db()
    assert team.owner.reports_to_id == team.colleague.pk
    sent = {**fields_of(client, address(team.colleague)), "reports_to": team.owner.pk}
    assert b"circle" in client.post(address(team.colleague), sent).content


def test_a_state_field_in_the_form_changes_nothing(home_of: House) -> None:
    client, agent = home_of.client("operator"), home_of.acme.owner
    sent = {**fields_of(client, address(agent)), "status": "removed", "name": "other", "version": "9", "name_key": "x"}
    assert client.post(address(agent), sent).status_code == 302
    agent.refresh_from_db()
    assert (agent.status, agent.name, agent.version, agent.name_key) == ("active", "owner", 1, "owner")


def test_a_new_agent(home_of: House) -> None:
    client = home_of.client("operator")
    sent = {**fields_of(client, "/admin/agents/agent/add/"), "name": "writer", "display_name": "Writer"}
    assert client.post("/admin/agents/agent/add/", {**sent, "scoped_tools": "web_fetch"}).status_code == 302
    made = Agent.objects.system().get(name="writer")
    assert made.capabilities.scoped_tools == ["web_fetch"]
    assert (made.workspace_id, made.capabilities.codrive) == (home_of.acme.space.pk, False)
    for name, says in (("writer", b"already"), ("Big", b"name"), ("con", b"name"), ("", b"required")):
        assert says in client.post("/admin/agents/agent/add/", {**sent, "name": name}).content


@pytest.mark.parametrize(
    "name",
    ["\u0430dmin", "\uff57riter", "writ\u200der", "\u202ewriter", "con", "writer.", "_trash", "OWNER", "owner",
     "a" * 65, "writ er", "../x", "wri\u0301ter", "\ufb01le", "dashboard", "writer\x00"],
)  # fmt: skip
def test_T50_admin_a_name_that_no_agent_may_have(home_of: House, name: str) -> None:
    client, before = home_of.client("operator"), Agent.objects.system().count()
    sent = {**fields_of(client, "/admin/agents/agent/add/"), "name": name, "display_name": "Writer"}
    page = client.post("/admin/agents/agent/add/", sent)
    assert page.status_code == 200
    assert page.context["errors"]
    assert Agent.objects.system().count() == before


def test_a_person_may_reuse_the_name_of_a_removed_agent(home_of: House) -> None:
    client = home_of.client("operator")
    client.post(
        "/admin/agents/agent/", {"action": "remove", "_selected_action": [home_of.acme.owner.pk], "confirmed": "yes"}
    )
    sent = {**fields_of(client, "/admin/agents/agent/add/"), "name": "owner", "display_name": "Second"}
    assert client.post("/admin/agents/agent/add/", sent).status_code == 302
    assert Agent.objects.system().filter(workspace=home_of.acme.space, name="owner").count() == 2


def test_viewer_reads_what_the_form_would_show(home_of: House) -> None:
    agent = home_of.acme.owner
    Capabilities.objects.filter(agent=agent).update(denied_tools=["mail_send"])
    page = home_of.client("viewer").get(address(agent)).content.decode()
    assert "mail_send" in page
    assert "<textarea" not in page
    assert home_of.client("viewer").post(address(agent), {"display_name": "x"}).status_code == 403


def settings_page(home_of: House) -> str:
    return f"/admin/agents/platformsettings/{home_of.acme.space.pk}/change/"


def test_settings_change_merge_and_are_the_admins(home_of: House) -> None:
    client, where = home_of.client("admin"), settings_page(home_of)
    sent = {
        **fields_of(client, where),
        "google_workspace": "on",
        "delegation_policy": "hierarchy",
        "delegation_allow": "owner stranger",
        "memory": '{"working_state_handoff_max_bytes": 2048}',
    }
    page = client.post(where, sent)
    assert page.status_code == 302, page.context["errors"]
    stored = PlatformSettings.objects.system().get(workspace=home_of.acme.space)
    assert stored.integrations == {"google_workspace": True}
    assert stored.delegation == {"policy": "hierarchy", "allow": [["owner", "stranger"]]}
    assert stored.memory == {"working_state_handoff_max_bytes": 2048}
    assert home_of.client("manager").post(where, sent).status_code == 403


def test_stale_settings_overwrite_nothing(home_of: House) -> None:
    client, where = home_of.client("admin"), settings_page(home_of)
    sent = fields_of(client, where)
    policy.update_settings(by=platform(home_of.acme.space), changes={"integrations": {"github": True}})
    page = client.post(where, {**sent, "google_workspace": "on"})
    assert "integrations.github" in page.content.decode()
    stored = PlatformSettings.objects.system().get(workspace=home_of.acme.space)
    assert stored.integrations == {"github": True}


@pytest.mark.parametrize(
    ("over", "says"),
    [
        ({"delegation_allow": "owner"}, "every entry must be a pair"),
        ({"delegation_allow": "owner nobody"}, "no such agent"),
        ({"memory": "[1]"}, "must be an object"),
        ({"memory": '{"nonsense": 1}'}, "unknown field"),
        ({"rate": "{"}, "valid JSON"),
    ],
)
def test_a_faulty_setting_is_named(home_of: House, over: dict[str, str], says: str) -> None:
    client, where = home_of.client("admin"), settings_page(home_of)
    page = client.post(where, {**fields_of(client, where), **over})
    assert page.status_code == 200
    assert says in page.content.decode()
    assert PlatformSettings.objects.system().get(workspace=home_of.acme.space).version == 1


def test_history_is_the_policy_history(home_of: House) -> None:
    client, agent = home_of.client("operator"), home_of.acme.owner
    client.post(address(agent), {**fields_of(client, address(agent)), "denied_tools": "mail_send"})
    page = client.get(f"/admin/agents/agent/{agent.pk}/history/").content.decode()
    assert "denied_tools" in page
    assert "mail_send" in page
    assert "operator" in page
