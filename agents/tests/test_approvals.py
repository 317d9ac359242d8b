"""Questions and their answers: asked once, decided once, used once, by the right people, in time."""

from datetime import timedelta
from typing import Any

import pytest
import time_machine

from agents.actions import approvals, policy
from agents.actions.grants import end_for_holder, end_for_task
from agents.models import Approval, Capabilities, Grant, PolicyChange
from agents.tests.asking import ask_for, asking_company, decide, make_call, question, refused
from duduclaw.lib import clock
from mcp import registry
from mcp.calls import CallRequest, call
from mcp.errors import InvalidArguments
from tasks.models import Task
from tasks.tests.board import card
from tests.build import Company, company, key
from tests.testtools import effects, probe

pytestmark = [pytest.mark.django_db, pytest.mark.engines]
NOW = "2026-12-01T12:00:00Z"


@pytest.fixture
def people() -> Company:
    """The owner must ask for probe_ask, and its probe_scoped needs a grant."""
    return asking_company()


# ---- asking


def test_a_question_says_what_was_asked_by_whom_until_when(people: Company) -> None:
    with time_machine.travel(NOW, tick=False):
        parked = ask_for(people).parked
        row = question()
        assert parked is not None and (parked.id, parked.kind, parked.until) == (row.id, "approval", row.expires_at)
        assert row.expires_at - row.requested_at == timedelta(seconds=300)
    assert (row.kind, row.tool, row.call_tool, row.requested_by, row.summary) == (
        "capability_grant", "probe_scoped", "capability_request", "owner", "needed now",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("over", "code"),
    [
        ({"tool": " "}, "invalid_arguments"),
        ({"reason": "\n "}, "invalid_arguments"),
        ({"tool": "probe_other"}, "not_scoped"),
        ({"tool": "mcp__github__probe_scoped"}, "not_scoped"),
        ({"task_id": "T-404"}, "not_found"),
    ],
)
def test_a_request_that_cannot_be_granted_asks_nobody(people: Company, over: dict[str, str], code: str) -> None:
    assert ask_for(people, **over).code == code
    assert not Approval.objects.system().exists()


def test_a_qualified_name_and_a_long_reason(people: Company) -> None:
    assert ask_for(people, tool=" mcp__duduclaw__probe_scoped ", reason="r" * 500).parked is not None
    assert (question().tool, question().summary) == ("probe_scoped", "r" * 300)


def test_a_denied_tool_is_not_asked_for(people: Company) -> None:
    Capabilities.objects.filter(agent=people.owner).update(denied_tools=["probe_*"])
    assert ask_for(people).code == "denied_tools"


def test_the_same_call_waits_for_the_same_question(people: Company) -> None:
    first, again = make_call(people, {"text": "a", "number": 1}), make_call(people, {"number": 1, "text": "a"})
    assert first.parked == again.parked
    assert make_call(people, {"text": "b", "number": 1}).parked != first.parked
    assert Approval.objects.system().count() == 2


def test_a_question_carries_the_task_of_its_round(people: Company) -> None:
    mine, other = card(people.space, assigned_to=people.owner), card(people.space, assigned_to=people.colleague)
    ask_for(people, task_id=mine.id)
    assert question().task_id == mine.id
    make_call(people, round_task=mine.id)
    assert question().task_id == mine.id
    make_call(people, {"text": "foreign"}, round_task=other.id)
    assert question().task_id == ""
    people.tokens["owner"] = key(people.space, "run", agent=people.owner, task_id=mine.id)[1]
    make_call(people, {"text": "run"})
    assert question().task_id == mine.id


@pytest.mark.parametrize(("status", "code"), [("done", "task_finished"), ("needs_human", "task_finished")])
def test_a_grant_is_bound_to_a_running_task_of_ones_own(people: Company, status: str, code: str) -> None:
    assert ask_for(people, task_id=card(people.space, assigned_to=people.owner, status=status).id).code == code
    assert ask_for(people, task_id=card(people.space, assigned_to=people.colleague).id).code == "not_yours"
    assert ask_for(people, task_id=card(people.space).id).code == "not_yours"
    assert not Approval.objects.system().exists()


# ---- deciding


def test_approving_mints_the_grant_and_answers_the_waiting_call(people: Company) -> None:
    task = card(people.space, assigned_to=people.owner)
    parked = ask_for(people, task_id=task.id).parked
    assert parked is not None
    done = decide(people, note="until noon")
    grant = Grant.objects.system().get()
    assert (done.status, done.decided_by, done.note) == ("approved", "operator", "until noon")
    assert (grant.tool, grant.agent, grant.task_id, grant.granted_by, grant.approved_by, grant.approval) == (
        "probe_scoped", people.owner, task.id, "capability_request", "operator", done,
    )  # fmt: skip
    told = ask_for(people, task_id=task.id)
    assert told.structured is not None
    assert (told.structured["status"], told.structured["grant_id"]) == ("approved", grant.id)
    assert 3500 < told.structured["seconds"] <= 3600
    assert question().consumed_at is not None
    assert PolicyChange.objects.system().filter(subject="grant", ref=grant.id, changed_by="operator").exists()


