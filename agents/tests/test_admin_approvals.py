"""Approvals in the admin: shown as asked, answered through the choke point, once, by a person who just proved it."""

from datetime import timedelta
from typing import Any

import pytest
import time_machine
from django.test import Client

from agents.models import Approval, Capabilities, Grant, Membership
from agents.tests.admin_house import House, house, question
from duduclaw.lib import clock
from mcp import audit as audit_module
from mcp.models import AuditRow

pytestmark = [pytest.mark.django_db, pytest.mark.engines]


@pytest.fixture(name="home_of")
def build_house() -> House:
    made = house()
    Capabilities.objects.filter(agent=made.acme.owner).update(scoped_tools=["web_fetch"])
    return made


def decide(client: Client, decision: str, *rows: Approval, **form: str) -> Any:
    ids = ",".join(row.pk for row in rows)
    return client.post(f"/admin/agents/approval/decide/?decision={decision}&ids={ids}", form, follow=True)


def audit() -> list[tuple[str, str, str, str]]:
    rows = AuditRow.objects.filter(stream="tool_calls").order_by("id")
    return list(rows.values_list("tool", "outcome", "agent", "transport"))


def test_approve_mints_a_grant_and_leaves_one_audit_row(home_of: House) -> None:
    row = question(home_of.acme.owner)
    answer = decide(home_of.client("operator", stepped_up=True), "approve", row, note="until Friday")
    assert b"approved" in answer.content
    row.refresh_from_db()
    assert (row.status, row.decided_by, row.note) == ("approved", "operator", "until Friday")
    grant = Grant.objects.system().get()
    assert (grant.tool, grant.agent, grant.approved_by, grant.approval) == (
        "web_fetch", home_of.acme.owner, "operator", row
    )  # fmt: skip
    assert audit() == [("tool_approve", "ok", "operator", "admin")]


def test_deny_mints_nothing(home_of: House) -> None:
    row = question(home_of.acme.owner)
    decide(home_of.client("operator", stepped_up=True), "deny", row)
    row.refresh_from_db()
    assert (row.status, Grant.objects.system().count()) == ("denied", 0)
    assert audit() == [("tool_approve", "ok", "operator", "admin")]


def test_T46_admin_approving_needs_a_fresh_step_up(home_of: House) -> None:
    row, client = question(home_of.acme.owner), home_of.client("operator")
    address = f"/admin/agents/approval/decide/?decision=approve&ids={row.pk}"
    for ask in (client.get, client.post):
        assert ask(address).headers["Location"].startswith("/admin/step-up/?next=")
    page = client.post("/admin/step-up/", {"password": "a long enough password", "next": address}, follow=True)
    assert b"In the agent" in page.content
    with time_machine.travel(clock.now() + timedelta(minutes=16), tick=False):
        assert client.post(address).headers["Location"].startswith("/admin/step-up/")
    row.refresh_from_db()
    assert row.status == "pending"
    assert audit() == []


def test_a_get_decides_nothing(home_of: House) -> None:
    row, client = question(home_of.acme.owner), home_of.client("operator", stepped_up=True)
    assert client.get(f"/admin/agents/approval/decide/?decision=approve&ids={row.pk}").status_code == 200
    row.refresh_from_db()
    assert (row.status, audit()) == ("pending", [])


def test_the_page_shows_exactly_what_was_asked(home_of: House) -> None:
    row = question(
        home_of.acme.owner,
        tool="db_query",
        call_tool="db_query",
        kind="mcp_call",
        arguments='{"sql":"SELECT \\"<b>\\" -- \u202eevil","token":"[redacted]"}',
        summary="<script>alert(1)</script> {{7*7}} \u200bplease",
    )
    client = home_of.client("operator", stepped_up=True)
    page = client.get(f"/admin/agents/approval/decide/?decision=deny&ids={row.pk}").content.decode()
    assert "&lt;script&gt;alert(1)&lt;/script&gt; {{7*7}} [U+200B]please" in page
    assert "[U+202E]evil" in page
    assert "[redacted]" in page
    assert "<script>alert" not in page
    assert "\u202e" not in page


