"""The sweep of lapsed leases."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import time_machine

from agents.models import Grant
from tasks import jobs
from tasks.actions.sweep import SPENT, reclaim, sweep_leases
from tasks.models import Activity, Task
from tasks.tests.board import OK, card, via_mcp
from tests.build import Company, company

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
    return Task.objects.system().get(pk=task.pk)


def test_it_waits_one_more_lease_and_then_requeues(people: Company) -> None:
    with time_machine.travel(TEN, tick=False) as clock:
        task = card(people.space, status="pending", durable=True, tags=["grant:tasks_list"], max_retries=1)
        via_mcp(people, "owner", "tasks_claim", {"task_id": task.id})
        clock.shift(2 * LEASE - 1)
        assert sweep_leases() == (0, 0)
        clock.shift(1)
        assert sweep_leases() == (1, 0)
        again = now_of(task)
        assert (again.status, again.retries, again.holder, again.assigned_to) == ("pending", 1, "", None)
        assert (again.lease_expires_at, again.claimed_by, again.pooled) == (None, None, False)
        assert Grant.objects.system().get().revoke_reason == "claim_lost"
        assert sweep_leases() == (0, 0)
        via_mcp(people, "stranger", "tasks_claim", {"task_id": task.id})
        clock.shift(2 * LEASE)
        assert sweep_leases() == (1, 0)
    failed = now_of(task)
    assert (failed.status, failed.blocked_reason, failed.lease_expires_at) == ("failed", SPENT, None)
    assert failed.finished_at == TEN + timedelta(seconds=4 * LEASE)
    assert Grant.objects.system().filter(revoked_at=None).count() == 0
    lines = Activity.objects.system().filter(actor="platform").order_by("created_at")
    assert list(lines.values_list("event_type", flat=True)) == ["task_requeued", "task_failed"]


def test_an_assigned_task_stays_with_its_assignee(people: Company) -> None:
    with time_machine.travel(TEN, tick=False) as clock:
        task = card(people.space, status="pending", assigned_to=people.owner)
        via_mcp(people, "owner", "tasks_claim", {"task_id": task.id})
        clock.shift(2 * LEASE)
        sweep_leases()
    assert now_of(task).assigned_to == people.owner


def test_a_late_renewal_wins(people: Company) -> None:
    with time_machine.travel(TEN, tick=False) as clock:
        task = card(people.space, status="pending")
        via_mcp(people, "owner", "tasks_claim", {"task_id": task.id})
        scanned = now_of(task).lease_expires_at
        clock.shift(2 * LEASE)
        assert via_mcp(people, "owner", "tasks_renew", {"task_id": task.id}).code == OK
        assert scanned is not None
        assert not reclaim(task.id, scanned)
        assert sweep_leases() == (0, 0)
    assert now_of(task).holder == "owner"


def test_tasks_without_a_lease_are_never_reclaimed(people: Company) -> None:
    with time_machine.travel(TEN, tick=False) as clock:
        task = card(people.space)
        via_mcp(people, "owner", "tasks_claim", {"task_id": task.id})
        clock.shift(1_000 * LEASE)
        assert sweep_leases() == (0, 0)
    assert now_of(task).holder == "owner"


def test_the_job_calls_the_action(people: Company) -> None:
    task = card(
        people.space,
        status="in_progress",
        claimed_by=people.owner,
        assigned_to=people.owner,
        lease_expires_at=TEN,
    )
    jobs.sweep_leases()
    assert now_of(task).status == "pending"
