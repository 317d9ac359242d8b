"""Keys, grants and approvals over REST."""

from datetime import timedelta
from typing import Any

import pytest
import time_machine

from agents.actions import grants
from agents.actions.system import platform
from agents.models import Approval, Grant, Key
from duduclaw.api.tests.house import House, bearer, house, send
from duduclaw.lib import clock

pytestmark = pytest.mark.django_db
KEYS = "/api/v1/keys/"


@pytest.fixture
def home() -> House:
    return house()


def pending(home: House, tool: str = "fork_run") -> Approval:
    """A question of `owner`."""
    now = clock.now()
    home.team.owner.capabilities.scoped_tools = ["fork_run"]
    home.team.owner.capabilities.save()
    return Approval.objects.create(
        workspace=home.team.space, agent=home.team.owner, kind="capability_grant", tool=tool,
        call_tool="capability_request", arguments="{}", digest="0" * 64, requested_by="owner", requested_at=now,
        expires_at=now + timedelta(minutes=5),
    )  # fmt: skip


def test_a_key_is_shown_once_and_works_until_it_is_revoked(home: House) -> None:
    admin = home.key("admin key")
    made = send(admin, "post", KEYS, {"kind": "agent", "agent": "owner", "label": "laptop"})
    assert made.status_code == 201
    token, ident = made.json()["key"], made.json()["id"]
    assert bearer(token).get("/api/v1/tools/").status_code == 200
    shown = send(admin, "get", f"{KEYS}{ident}/").json()
    assert (shown["agent"], shown["label"], shown["kind"]) == ("owner", "laptop", "agent")
    for text in (send(admin, "get", KEYS).content, send(admin, "get", f"{KEYS}{ident}/").content):
        assert token.encode() not in text
        assert Key.objects.system().get(pk=ident).digest.encode() not in text
    gone = send(admin, "delete", f"{KEYS}{ident}/")
    assert gone.json()["revoked_at"] is not None
    assert bearer(token).get("/api/v1/tools/").status_code == 401
    again = send(admin, "delete", f"{KEYS}{ident}/")
    assert (again.status_code, again.json()["error"]) == (409, "already_revoked")


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "kind"),
        ({"kind": "master"}, "kind"),
        ({"kind": "agent"}, "agent"),
        ({"kind": "agent", "agent": "nobody"}, "agent"),
        ({"kind": "external", "scopes": ["admin"]}, "scopes"),
        ({"kind": "external", "scopes": ["everything"]}, "scopes"),
        ({"kind": "external", "scopes": "issues:read"}, "scopes"),
        ({"kind": "operator", "role": "king"}, "role"),
        ({"kind": "operator", "expires_at": "soon"}, "expires_at"),
        ({"kind": "operator", "expires_at": "2030-01-01T00:00:00"}, "expires_at"),
        ({"kind": "operator", "expires_at": "2099-01-01T00:00:00Z"}, "expires_at"),
        ({"kind": "operator", "secret": "x"}, "secret"),
    ],
)
def test_faults_of_a_key_are_400_by_name(home: House, body: dict[str, Any], field: str) -> None:
    before = Key.objects.system().count()
    answer = send(home.key("admin key"), "post", KEYS, body)
    assert (answer.status_code, field in answer.json()["detail"]) == (400, True)
    assert Key.objects.system().count() == before


def test_keys_live_30_days_unless_asked(home: House) -> None:
    admin = home.key("admin key")
    for asked, days in (({}, 30), ({"expires_at": (clock.now() + timedelta(days=200)).isoformat()}, 200)):
        made = send(admin, "post", KEYS, {"kind": "external", "scopes": ["wiki:read"], **asked}).json()
        row = Key.objects.system().get(pk=made["id"])
        assert abs((row.expires_at - clock.now()) - timedelta(days=days)) < timedelta(minutes=1)


def test_only_admins_make_and_revoke_keys(home: House) -> None:
    ident = Key.objects.system().filter(kind="external").get().id
    for name, client in home.everybody().items():
        admin = name in ("key operator", "key admin key", "person admin")
        reader = name.startswith("person") or name.endswith(" key") or name == "key operator"
        assert send(client, "get", KEYS).status_code == (200 if reader else 403), name
        made = send(client, "post", KEYS, {"kind": "external", "scopes": ["wiki:read"]})
        assert made.status_code == (201 if admin else 403), name
        if not admin:
            assert send(client, "delete", f"{KEYS}{ident}/").status_code == 403, name


