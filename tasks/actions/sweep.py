"""What nobody came back for: lapsed leases, and plain claims of runs that are over."""

from datetime import datetime, timedelta

from django.db import transaction

from agents.actions.grants import end_for_holder
from agents.actions.system import platform
from agents.models import Key
from duduclaw.lib import clock
from tasks.actions import moves
from tasks.actions.leases import live_run, lose, release_claims
from tasks.models import Task

Status = Task.Status
CHUNK = 50
SPENT = "the lease ran out and no retries are left"


def sweep_leases() -> tuple[int, int]:
    """Reclaim tasks whose lease passed a whole lease ago, and free claims of ended runs: (reclaimed, freed)."""
    now = clock.now()
    due = now - timedelta(seconds=moves.lease_seconds())
    scanned = Task.objects.system().lapsed(due).order_by("lease_expires_at").values_list("pk", "lease_expires_at")
    reclaimed = sum(reclaim(pk, lease) for pk, lease in scanned[:CHUNK])
    return reclaimed, release_claims(ended_runs(now))


def reclaim(pk: str, lease: datetime) -> bool:
    """Back to the queue while retries are left, else failed; False when a renewal or a takeover was first."""
    with transaction.atomic():
        task = Task.objects.system().select_for_update().filter(pk=pk, lease_expires_at=lease).first()
        if task is None or task.status != Status.IN_PROGRESS:
            return False
        by, note = platform(task.workspace), {"holder": task.holder}
        if task.retries < task.max_retries:
            end_for_holder(task.id, task.claimed_by_id, reason="claim_lost")
            changes = lose(task) | {"retries": task.retries + 1}
            moves.move(task, by, Status.PENDING, "task_requeued", "the lease ran out", note=note, **changes)
        else:
            changes = {"lease_expires_at": None, "blocked_reason": SPENT}
            moves.move(task, by, Status.FAILED, "task_failed", SPENT, note=note, **changes)
    return True


def ended_runs(now: datetime) -> list[str]:
    """The run keys that are over and still stand on a task that is held."""
    held = Task.objects.system().filter(status__in=(Status.IN_PROGRESS, Status.BLOCKED)).exclude(claim_key="")
    keys = set(held.values_list("claim_key", flat=True))
    alive = Key.objects.system().filter(live_run(now), pk__in=keys).values_list("pk", flat=True)
    return sorted(keys - set(alive))[:CHUNK]
