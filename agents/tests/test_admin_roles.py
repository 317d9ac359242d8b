"""Who sees and does what in the admin: a role opens it, a workspace bounds it."""

from typing import Any

import pytest
from django.contrib import admin
from django.contrib.auth.models import User
from django.contrib.sessions.backends.db import SessionStore
from django.test import RequestFactory
from django.urls import reverse

from agents.models import Agent, FleetStop, Key, Membership, PolicyChange, Role
from agents.tests.admin_house import ROLES, House, house, person, question, signed_in
from duduclaw import adminsite
from duduclaw.lib.rate import Bucket, Limiter

pytestmark = pytest.mark.django_db


@pytest.fixture(name="home_of")
def build_house() -> House:
    return house()


def act(client: Any, model: str, action: str, *rows: Any, **answers: str) -> Any:
    """Choose rows of a list and run an action, past the page that asks."""
    return client.post(
        reverse(f"admin:{model}_changelist"),
        {"action": action, "_selected_action": [row.pk for row in rows], "confirmed": "yes", **answers},
        follow=True,
    )


@pytest.mark.parametrize("role", ROLES)
def test_every_role_opens_the_index_and_every_list(home_of: House, role: str) -> None:
    client = home_of.client(role)
    assert client.get("/admin/").status_code == 200
    for model in admin.site._registry:
        answer = client.get(reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_changelist"))
        closed = model.__name__ == "AuditBlock" and role != "admin"
        assert answer.status_code == (403 if closed else 200), model


@pytest.mark.parametrize("role", ROLES)
def test_an_agents_page_is_a_form_from_operator_on(home_of: House, role: str) -> None:
    page = home_of.client(role).get(f"/admin/agents/agent/{home_of.acme.owner.pk}/change/")
    assert page.status_code == 200
    assert (b'name="denied_tools"' in page.content) is (role != "viewer")


def test_a_superuser_without_membership_is_shown_the_door(home_of: House) -> None:
    root = User.objects.create_superuser("root", password="a long enough password")
    client = signed_in(root)
    assert client.get("/admin/").status_code == 302
    assert client.get(f"/admin/agents/agent/{home_of.acme.owner.pk}/change/").status_code == 302


def test_nobody_without_a_session_gets_in() -> None:
    from django.test import Client

    assert Client().get("/admin/").status_code == 302
    assert Client().get("/admin/agents/agent/").status_code == 302


def test_an_inactive_person_is_out(home_of: House) -> None:
    client = home_of.client("admin")
    User.objects.filter(username="admin").update(is_active=False)
    assert client.get("/admin/").status_code == 302


def test_signing_in_with_the_form_needs_no_staff_flag(home_of: House, client: Any) -> None:
    answer = client.post("/admin/login/", {"username": "viewer", "password": "a long enough password"}, follow=True)
    assert b"What needs you" in answer.content


def test_guesses_of_a_password_are_slowed_down(monkeypatch: pytest.MonkeyPatch, client: Any) -> None:
    monkeypatch.setattr(adminsite, "sign_ins", Limiter({"login": Bucket(60, burst=2)}))
    form = {"username": "viewer", "password": "guess", "next": "/admin/"}
    answers = [client.post("/admin/login/", form) for _ in range(3)]
    assert [answer.status_code for answer in answers] == [200, 200, 429]
    assert int(answers[-1].headers["Retry-After"]) >= 1


def test_viewer_runs_no_action(home_of: House) -> None:
    viewer, agent = home_of.client("viewer"), home_of.acme.owner
    for action in ("pause", "terminate", "stop", "release", "remove", "restore"):
        act(viewer, "agents_agent", action, agent, reason="because")
    agent.refresh_from_db()
    assert agent.status == Agent.Status.ACTIVE
    assert not FleetStop.objects.system().exists()


def test_operator_pauses_resumes_removes_restores(home_of: House) -> None:
    operator, agent = home_of.client("operator"), home_of.acme.owner
    for action, status in (
        ("pause", "paused"),
        ("resume", "active"),
        ("terminate", "terminated"),
        ("resume", "active"),
        ("remove", "removed"),
        ("restore", "active"),
    ):
        act(operator, "agents_agent", action, agent)
        agent.refresh_from_db()
        assert agent.status == status
    changes = PolicyChange.objects.system().filter(ref=agent.pk, field="status")
    assert set(changes.values_list("changed_by", flat=True)) == {"operator"}


def test_an_action_asks_before_it_acts(home_of: House) -> None:
    operator, agent = home_of.client("operator"), home_of.acme.owner
    page = operator.post("/admin/agents/agent/", {"action": "remove", "_selected_action": [agent.pk], "index": "0"})
    assert page.status_code == 200
    assert b"Their keys open nothing any more" in page.content
    agent.refresh_from_db()
    assert agent.status == Agent.Status.ACTIVE


def test_stop_wants_a_reason_and_release_undoes_it(home_of: House) -> None:
    operator, agent = home_of.client("operator"), home_of.acme.owner
    act(operator, "agents_agent", "stop", agent)
    assert not FleetStop.objects.system().exists()
    act(operator, "agents_agent", "stop", agent, reason="it loops")
    stop = FleetStop.objects.system().get()
    assert (stop.scope, stop.target, stop.reason, stop.stopped_by) == ("agent", "owner", "it loops", "operator")
    act(operator, "agents_agent", "release", agent)
    stop.refresh_from_db()
    assert stop.released_by == "operator"


@pytest.mark.parametrize(
    ("scope", "target", "made"),
    [("all", "", 1), ("department", "research", 1), ("agent", "owner", 1), ("all", "owner", 0), ("agent", "", 0),
     ("agent", "nobody", 0)],
)  # fmt: skip
def test_the_stop_page(home_of: House, scope: str, target: str, made: int) -> None:
    operator = home_of.client("operator")
    answer = operator.post(
        "/admin/agents/fleetstop/add/", {"scope": scope, "target": target, "reason": "it loops"}, follow=True
    )
    assert FleetStop.objects.system().count() == made
    assert (b"stand still" in answer.content) is bool(made)
    if made:
        act(operator, "agents_fleetstop", "release", FleetStop.objects.system().get())
        assert FleetStop.objects.system().get().released_by == "operator"


def test_keys_and_people_are_the_admins(home_of: House) -> None:
    key = Key.objects.system().filter(workspace=home_of.acme.space).first()
    manager, admin_ = home_of.client("manager", stepped_up=True), home_of.client("admin", stepped_up=True)
    assert manager.get("/admin/agents/key/add/").status_code == 403
    assert manager.get("/admin/agents/membership/add/").status_code == 403
    act(manager, "agents_key", "revoke", key)
    key.refresh_from_db()
    assert key.revoked_at is None
    act(admin_, "agents_key", "revoke", key)
    key.refresh_from_db()
    assert key.revoked_by == "admin"


def test_admin_adds_a_person_and_changes_roles(home_of: House) -> None:
    client = home_of.client("admin")
    form = {"username": "newcomer", "password": "another long password", "role": "viewer"}
    client.post("/admin/agents/membership/add/", form)
    made = Membership.objects.system().get(user__username="newcomer")
    assert (made.workspace_id, made.role) == (home_of.acme.space.pk, Role.VIEWER)
    act(client, "agents_membership", "make_operator", made)
    made.refresh_from_db()
    assert made.role == Role.OPERATOR
    act(client, "agents_membership", "remove", made)
    assert not Membership.objects.system().filter(user__username="newcomer").exists()


@pytest.mark.parametrize(
    ("over", "says"),
    [
        ({"password": "short"}, b"too short"),
        ({"username": "viewer"}, b"taken"),
        ({"username": "a b"}, b"valid username"),
    ],
)
def test_a_person_that_cannot_be_added(home_of: House, over: dict[str, str], says: bytes) -> None:
    form = {"username": "newcomer", "password": "another long password", "role": "viewer", **over}
    page = home_of.client("admin").post("/admin/agents/membership/add/", form)
    assert page.status_code == 200
    assert says in page.content
    assert not User.objects.filter(username="newcomer").exists()


def test_the_last_admin_stays(home_of: House) -> None:
    mine = Membership.objects.system().get(user__username="admin")
    answer = act(home_of.client("admin"), "agents_membership", "make_viewer", mine)
    assert b"at least one admin" in answer.content
    mine.refresh_from_db()
    assert mine.role == Role.ADMIN


def test_a_person_of_two_workspaces_switches(home_of: House) -> None:
    both = home_of.people["admin"]
    Membership.objects.create(workspace=home_of.globex.space, user=both, role=Role.VIEWER)
    client = signed_in(both)
    address = f"/admin/agents/agent/{home_of.globex.owner.pk}/change/"
    assert client.get(address).status_code == 302
    assert client.get("/admin/workspace/").status_code == 405
    client.post("/admin/workspace/", {"workspace": home_of.globex.space.pk})
    assert client.get(address).status_code == 200
    client.post("/admin/workspace/", {"workspace": "nonsense"})
    assert client.get(address).status_code == 200


def test_an_unknown_model_on_the_index_still_appears(home_of: House) -> None:
    request = RequestFactory().get("/admin/")
    request.user, request.session = home_of.people["admin"], SessionStore()
    sections = admin.site.get_app_list(request)
    shown = {entry["model"] for section in sections for entry in section["models"]}
    assert shown == set(admin.site._registry)


def test_first_page_names_what_waits(home_of: House) -> None:
    question(home_of.acme.owner, tool="web_fetch")
    question(home_of.globex.owner, tool="mail_send")
    page = home_of.client("operator").get("/admin/").content.decode()
    assert "web_fetch" in page
    assert "mail_send" not in page


def test_person_builder_makes_no_staff(home_of: House) -> None:
    made = person(home_of.acme.space, "plain", Role.VIEWER)
    assert not made.is_staff
