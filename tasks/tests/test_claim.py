"""Claims of one caller after another: leases, takeover, release, and what a claim opens."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import time_machine

from agents.actions.keys import revoke_key
from agents.actions.system import platform
from agents.models import Agent, Capabilities, Grant, Key
from tasks.actions.claim import open_to, take
from tasks.actions.leases import release_claims
from tasks.actions.sweep import sweep_leases
from tasks.models import Activity, Task
from tasks.tests.board import OK, audit_of, card, snapshot, via_mcp
from tests.build import Company, company, key

pytestmark = pytest.mark.django_db
TEN = datetime(2026, 3, 2, 10, 0, tzinfo=UTC)
LEASE = 300


@pytest.fixture
def people() -> Company:
    """owner and colleague related, stranger not, operator."""
    return company()


@pytest.fixture(autouse=True)
def lease(settings: Any) -> None:
    """The shipped length, whatever the environment says."""
    settings.TASK_LEASE_SECONDS = LEASE


def now_of(task: Task) -> Task:
    """The row as it is."""
    return Task.objects.system().get(pk=task.pk)


def claims_of(task: Task) -> list[str]:
    """Who claimed it, in order, by the feed."""
    rows = Activity.objects.system().filter(task=task, event_type="task_claimed").order_by("created_at", "id")
    return list(rows.values_list("actor", flat=True))


def test_K02_a_lapsed_lease_is_taken_over_at_once_and_the_old_holder_hears_so(people: Company) -> None:
    with time_machine.travel(TEN, tick=False) as clock:
        task = card(people.space, status="pending", durable=True)
        assert via_mcp(people, "stranger", "tasks_claim", {"task_id": task.id}).code == OK
        clock.shift(LEASE - 1)
        refused = via_mcp(people, "owner", "tasks_claim", {"task_id": task.id})
        assert (refused.code, refused.body["holder"]) == ("already_claimed", "stranger")
        assert now_of(task).holder == "stranger"
        clock.shift(2)
        assert via_mcp(people, "owner", "tasks_claim", {"task_id": task.id}).code == OK
        before = snapshot()
        for tool, rest in (("tasks_complete", {}), ("tasks_block", {"reason": "late"}), ("tasks_renew", {})):
            late = via_mcp(people, "stranger", tool, {"task_id": task.id, **rest})
            assert (late.code, late.body["holder"]) == ("claim_lost", "owner")
            assert audit_of(tool)[-1]["reason"] == "claim_lost"
        assert snapshot() == before
        held = now_of(task)
        assert (held.status, held.holder, held.assigned_to) == ("in_progress", "owner", people.owner)
        assert held.lease_expires_at == TEN + timedelta(seconds=2 * LEASE + 1)
    assert claims_of(task) == ["stranger", "owner"]


def test_K02_a_lapsed_lease_does_not_open_an_assigned_task_to_strangers(people: Company) -> None:
    with time_machine.travel(TEN, tick=False) as clock:
        task = card(people.space, status="pending", durable=True, assigned_to=people.owner)
        via_mcp(people, "owner", "tasks_claim", {"task_id": task.id})
        clock.shift(LEASE + 1)
        assert via_mcp(people, "stranger", "tasks_claim", {"task_id": task.id}).code == "delegation_denied"
        assert via_mcp(people, "colleague", "tasks_claim", {"task_id": task.id}).code == OK


def test_K02_no_end_of_a_run_leaves_its_claim_behind(people: Company) -> None:
    for end in ("revoked", "expired"):
        row, token = key(people.space, "run", agent=people.stranger, task_id="")
        people.tokens["run"] = token
        task = card(people.space)
        assert via_mcp(people, "run", "tasks_claim", {"task_id": task.id}).code == OK
        assert via_mcp(people, "owner", "tasks_claim", {"task_id": task.id}).code == "already_claimed"
        if end == "revoked":
            revoke_key(row, by=platform(people.space))
        else:
            Key.objects.system().filter(pk=row.pk).update(expires_at=TEN)
        assert via_mcp(people, "owner", "tasks_claim", {"task_id": task.id}).code == OK
        assert now_of(task).holder == "owner"


def test_the_sweep_frees_what_ended_runs_held(people: Company) -> None:
    row, people.tokens["run"] = key(people.space, "run", agent=people.stranger)
    mine, pooled, stuck = card(people.space, assigned_to=people.stranger), card(people.space), card(people.space)
    for task in (mine, pooled, stuck):
        via_mcp(people, "run", "tasks_claim", {"task_id": task.id})
    via_mcp(people, "run", "tasks_block", {"task_id": stuck.id, "reason": "no access"})
    assert sweep_leases() == (0, 0)
    Key.objects.system().filter(pk=row.pk).update(expires_at=TEN)
    assert sweep_leases() == (0, 3)
    assert (now_of(mine).status, now_of(mine).holder, now_of(mine).assigned_to) == ("todo", "", people.stranger)
    assert (now_of(pooled).status, now_of(pooled).holder, now_of(pooled).assigned_to) == ("todo", "", None)
    assert (now_of(stuck).status, now_of(stuck).holder) == ("blocked", "")
    assert sweep_leases() == (0, 0)
    assert Activity.objects.system().filter(event_type="task_released", actor="platform").count() == 3


def test_a_newer_run_of_the_same_agent_keeps_the_claim(people: Company) -> None:
    old, people.tokens["old"] = key(people.space, "run", agent=people.owner)
    _, people.tokens["new"] = key(people.space, "run", agent=people.owner)
    task = card(people.space)
    for run in ("old", "new"):
        assert via_mcp(people, run, "tasks_claim", {"task_id": task.id}).code == OK
    assert claims_of(task) == ["owner"]
    assert release_claims([old.id]) == 0
    assert now_of(task).holder == "owner"


def test_an_agents_own_key_claims_without_an_end(people: Company) -> None:
    task = card(people.space)
    via_mcp(people, "owner", "tasks_claim", {"task_id": task.id})
    assert (now_of(task).claim_key, now_of(task).lease_expires_at) == ("", None)


@pytest.mark.parametrize("status", ["todo", "pending", "revising"])
def test_K01_the_winners_repeat_changes_nothing(people: Company, status: str) -> None:
    task = card(people.space, status=status)
    with time_machine.travel(TEN, tick=False) as clock:
        via_mcp(people, "owner", "tasks_claim", {"task_id": task.id})
        before = snapshot()
        clock.shift(10)
        assert via_mcp(people, "owner", "tasks_claim", {"task_id": task.id}).code == OK
    assert snapshot() == before
    assert claims_of(task) == ["owner"]


def test_a_claim_assigns_and_a_plain_one_has_no_lease(people: Company) -> None:
    plain, durable = card(people.space), card(people.space, status="pending", assigned_to=people.colleague)
    for task in (plain, durable):
        assert via_mcp(people, "owner", "tasks_claim", {"task_id": task.id}).code == OK
        assert (now_of(task).assigned_to, now_of(task).claimed_by) == (people.owner, people.owner)
    assert now_of(plain).lease_expires_at is None
    assert now_of(durable).lease_expires_at is not None


def test_a_person_holds_under_its_own_name(people: Company) -> None:
    task = card(people.space)
    assert via_mcp(people, "operator", "tasks_claim", {"task_id": task.id}).body["claimed_by"] == "operator"
    assert via_mcp(people, "operator", "tasks_claim", {"task_id": task.id}).code == OK
    assert via_mcp(people, "owner", "tasks_claim", {"task_id": task.id}).body["holder"] == "operator"
    assert now_of(task).assigned_to is None


def test_a_person_takes_over_what_needs_one(people: Company) -> None:
    task = card(people.space, status="needs_human", assigned_to=people.owner)
    assert via_mcp(people, "owner", "tasks_claim", {"task_id": task.id}).code == "wrong_status"
    for _ in range(2):
        assert via_mcp(people, "operator", "tasks_claim", {"task_id": task.id}).code == OK
    assert (now_of(task).status, now_of(task).holder) == ("needs_human", "operator")
    people.tokens["second"] = key(people.space, "operator", client_id="second")[1]
    assert via_mcp(people, "second", "tasks_claim", {"task_id": task.id}).body["holder"] == "operator"
    assert claims_of(task) == []


def test_unmet_dependencies_are_listed_and_leave_no_claim(people: Company) -> None:
    first, second, third = (card(people.space, assigned_to=people.owner) for _ in range(3))
    task = card(people.space, status="pending")
    task.depends_on.set([first, second, third])
    via_mcp(people, "owner", "tasks_complete", {"task_id": second.id})
    Task.objects.system().filter(pk=third.pk).update(status="cancelled")
    before = snapshot()
    refused = via_mcp(people, "owner", "tasks_claim", {"task_id": task.id})
    assert (refused.code, refused.body["unmet"]) == ("dependencies_unmet", [first.id, third.id])
    assert snapshot() == before
    Task.objects.system().filter(pk__in=(first.pk, third.pk)).update(status="done")
    assert via_mcp(people, "owner", "tasks_claim", {"task_id": task.id}).code == OK


@pytest.mark.parametrize("status", ["blocked", "review", "done", "failed", "cancelled", "stopped"])
def test_what_waits_for_no_claim_is_refused(people: Company, status: str) -> None:
    task = card(people.space, status=status, assigned_to=people.owner)
    assert via_mcp(people, "owner", "tasks_claim", {"task_id": task.id}).code in ("wrong_status", "stopped_root")


def test_a_renewal_is_another_full_lease_from_now(people: Company) -> None:
    with time_machine.travel(TEN, tick=False) as clock:
        task = card(people.space, status="pending")
        via_mcp(people, "owner", "tasks_claim", {"task_id": task.id})
        clock.shift(LEASE - 1)
        body = via_mcp(people, "owner", "tasks_renew", {"task_id": task.id}).body
        assert body["lease_expires_at"] == "2026-03-02T10:09:59.000000Z"
        clock.shift(LEASE + 1)
        assert via_mcp(people, "owner", "tasks_renew", {"task_id": task.id}).code == OK
        assert via_mcp(people, "colleague", "tasks_claim", {"task_id": task.id}).code == "already_claimed"


@pytest.mark.parametrize("person", ["colleague", "stranger", "operator"])
def test_nobody_but_the_holder_renews(people: Company, person: str) -> None:
    task = card(people.space, status="pending")
    via_mcp(people, "owner", "tasks_claim", {"task_id": task.id})
    before = snapshot()
    assert via_mcp(people, person, "tasks_renew", {"task_id": task.id}).code == "not_the_holder"
    assert snapshot() == before


def granted(agent: Agent) -> list[str]:
    """The tools of an agent's running grants."""
    return sorted(Grant.objects.system().filter(agent=agent, revoked_at=None).values_list("tool", flat=True))


