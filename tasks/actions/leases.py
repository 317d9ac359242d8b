"""How a claim goes on and how it is lost: renewal by its holder, release when its run is over."""

from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.db.models import Q

from agents.actions.grants import end_for_holder
from agents.actions.system import platform
from agents.relations import check_identity
from duduclaw.lib import clock
from mcp.errors import Refused
from mcp.policy import Who
from tasks.actions import moves
from tasks.models import Task
from tasks.render import label

Status = Task.Status


def live_run(now: datetime) -> Q:
    """Keys that still open something."""
    return Q(revoked_at=None, expires_at__gt=now)


def renew_lease(ref: str, *, by: Who) -> Task:
    """Another full lease from now for the holder of a task in progress; a lapsed one too, while nobody took it."""
    with transaction.atomic():
        task = moves.find_task(by, ref)
        check_identity(by)
        if moves.lost_claim(task, by):
            raise moves.claim_lost(task)
        if not moves.is_holder(task, by) or task.status != Status.IN_PROGRESS:
            raise Refused("not_the_holder", f"you hold no claim of {label(task)}", target=task.holder or None)
        if task.lease_expires_at is None:
            raise Refused("no_lease", f"the claim of {label(task)} has no lease and needs no renewal")
        lease = clock.now() + timedelta(seconds=moves.lease_seconds())
        mine = Task.objects.for_who(by).filter(
            pk=task.pk, status=Status.IN_PROGRESS, holder=task.holder, claimed_by_id=task.claimed_by_id
        )
        if not mine.update(lease_expires_at=lease, updated_at=clock.now()):
            raise moves.claim_lost(moves.find_task(by, ref))
        task.lease_expires_at = lease
    return task


def release_claims(keys: list[str]) -> int:
    """Free the plain tasks that ended run keys held: nobody works on them any more. Answers how many."""
    rows = Task.objects.system().filter(claim_key__in=keys).exclude(claim_key="").order_by("id")
    return sum(release(task.pk) for task in rows)


def release(pk: str) -> bool:
    """Put one plain task back as it was before its claim."""
    with transaction.atomic():
        task = Task.objects.system().select_for_update().get(pk=pk)
        if not task.claim_key or task.status not in (Status.IN_PROGRESS, Status.BLOCKED):
            return False
        by, holder = platform(task.workspace), task.holder
        to = Status.TODO if task.status == Status.IN_PROGRESS else Status.BLOCKED
        end_for_holder(task.id, task.claimed_by_id, reason="claim_lost")
        moves.move(task, by, to, "task_released", f"the run of {holder} ended", note={"holder": holder}, **lose(task))
    return True


def lose(task: Task) -> dict[str, Any]:
    """The columns of a task whose claim is gone; one that was unassigned before is so again."""
    return moves.FREE | {"pooled": False} | ({"assigned_to": None} if task.pooled else {})
