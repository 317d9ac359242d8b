"""Settings, fleet, record, bodies, document: the rest of the interface."""

from typing import Any

import pytest
import time_machine
from rest_framework.test import APIClient

from agents.models import FleetStop
from duduclaw.api import auth
from duduclaw.api.tests.house import House, house, send
from duduclaw.lib import clock
from mcp.models import AuditRow

pytestmark = pytest.mark.django_db
SETTINGS = "/api/v1/settings/"


@pytest.fixture
def home() -> House:
    return house()


def test_settings_are_read_merged_and_counted(home: House) -> None:
    client = home.key("admin key")
    assert send(client, "get", SETTINGS).json() == {
        "integrations": {"google_workspace": False, "github": False},
        "responsibilities": {"enabled": False},
        "delegation": {"policy": "department", "allow": []},
        "container": {}, "odoo": {}, "memory": {}, "rate": {},
        "version": 1,
    }  # fmt: skip
    changed = send(client, "patch", SETTINGS, {"integrations": {"github": True}, "version": 1}).json()
    assert (changed["integrations"], changed["version"]) == ({"google_workspace": False, "github": True}, 2)
    stale = send(client, "patch", SETTINGS, {"integrations": {"github": False}, "version": 1})
    assert (stale.status_code, stale.json()["error"]) == (409, "stale")
    unknown = send(client, "patch", SETTINGS, {"delegation": {"allow": [["owner", "nobody"]]}})
    assert (unknown.status_code, "nobody" in unknown.json()["detail"]) == (400, True)


def test_only_admins_change_settings(home: House) -> None:
    for name, client in home.everybody().items():
        reader = name.startswith("person") or name.endswith(" key") or name == "key operator"
        admin = name in ("key operator", "key admin key", "person admin")
        assert send(client, "get", SETTINGS).status_code == (200 if reader else 403), name
        changed = send(client, "patch", SETTINGS, {"responsibilities": {"enabled": True}})
        assert changed.status_code == (200 if admin else 403), name


def test_the_fleet_stops_and_goes_on(home: House) -> None:
    client = home.key("operator key")
    stopped = send(client, "post", "/api/v1/fleet/stop/", {"scope": "research", "reason": "drill"}).json()
    assert (stopped["stopped"], stopped["still_moving"]) == (2, [])
    answer = home.key("owner").post("/api/v1/tools/tasks_list/call/", {}, format="json")
    assert (answer.status_code, answer.json()["error"]) == (403, "stopped")
    assert (
        send(client, "post", "/api/v1/fleet/release/", {"scope": "research", "reason": "over"}).json()["stopped"] == 0
    )
    assert send(client, "post", "/api/v1/fleet/release/", {"scope": "research"}).status_code == 409
    assert send(client, "post", "/api/v1/fleet/stop/", {"scope": "nowhere", "reason": "drill"}).status_code == 404
    assert send(client, "post", "/api/v1/fleet/stop/", {"scope": "all"}).status_code == 400
    assert (
        send(home.key("viewer key"), "post", "/api/v1/fleet/stop/", {"scope": "all", "reason": "x"}).status_code == 403
    )
    assert FleetStop.objects.system().count() == 1


def test_the_record_is_filtered_and_kept_apart(home: House) -> None:
    other = house("other")
    before = clock.stamp(clock.now())
    call = "/api/v1/tools/tasks_list/call/"
    send(home.key("owner"), "post", call, {"status": "todo"})
    send(home.key("owner"), "post", call, {"colour": "red"})
    send(other.key("owner"), "post", call, {})
    client, audit = home.key("operator"), "/api/v1/audit/"
    rows = send(client, "get", audit).json()["results"]
    assert [row["outcome"] for row in rows] == ["invalid", "ok"]
    assert rows[1]["arguments"] == {"status": "todo"}
    assert rows[1]["scopes_provided"] == ["admin"]
    assert (rows[1]["agent"], rows[1]["transport"], rows[1]["reason"]) == ("owner", "rest", "")
    for query, count in {
        "agent=owner": 2, "agent=colleague": 0, "tool=tasks_list": 2, "outcome=invalid": 1,
        f"since={before}": 2, "since=2099-01-01T00:00:00Z": 0, "stream=security": 0,
    }.items():  # fmt: skip
        assert len(send(client, "get", f"{audit}?{query}").json()["results"]) == count, query
    for query in ("outcome=fine", "since=yesterday", "stream=all", "cursor=cD1hYmM%3D"):
        assert send(client, "get", f"{audit}?{query}").status_code == 400, query
    assert send(home.key("owner"), "get", audit).status_code == 403
    assert AuditRow.objects.filter(stream="tool_calls").count() == 3


def raw(client: APIClient, body: bytes, kind: str = "application/json") -> Any:
    """A body as it stands."""
    return client.patch("/api/v1/agents/owner/", body, content_type=kind)


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"[]", b"5", b"null", b'{"role":"a","role":"b"}', b'{"role":NaN}', b'{"role":"\\ud800"}',
     b'{"role":"\\u0000"}', b"\xef\xbb\xbf{}", b'{"a":' * 65 + b"1" + b"}" * 65],
)  # fmt: skip
def test_bodies_that_are_no_plain_object_are_400(home: House, body: bytes) -> None:
    answer = raw(home.key("operator"), body)
    if body:
        assert (answer.status_code, answer.json()["error"]) == (400, "invalid_json")
    assert home.team.owner.version == 1


def test_large_bodies_and_other_kinds(home: House) -> None:
    client = home.key("operator")
    assert raw(client, b'{"role":"' + b"x" * 2**20 + b'"}').status_code == 413
    assert raw(client, b"role=x", "application/x-www-form-urlencoded").status_code == 415


def test_keys_and_nul_in_the_address_are_refused(home: House) -> None:
    client, token = home.key("operator"), home.tokens["operator"]
    for query in (f"x={token}", "api_key=x", "access_token=x"):
        answer = client.get(f"/api/v1/agents/?{query}")
        assert (answer.status_code, answer.json()["error"]) == (400, "key_in_url"), query
        assert token not in str(answer.content)
    for path in ("/api/v1/agents/%00/", "/api/v1/tasks/a%00b/"):
        assert client.get(path).status_code == 404, path
    assert client.get("/api/v1/agents/?department=%00").status_code == 400


@pytest.mark.parametrize(
    "header", ["", "Bearer", "Bearer x", "Basic eDp5", "ddc_live_0", "Bearer ddc_test_" + "0" * 32]
)
def test_T06_rest_headers_that_prove_nothing_are_401(home: House, header: str) -> None:
    auth.strangers._levels.clear()
    client = home.person("admin")
    client.credentials(HTTP_AUTHORIZATION=header)
    answer = client.get("/api/v1/agents/")
    assert (answer.status_code, answer.json()["error"]) == (401, "invalid_key")


def test_strangers_are_slowed_down_by_address(home: House) -> None:
    auth.strangers._levels.clear()
    with time_machine.travel(clock.now(), tick=False):
        answers = [APIClient().get("/api/v1/agents/").status_code for _ in range(61)]
    auth.strangers._levels.clear()
    assert answers == [401] * 60 + [429]


def test_a_person_without_a_workspace_reads_nothing(home: House, django_user_model: Any) -> None:
    client = APIClient()
    client.force_login(django_user_model.objects.create_user("colleague", password="a long password"))
    answer = client.get("/api/v1/agents/")
    assert (answer.status_code, answer.json()["error"]) == (403, "no_membership")
