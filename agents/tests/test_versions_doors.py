"""A deciding column that the admin or REST edits moves its number by that door too."""

from typing import Any

import pytest

from agents.actions import shapes
from agents.admin.agent import AgentAdmin
from agents.admin.agent_form import AgentForm
from agents.models import Capabilities, Role
from agents.tests.admin_house import person, signed_in
from agents.tests.deciding import Pair, Scene, another, deciding_pairs, expected, moved, numbers, scene
from duduclaw.api.tests.house import bearer
from tests.build import key

pytestmark = [pytest.mark.django_db, pytest.mark.engines]
AGENT = ("agents_agent", "agents_capabilities", "agents_permissions")
# Admin actions that change one column: the action and its answers.
ACTIONS: dict[Pair, tuple[str, dict[str, str]]] = {
    ("agents_agent", "status"): ("pause", {}),
    ("agents_key", "revoked_at"): ("revoke", {"confirmed": "yes"}),
    ("agents_grant", "revoked_at"): ("revoke", {"confirmed": "yes"}),
    ("agents_fleetstop", "released_at"): ("release", {"confirmed": "yes"}),
    ("agents_membership", "role"): ("make_operator", {}),
}
# What the settings' page sends for a section.
SECTIONS = {
    "integrations": {"github": "on"},
    "responsibilities": {"responsibilities_enabled": "on"},
    "rate": {"rate": '{"keys": {"read": 1}}'},
}
PATCHES: dict[str, dict[str, Any]] = {
    "integrations": {"github": True},
    "responsibilities": {"enabled": True},
    "rate": {"keys": {"read": 1}},
}
# Addresses of REST that change one column.
VERBS: dict[Pair, tuple[str, str, dict[str, Any]]] = {
    ("agents_key", "revoked_at"): ("delete", "/api/v1/keys/{pk}/", {}),
    ("agents_grant", "revoked_at"): ("post", "/api/v1/grants/{pk}/revoke/", {}),
    ("agents_fleetstop", "released_at"): ("post", "/api/v1/fleet/release/", {"scope": "agent:owner"}),
}
UNEDITED = {
    "agents_agent": {"workspace_id", "name"},
    "agents_grant": {"tool", "expires_at"},
    "agents_key": {
        "workspace_id", "kind", "agent_id", "client_id", "prefix", "digest", "scopes", "role", "task_id", "expires_at",
    },
    "agents_fleetstop": {"scope", "target"},
    "agents_membership": {"workspace_id"},
    "auth_user": {"is_active", "username"},
}  # fmt: skip


@pytest.fixture(name="people")
def build_scene() -> Scene:
    return scene()


def in_a_form(pair: Pair) -> bool:
    """Whether a page of the admin has the column as a field that can be changed."""
    table, column = pair
    open_fields = set(AgentForm.base_fields) - set(AgentAdmin.readonly_fields)
    return (table in AGENT and column in open_fields) or table == "agents_platformsettings"


def in_a_patch(pair: Pair) -> bool:
    """Whether REST's PATCH takes the column."""
    table, column = pair
    given = {"agents_agent": shapes.PLAIN, "agents_capabilities": shapes.CAPABILITIES}
    given |= {"agents_permissions": shapes.PERMISSIONS, "agents_platformsettings": shapes.SETTINGS}
    return column in given.get(table, {})


BY_ADMIN = [pair for pair in deciding_pairs() if in_a_form(pair) or pair in ACTIONS]
BY_REST = [pair for pair in deciding_pairs() if in_a_patch(pair) or pair in VERBS]


def test_every_column_has_its_doors_or_stands_among_the_unedited() -> None:
    edited = {*BY_ADMIN, *BY_REST}
    unedited = {(table, column) for table, columns in UNEDITED.items() for column in columns}
    assert edited & unedited == set()
    assert edited | unedited == set(deciding_pairs())


def page_of(row: Any) -> str:
    """The admin's list of the row's model; rights are on their agent's page."""
    return f"/admin/{row._meta.app_label}/{row._meta.model_name}/"


def as_shown(form: Any) -> dict[str, Any]:
    """What a browser sends back unchanged."""
    values = {name: form[name].value() for name in form.fields}
    return {name: "on" if value is True else value for name, value in values.items() if value not in (None, False)}


def sent(column: str, value: Any) -> dict[str, Any]:
    """The form's field with the new value."""
    if isinstance(value, list):
        return {column: "\n".join(value)}
    if isinstance(value, bool):
        return {column: "on" if column in Capabilities.SWITCHES else "false"}
    return SECTIONS.get(column, {column: value})


@pytest.mark.parametrize("pair", BY_ADMIN, ids=".".join)
def test_a_column_that_the_admin_edits(people: Scene, pair: Pair) -> None:
    table, column = pair
    row, browser = people.rows[table][0], signed_in(person(people.team.space, "admin", Role.ADMIN))
    before = numbers()
    if pair in ACTIONS:
        action, answers = ACTIONS[pair]
        answer = browser.post(page_of(row), {"action": action, "_selected_action": [str(row.pk)], **answers})
    else:
        where = f"{page_of(people.team.owner if table in AGENT else row)}{row.pk}/change/"
        form = as_shown(browser.get(where).context["adminform"].form)
        answer = browser.post(where, {**form, **sent(column, another(people, row, column))})
    assert answer.status_code == 302
    assert moved(before) == {expected(row)}


@pytest.mark.parametrize("pair", BY_REST, ids=".".join)
def test_a_column_that_rest_edits(people: Scene, pair: Pair) -> None:
    table, column = pair
    row = people.rows[table][0]
    client = bearer(key(people.team.space, "operator", role=Role.ADMIN, client_id="admin")[1])
    before = numbers()
    if pair in VERBS:
        method, address, body = VERBS[pair]
        answer = getattr(client, method)(address.format(pk=row.pk), body, format="json")
    else:
        value = PATCHES.get(column, another(people, row, column))
        section = {"agents_capabilities": "capabilities", "agents_permissions": "permissions"}.get(table)
        where = "/api/v1/agents/owner/" if table in AGENT else "/api/v1/settings/"
        answer = client.patch(where, {section: {column: value}} if section else {column: value}, format="json")
    assert answer.status_code == 200, answer.json()
    assert moved(before) == {expected(row)}