def test_a_claim_mints_what_a_person_put_on_the_card(people: Company) -> None:
    Capabilities.objects.filter(agent=people.owner).update(scoped_tools=["activity_post"])
    assert via_mcp(people, "owner", "activity_post", {"summary": "x"}).code == "capability_grant_missing"
    tags = "grant:activity_post, plain, grant:activity_post, grant:, grant:tasks_list"
    body = via_mcp(people, "operator", "tasks_create", {"title": "Report", "tags": tags}).body
    via_mcp(people, "owner", "tasks_claim", {"task_id": body["id"]})
    assert granted(people.owner) == ["activity_post", "tasks_list"]
    assert set(Grant.objects.system().values_list("granted_by", "task_id")) == {("task_claim", body["id"])}
    assert via_mcp(people, "owner", "activity_post", {"summary": "x"}).code == OK
    via_mcp(people, "owner", "tasks_claim", {"task_id": body["id"]})
    assert len(granted(people.owner)) == 2
    via_mcp(people, "owner", "tasks_complete", {"task_id": body["id"]})
    assert granted(people.owner) == []
    assert via_mcp(people, "owner", "activity_post", {"summary": "x"}).code == "capability_grant_missing"


def test_a_takeover_moves_the_grants_to_the_new_holder(people: Company) -> None:
    with time_machine.travel(TEN, tick=False) as clock:
        task = card(people.space, status="pending", tags=["grant:tasks_list"])
        for person in ("stranger", "owner"):
            via_mcp(people, person, "tasks_claim", {"task_id": task.id})
            clock.shift(LEASE + 1)
        assert granted(people.stranger) == []
        assert granted(people.owner) == ["tasks_list"]
        assert Grant.objects.system().get(agent=people.stranger).revoke_reason == "claim_lost"
        via_mcp(people, "owner", "tasks_claim", {"task_id": task.id})
        assert granted(people.owner) == ["tasks_list"]