def test_the_lists_actions_lead_to_the_page(home_of: House) -> None:
    rows = [question(home_of.acme.owner), question(home_of.acme.colleague)]
    client = home_of.client("operator", stepped_up=True)
    page = client.post(
        "/admin/agents/approval/", {"action": "deny", "_selected_action": [row.pk for row in rows]}, follow=True
    )
    assert page.redirect_chain[-1][0].startswith("/admin/agents/approval/decide/?decision=deny&ids=")
    assert page.content.decode().count("own words") == 2
    decide(client, "deny", *rows)
    assert set(Approval.objects.system().values_list("status", flat=True)) == {"denied"}
    assert audit() == [("tool_approve", "ok", "operator", "admin")] * 2


def test_each_answer_counts_once(home_of: House) -> None:
    row, client = question(home_of.acme.owner), home_of.client("operator", stepped_up=True)
    decide(client, "approve", row)
    again = decide(client, "deny", row)
    assert b"already" in again.content
    row.refresh_from_db()
    assert row.status == "approved"
    assert Grant.objects.system().count() == 1
    assert [outcome for _, outcome, _, _ in audit()] == ["ok", "denied"]


def test_an_expired_question_is_refused(home_of: House) -> None:
    row = question(home_of.acme.owner, expires_at=clock.now() - timedelta(seconds=1))
    answer = decide(home_of.client("operator", stepped_up=True), "approve", row)
    assert b"expired" in answer.content
    assert Grant.objects.system().count() == 0
    assert [outcome for _, outcome, _, _ in audit()] == ["denied"]


def test_policy_that_changed_beats_the_answer(home_of: House) -> None:
    row = question(home_of.acme.owner)
    Capabilities.objects.filter(agent=home_of.acme.owner).update(denied_tools=["web_fetch"])
    answer = decide(home_of.client("operator", stepped_up=True), "approve", row)
    assert b"no longer lets" in answer.content
    assert Grant.objects.system().count() == 0


def test_viewer_decides_nothing(home_of: House) -> None:
    row, client = question(home_of.acme.owner), home_of.client("viewer", stepped_up=True)
    assert client.get(f"/admin/agents/approval/decide/?decision=approve&ids={row.pk}").status_code == 403
    assert decide(client, "approve", row).status_code == 403
    page = client.get(f"/admin/agents/approval/{row.pk}/change/").content.decode()
    assert "/decide/" not in page
    row.refresh_from_db()
    assert (row.status, audit()) == ("pending", [])


def test_a_person_demoted_meanwhile_decides_nothing(home_of: House) -> None:
    row, client = question(home_of.acme.owner), home_of.client("operator", stepped_up=True)
    Membership.objects.system().filter(user=home_of.people["operator"]).update(role="viewer")
    assert decide(client, "approve", row).status_code == 403
    row.refresh_from_db()
    assert row.status == "pending"


def test_a_question_of_another_workspace_does_not_exist(home_of: House) -> None:
    row = question(home_of.globex.owner)
    answer = decide(home_of.client("admin", stepped_up=True), "approve", row)
    assert b"There is no such approval" in answer.content
    row.refresh_from_db()
    assert (row.status, audit()) == ("pending", [])


def test_a_grant_is_revoked_once(home_of: House) -> None:
    row, client = question(home_of.acme.owner), home_of.client("operator", stepped_up=True)
    decide(client, "approve", row)
    grant = Grant.objects.system().get()
    form = {"action": "revoke", "_selected_action": [grant.pk], "confirmed": "yes"}
    assert b"revoked" in client.post("/admin/agents/grant/", form, follow=True).content
    assert b"ended already" in client.post("/admin/agents/grant/", form, follow=True).content
    grant.refresh_from_db()
    assert grant.revoked_at is not None


def test_an_audit_row_that_cannot_be_written_takes_the_grant_with_it(
    home_of: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Decision, grant and row are one transaction."""
    row, insert = question(home_of.acme.owner), audit_module.insert

    def fail_once(made: audit_module.Row) -> audit_module.Row:
        monkeypatch.setattr(audit_module, "insert", insert)
        raise RuntimeError("the record cannot be written")

    monkeypatch.setattr(audit_module, "insert", fail_once)
    answer = decide(home_of.client("operator", stepped_up=True), "approve", row)
    assert b"Internal error" in answer.content
    row.refresh_from_db()
    assert (row.status, Grant.objects.system().count()) == ("pending", 0)
    assert audit() == [("tool_approve", "error", "operator", "admin")]
