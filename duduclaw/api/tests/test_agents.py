"""Agents over REST: shapes, merging, versions, the trash, and who may."""

from typing import Any

import pytest
from rest_framework.test import APIClient

from agents.models import Agent
from duduclaw.api.tests.house import House, house
from mcp.models import AuditRow

pytestmark = pytest.mark.django_db
AGENTS = "/api/v1/agents/"


@pytest.fixture
def home() -> House:
    return house()


def test_list_and_read(home: House) -> None:
    client = home.key("operator")
    page = client.get(AGENTS).json()
    assert [row["id"] for row in page["results"]] == ["colleague", "owner", "stranger"]
    assert page["next"] is None
    row = client.get(f"{AGENTS}owner/").json()
    assert row == page["results"][1]
    assert set(row) == {
        "id", "display_name", "role", "department", "reports_to", "status", "preset", "capabilities", "permissions",
        "version", "created_at", "warnings",
    }  # fmt: skip
    assert row["capabilities"]["denied_tools"] == []
    assert row["capabilities"]["fork"] is False
    assert row["permissions"] == dict.fromkeys(
        ("can_create_agents", "can_send_cross_agent", "can_schedule_tasks", "can_modify_own_skills")
    )
    assert row["created_at"].endswith("Z")


def test_pages_follow_each_other(home: House) -> None:
    client, seen, address = home.key("operator"), [], f"{AGENTS}?limit=1"
    while address:
        page = client.get(address).json()
        seen += [row["id"] for row in page["results"]]
        address = page["next"]
    assert seen == ["colleague", "owner", "stranger"]
    assert client.get(f"{AGENTS}?cursor=bad").status_code == 400
    assert [row["id"] for row in client.get(f"{AGENTS}?department=sales").json()["results"]] == ["stranger"]


def test_create_change_remove_restore(home: House) -> None:
    client = home.key("operator")
    made = client.post(
        AGENTS,
        {"id": "writer", "display_name": "Writer", "reports_to": "owner", "preset": "worker",
         "capabilities": {"codrive": True, "denied_tools": ["nothing_like_it"]}},
        format="json",
    )  # fmt: skip
    assert made.status_code == 201
    body = made.json()
    assert (body["id"], body["reports_to"], body["preset"], body["version"]) == ("writer", "owner", "worker", 1)
    assert "tasks_list" in body["capabilities"]["allowed_tools"]
    assert body["warnings"] == ["denied_tools: 'nothing_like_it' names no tool"]
    patched = client.patch(f"{AGENTS}writer/", {"capabilities": {"codrive": False}, "version": 1}, format="json").json()
    assert (patched["version"], patched["capabilities"]["codrive"]) == (2, False)
    assert patched["capabilities"]["denied_tools"] == ["nothing_like_it"]
    assert client.delete(f"{AGENTS}writer/").json()["status"] == "removed"
    assert client.get(f"{AGENTS}writer/").status_code == 404
    assert [row["id"] for row in client.get(f"{AGENTS}?status=removed").json()["results"]] == ["writer"]
    assert client.post(f"{AGENTS}writer/restore/").json()["status"] == "active"
    assert client.post(f"{AGENTS}writer/restore/").status_code == 404


def test_T50_a_person_reuses_a_name_and_nobody_takes_a_living_one(home: House) -> None:
    draft = {"id": "writer", "display_name": "Writer"}
    for client in (home.key("operator"), home.person("operator")):
        assert client.post(AGENTS, draft, format="json").status_code == 201
        again = client.post(AGENTS, draft, format="json")
        assert (again.status_code, again.json()["error"]) == (409, "name_taken")
        assert client.delete(f"{AGENTS}writer/").status_code == 200


@pytest.mark.parametrize("name", ["\u0430dmin", "Writer", "con", "wri.ter", "_trash", "default", "", 5, None, "x" * 65])
def test_T50_bad_names(home: House, name: Any) -> None:
    answer = home.key("operator").post(AGENTS, {"id": name, "display_name": "Writer"}, format="json")
    assert (answer.status_code, answer.json()["error"]) == (400, "invalid_arguments")
    assert "id" in answer.json()["detail"]


def test_another_version_is_409(home: House) -> None:
    client = home.key("operator")
    client.patch(f"{AGENTS}owner/", {"role": "a"}, format="json")
    stale = client.patch(f"{AGENTS}owner/", {"role": "b", "version": 1}, format="json")
    assert (stale.status_code, stale.json()["error"]) == (409, "stale")
    assert Agent.objects.system().get(name="owner").role == "a"


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"colour": 1}, "colour"),
        ({"capabilities": {"flying": True}}, "capabilities.flying"),
        ({"capabilities": {"codrive": "yes"}}, "capabilities.codrive"),
        ({"capabilities": {"denied_tools": [" x"]}}, "capabilities.denied_tools"),
        ({"permissions": {"can_create_agents": 0}}, "permissions.can_create_agents"),
        ({"version": "1"}, "version"),
        ({"id": "other"}, "id"),
    ],
)
def test_faults_are_400_by_name(home: House, body: dict[str, Any], field: str) -> None:
    answer = home.key("operator").patch(f"{AGENTS}owner/", body, format="json")
    assert (answer.status_code, set(answer.json())) == (400, {"error", "detail"})
    assert field in answer.json()["detail"]


READERS = {"operator", "viewer key", "operator key", "manager key", "admin key"}


def test_who_may_read_and_who_may_change(home: House) -> None:
    for name in home.tokens:
        client = home.key(name)
        assert client.get(f"{AGENTS}owner/").status_code == (200 if name in READERS else 403), name
        changed = client.patch(f"{AGENTS}owner/", {"role": "x"}, format="json").status_code
        assert changed == (200 if name in READERS - {"viewer key"} else 403), name
    for role in home.people:
        client = home.person(role)
        assert client.get(f"{AGENTS}owner/").status_code == 200
        changed = client.patch(f"{AGENTS}owner/", {"role": "y"}, format="json").status_code
        assert changed == (403 if role == "viewer" else 200), role


def test_changes_and_refused_writes_are_recorded(home: House) -> None:
    home.key("operator").patch(f"{AGENTS}owner/", {"role": "x"}, format="json")
    home.key("owner").patch(f"{AGENTS}owner/", {"role": "y"}, format="json")
    home.key("operator").patch(f"{AGENTS}nobody/", {"role": "y"}, format="json")
    home.key("operator").get(f"{AGENTS}nobody/")
    rows = AuditRow.objects.filter(stream="security").order_by("id")
    assert [(row.reason, row.agent) for row in rows] == [
        ("policy_changed", "operator"), ("rest_refused", "owner"), ("rest_refused", "operator"),
    ]  # fmt: skip
    assert "PATCH api/v1/agents/<str:name>/" in rows[0].details


def test_no_key_no_answer(home: House) -> None:
    answer = APIClient().get(AGENTS)
    assert (answer.status_code, answer["WWW-Authenticate"]) == (401, "Bearer")
    assert set(answer.json()) == {"error", "detail"}


def test_an_address_without_its_last_slash_is_the_same(home: House) -> None:
    client = home.key("operator")
    assert client.get("/api/v1/agents").json() == client.get(AGENTS).json()
    assert client.patch("/api/v1/agents/owner", {"role": "x"}, format="json").json()["role"] == "x"
    assert client.get("/api/v1/nothing").json() == {"error": "not_found", "detail": "no such object"}