def test_grants_are_listed_and_taken_back(home: House) -> None:
    grant = grants.mint(home.team.owner, "fork_run", source=Grant.Source.OPERATOR, by=platform(home.team.space))
    client = home.key("operator key")
    row = send(client, "get", "/api/v1/grants/?active=true&agent=owner").json()["results"][0]
    assert (row["id"], row["agent"], row["tool"], row["task_id"], row["active"]) == (
        grant.id, "owner", "fork_run", None, True
    )  # fmt: skip
    assert send(client, "get", "/api/v1/grants/?agent=colleague").json()["results"] == []
    assert send(home.key("viewer key"), "post", f"/api/v1/grants/{grant.id}/revoke/").status_code == 403
    gone = send(client, "post", f"/api/v1/grants/{grant.id}/revoke/").json()
    assert (gone["active"], gone["revoke_reason"]) == (False, "revoked")
    assert send(client, "post", f"/api/v1/grants/{grant.id}/revoke/").status_code == 409
    assert send(client, "get", "/api/v1/grants/?active=true").json()["results"] == []
    assert send(client, "get", f"/api/v1/grants/{grant.id}/").json()["id"] == grant.id


def test_an_approval_is_decided_once(home: House) -> None:
    row, client = pending(home), home.key("operator key")
    listed = send(client, "get", "/api/v1/approvals/?status=pending").json()["results"]
    assert [item["id"] for item in listed] == [row.id]
    done = send(client, "post", f"/api/v1/approvals/{row.id}/decide/", {"decision": "approve", "note": "go"}).json()
    assert (done["status"], done["note"], done["decided_by"]) == ("approved", "go", "operator-key")
    assert done["grant_id"] == Grant.objects.system().get().id
    again = send(client, "post", f"/api/v1/approvals/{row.id}/decide/", {"decision": "deny"})
    assert (again.status_code, again.json()["error"]) == (409, "already_decided")
    assert send(client, "get", "/api/v1/approvals/?status=pending").json()["results"] == []
    assert send(client, "get", f"/api/v1/approvals/{row.id}/").json()["status"] == "approved"


def test_an_approval_past_its_end_is_409_expired(home: House) -> None:
    row, client = pending(home), home.key("operator key")
    with time_machine.travel(clock.now() + timedelta(seconds=301), tick=False):
        assert send(client, "get", "/api/v1/approvals/?status=pending").json()["results"] == []
        assert len(send(client, "get", "/api/v1/approvals/?status=expired").json()["results"]) == 1
        late = send(client, "post", f"/api/v1/approvals/{row.id}/decide/", {"decision": "approve"})
    assert (late.status_code, late.json()["error"]) == (409, "expired")
    assert not Grant.objects.system().exists()


@pytest.mark.parametrize("body", [{}, {"decision": "maybe"}, {"decision": True}, {"decision": "deny", "why": "x"}])
def test_faults_of_a_decision_are_400(home: House, body: dict[str, Any]) -> None:
    row = pending(home)
    assert send(home.key("operator key"), "post", f"/api/v1/approvals/{row.id}/decide/", body).status_code == 400
    row.refresh_from_db()
    assert row.status == "pending"
    assert send(home.key("operator key"), "get", "/api/v1/approvals/?status=open").status_code == 400


def test_who_decides(home: House) -> None:
    for name, client in home.everybody().items():
        row = pending(home)
        answer = send(client, "post", f"/api/v1/approvals/{row.id}/decide/", {"decision": "deny"})
        decides = name == "key operator" or (
            (name.startswith("person") or name.endswith(" key")) and "viewer" not in name
        )
        assert answer.status_code == (200 if decides else 403), name


def test_a_denial_of_the_tool_voids_the_question(home: House) -> None:
    row, client = pending(home), home.key("operator key")
    send(client, "patch", "/api/v1/agents/owner/", {"capabilities": {"denied_tools": ["fork_*"]}})
    shown = send(client, "get", f"/api/v1/approvals/{row.id}/").json()
    assert shown["status"] == "void"
    assert send(client, "post", f"/api/v1/approvals/{row.id}/decide/", {"decision": "approve"}).status_code in (
        409,
        422,
    )


def test_T46_rest_deciding_and_making_keys_ask_a_person_for_the_password(home: House) -> None:
    row, person = pending(home), home.person("admin", fresh=False)
    for path, body in (
        (f"/api/v1/approvals/{row.id}/decide/", {"decision": "approve"}),
        (KEYS, {"kind": "operator"}),
        ("/api/v1/tools/tool_approve/call/", {"approval_id": row.id, "decision": "approve"}),
    ):
        answer = send(person, "post", path, body)
        assert (answer.status_code, answer.json()["error"]) == (403, "step_up_required"), path
    fresh = home.person("admin")
    with time_machine.travel(clock.now() + timedelta(minutes=16), tick=False):
        assert send(fresh, "post", KEYS, {"kind": "operator"}).json()["error"] == "step_up_required"
    assert send(fresh, "post", f"/api/v1/approvals/{row.id}/decide/", {"decision": "approve"}).status_code == 200