@pytest.mark.parametrize(
    ("by", "code"),
    [("owner", "own_request"), ("colleague", "insufficient_role"), ("viewer", "insufficient_role")],
)
@pytest.mark.parametrize("decision", ["approve", "deny"])
def test_only_people_from_operator_up_decide(people: Company, by: str, code: str, decision: str) -> None:
    ask_for(people)
    assert refused(lambda: decide(people, decision, by)) == code
    assert (question().status, Grant.objects.system().count()) == ("pending", 0)


def test_an_operator_of_the_same_name_as_the_agent_is_another(people: Company) -> None:
    people.tokens["twin"] = key(people.space, "operator", client_id="owner")[1]
    ask_for(people)
    assert decide(people, by="twin").status == "approved"


def test_a_question_of_another_workspace_does_not_exist(people: Company) -> None:
    other = company("other")
    ask_for(people)
    assert refused(lambda: approvals.decide(question(), by=other.who("operator"), decision="deny")) == "not_found"


def test_a_decision_is_approve_or_deny(people: Company) -> None:
    ask_for(people)
    with pytest.raises(InvalidArguments, match="decision: must be approve or deny"):
        decide(people, "Approve")


@pytest.mark.parametrize("first", ["approve", "deny"])
@pytest.mark.parametrize("second", ["approve", "deny"])
def test_V04_a_second_decision_is_refused(people: Company, first: str, second: str) -> None:
    ask_for(people)
    before = decide(people, first)
    assert refused(lambda: decide(people, second, by="manager")) == "already_decided"
    after = question()
    assert (after.status, after.decided_by, after.decided_at) == (before.status, "operator", before.decided_at)
    assert Grant.objects.system().count() == (first == "approve")


def test_a_second_approval_is_already_decided_although_the_task_has_ended(people: Company) -> None:
    task = card(people.space, assigned_to=people.owner)
    ask_for(people, task_id=task.id)
    decide(people)
    Task.objects.system().filter(pk=task.pk).update(status="done")
    assert refused(lambda: decide(people)) == "already_decided"


def test_a_question_past_its_end_is_expired_with_and_without_the_sweep(people: Company) -> None:
    with time_machine.travel(NOW, tick=False) as time:
        ask_for(people)
        time.shift(timedelta(seconds=299))
        assert approvals.state(question(), clock.now()) == "pending"
        time.shift(timedelta(seconds=1))
        assert refused(lambda: decide(people)) == "expired"
        assert approvals.shown(question())["status"] == "expired"
        assert approvals.sweep_expired() == (1, 0)
        assert refused(lambda: decide(people)) == "expired"
        assert approvals.sweep_expired() == (0, 0)
        assert question().status == "expired"


def test_a_failure_after_the_mint_leaves_no_grant_and_no_decision(
    people: Company, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*args: Any) -> None:
        assert Grant.objects.system().count() == 1, "minted before"
        raise RuntimeError("the disk is full")

    ask_for(people)
    monkeypatch.setattr(approvals, "settle", fail)
    with pytest.raises(RuntimeError):
        decide(people)
    assert (question().status, question().decided_by) == ("pending", "")
    assert not Grant.objects.system().exists()
    assert not PolicyChange.objects.system().filter(subject="grant").exists()


# ---- policy beats answers


@pytest.mark.parametrize("changes", [{"denied_tools": ["probe_*"]}, {"scoped_tools": []}])
def test_an_approval_is_judged_again_when_it_is_given(people: Company, changes: dict[str, list[str]]) -> None:
    ask_for(people)
    Capabilities.objects.filter(agent=people.owner).update(**changes)
    assert refused(lambda: decide(people)) == "policy_changed"
    assert (question().status, Grant.objects.system().count()) == ("pending", 0)
    assert decide(people, "deny").status == "denied"


def test_a_denial_in_the_policy_voids_what_is_pending_and_beats_what_is_granted(people: Company) -> None:
    ask_for(people)
    decide(people)
    parked = ask_for(people, reason="once more").parked
    assert parked is not None
    with registry.temporarily(probe("probe_scoped")):
        assert call(CallRequest(lambda: people.who("owner"), "probe_scoped")).outcome == "ok"
        changes = {"capabilities": {"denied_tools": ["probe_scoped"]}}
        policy.update_agent(people.owner, by=people.who("operator"), changes=changes)
        assert call(CallRequest(lambda: people.who("owner"), "probe_scoped")).code == "denied_tools"
    assert (question().status, question().void_reason) == ("void", "policy_changed")
    assert refused(lambda: decide(people)) == "already_decided"
    assert Grant.objects.system().get().revoked_at is None