@pytest.mark.parametrize(
    "meanwhile",
    [
        {"holder": "owner", "status": "in_progress"},
        {"status": "cancelled"},
        {"assigned_to": "owner"},
        {"holder": "owner"},
    ],
)
def test_a_claim_on_what_is_no_longer_so_writes_nothing(people: Company, meanwhile: dict[str, str]) -> None:
    """What a racer does that read before the winner's commit, on any engine."""
    task, who = card(people.space, status="pending"), people.who("stranger")
    where = open_to(task, who)
    changes = {name: people.owner if name == "assigned_to" else value for name, value in meanwhile.items()}
    Task.objects.system().filter(pk=task.pk).update(**changes)
    before = snapshot()
    assert not take(task, who, where)
    assert snapshot() == before


def test_a_takeover_of_a_lease_that_was_renewed_meanwhile_writes_nothing(people: Company) -> None:
    with time_machine.travel(TEN, tick=False) as clock:
        task = card(people.space, status="pending")
        via_mcp(people, "owner", "tasks_claim", {"task_id": task.id})
        clock.shift(LEASE + 1)
        seen, who = now_of(task), people.who("stranger")
        where = open_to(seen, who)
        via_mcp(people, "owner", "tasks_renew", {"task_id": task.id})
        assert not take(seen, who, where)
        assert now_of(task).holder == "owner"