@pytest.mark.parametrize(
    ("end", "reason"),
    [
        (lambda task, people: end_for_task(task.id, reason="task_stopped"), "task_stopped"),
        (lambda task, people: end_for_holder(task.id, people.owner.id, reason="claim_lost"), "claim_lost"),
    ],
    ids=["stopped", "taken over"],
)
def test_the_end_of_a_task_withdraws_its_questions(people: Company, end: Any, reason: str) -> None:
    task = card(people.space, assigned_to=people.owner)
    ask_for(people, task_id=task.id)
    parked = make_call(people, round_task=task.id).parked
    assert parked is not None
    end(task, people)
    assert set(Approval.objects.system().values_list("status", "void_reason")) == {("void", reason)}
    woken = make_call(people, round_task=task.id, resumed=parked.id)
    assert (woken.is_error, woken.code) == (True, "approval_void")
    assert effects() == []


def test_a_task_that_changed_hands_gets_no_grant_for_its_old_holder(people: Company) -> None:
    task = card(people.space, assigned_to=people.owner)
    ask_for(people, task_id=task.id)
    Task.objects.system().filter(pk=task.pk).update(assigned_to=people.colleague)
    assert refused(lambda: decide(people)) == "not_yours"
    Task.objects.system().filter(pk=task.pk).update(assigned_to=people.owner, status="cancelled")
    assert refused(lambda: decide(people)) == "task_finished"
    assert not Grant.objects.system().exists()


# ---- using an answer


def test_a_denial_is_told_to_the_call_that_waited_and_once_to_the_next(people: Company) -> None:
    parked = make_call(people).parked
    assert parked is not None
    decide(people, "deny", note="not today")
    answer = make_call(people, resumed=parked.id)
    assert answer.code == "approval_denied" and "not today" in answer.content[0]["text"]
    twin = make_call(people, resumed=parked.id)
    assert twin.code == "approval_denied"
    assert make_call(people).parked is not None
    assert effects() == []


def test_nobody_answered(people: Company) -> None:
    with time_machine.travel(NOW, tick=False) as time:
        parked = make_call(people).parked
        assert parked is not None
        time.shift(timedelta(seconds=301))
        assert make_call(people, resumed=parked.id).code == "approval_expired"
        fresh = make_call(people).parked
        assert fresh is not None and fresh.id != parked.id


def test_T19_an_approval_is_good_for_ten_minutes(people: Company) -> None:
    with time_machine.travel(NOW, tick=False) as time:
        make_call(people)
        time.shift(timedelta(seconds=299))
        decide(people)
        time.shift(timedelta(seconds=599))
        assert approvals.state(question(), clock.now()) == "approved"
        time.shift(timedelta(seconds=1))
        assert approvals.state(question(), clock.now()) == "expired"
        assert make_call(people).parked is not None
        assert effects() == []


def test_T19_another_agent_does_not_inherit_an_answer(people: Company) -> None:
    Capabilities.objects.filter(agent=people.colleague).update(approval_required_tools=["probe_ask"])
    make_call(people)
    decide(people)
    with registry.temporarily(probe("probe_ask")):
        assert call(CallRequest(lambda: people.who("colleague"), "probe_ask")).parked is not None
    assert make_call(people).outcome == "ok"
    assert effects() == ["probe_ask"]


def test_what_was_approved_and_used_still_reads_as_approved(people: Company) -> None:
    with time_machine.travel(NOW, tick=False) as time:
        make_call(people)
        decide(people)
        make_call(people)
        time.shift(timedelta(seconds=1))
        ask_for(people)
        decide(people)
        time.shift(timedelta(days=1))
        for row in Approval.objects.system():
            assert approvals.shown(row)["status"] == "approved"
            assert not Approval.objects.system().filter(approvals.lapsed(clock.now()), pk=row.pk).exists()


def test_the_state_and_the_query_for_it_agree(people: Company) -> None:
    now = clock.now()
    for status in (*Approval.Status.values, "odd"):
        for kind in Approval.Kind.values:
            for used in (None, now):
                for end in (now - timedelta(1), now, now + timedelta(1)):
                    Approval.objects.create(
                        workspace=people.space, agent=people.owner, kind=kind, tool="t", call_tool="t", arguments="{}",
                        digest="d", requested_by="owner", requested_at=now, expires_at=end, status=status,
                        consumed_at=used,
                    )  # fmt: skip
    lapsed = set(Approval.objects.system().filter(approvals.lapsed(now)).values_list("pk", flat=True))
    for row in Approval.objects.system():
        said = approvals.state(row, now)
        assert (said == "expired") == (row.pk in lapsed or row.status == "expired")
        assert row.status != "odd" or said == "denied"


def test_a_grant_that_ended_before_it_was_heard_of_is_asked_for_anew(people: Company) -> None:
    ask_for(people)
    decide(people)
    Grant.objects.system().update(revoked_at=clock.now())
    assert ask_for(people).code == "grant_ended"
    assert ask_for(people).parked is not None
