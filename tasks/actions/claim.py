"""Claims: one winner, by one UPDATE whose WHERE names the task's own columns. A lapsed lease is taken over."""

from datetime import timedelta
from typing import Any

from django.db import transaction
from django.db.models import F

from agents.actions.grants import end_for_holder, mint
from agents.models import Agent, Grant, Key
from agents.relations import check_identity, check_record
from duduclaw.lib import clock
from mcp.errors import Refused
from mcp.policy import Who
from tasks.actions import moves
from tasks.actions.dependencies import refuse_unmet
from tasks.actions.leases import live_run, release_claims
from tasks.actions.parents import refuse_stopped
from tasks.actions.tags import granted_tools
from tasks.models import Task
from tasks.render import label

Status = Task.Status


def claim_task(ref: str, *, by: Who) -> Task:
    """Take a task for the caller. A repeat by its holder changes nothing.

    Raises `already_claimed` naming the holder, `dependencies_unmet`, `assigned_to_other`, `wrong_status`,
    `stopped_root`, or a refusal of the record check.
    """
    with transaction.atomic():
        task = freed(moves.find_task(by, ref))
        check_identity(by)
        if moves.is_holder(task, by) and (held(task) or task.status == Status.NEEDS_HUMAN):
            return keep(task, by)
        if held(task):
            raise moves.already_claimed(task)
        old, where = task, open_to(task, by)
        refuse_stopped(task, "claimed")
        if not take(task, by, where):
            raise lost_race(by, task)
        task = moves.find_task(by, task.id)
        refuse_unmet(task, "claimed")
        hand_over(task, by, old)
    return task


def held(task: Task) -> bool:
    """Whether somebody holds the task and nobody else may take it."""
    return (
        bool(task.holder)
        and task.status == Status.IN_PROGRESS
        and (not task.lease_expires_at or moves.lease_lives(task))
    )


def freed(task: Task) -> Task:
    """The task, first freed when the run that held it without a lease is over."""
    if (
        task.claim_key
        and held(task)
        and not Key.objects.system().filter(live_run(clock.now()), pk=task.claim_key).exists()
    ):
        release_claims([task.claim_key])
        task.refresh_from_db()
    return task


def keep(task: Task, by: Who) -> Task:
    """The holder's repeat: the same claim. A newer run of the agent answers for a plain one from now on."""
    key = run_key(by)
    if task.lease_expires_at is None and task.claim_key != key:
        same = Task.objects.for_who(by).filter(pk=task.pk, holder=task.holder, claim_key=task.claim_key)
        same.update(claim_key=key)
    return task


def run_key(by: Who) -> str:
    """The key whose end frees a plain claim: a run's, no other."""
    return by.key if by.kind == "run" else ""


def open_to(task: Task, by: Who) -> dict[str, Any]:
    """What the row must still be for this caller's claim to win. Raises when the caller may not claim it at all."""
    lapsed = task.status == Status.IN_PROGRESS
    owner = None if lapsed and task.pooled else task.assigned_to
    if owner is not None:
        check_record(by, owner, what=label(task))
    same = {"status": task.status, "assigned_to_id": task.assigned_to_id, "holder": task.holder}
    if lapsed and task.holder:
        return same | {"lease_expires_at__lte": clock.now()}
    takeover = task.status == Status.NEEDS_HUMAN and by.is_human
    if task.status not in (Status.TODO, Status.PENDING, Status.REVISING) and not takeover:
        raise moves.wrong_status(task, "claimed")
    if takeover and task.holder:
        raise moves.already_claimed(task)
    if task.status == Status.TODO and owner is not None and by.is_agent and owner.id != by.agent:
        raise Refused(
            "assigned_to_other",
            f"{label(task)} is a plain task of {owner.name}; take it over with tasks_update assigned_to first",
            target=owner.name,
        )
    return same | {"holder": ""}


def take(task: Task, by: Who, where: dict[str, Any]) -> bool:
    """The one UPDATE; False for every racer but the first."""
    now = clock.now()
    leased = task.status not in (Status.TODO, Status.NEEDS_HUMAN)
    changes = {
        "status": Status.NEEDS_HUMAN if task.status == Status.NEEDS_HUMAN else Status.IN_PROGRESS,
        "holder": by.name,
        "claimed_by": by.agent or None,
        "claim_key": "" if leased else run_key(by),
        "lease_expires_at": now + timedelta(seconds=moves.lease_seconds()) if leased else None,
        "pooled": task.pooled or task.assigned_to_id is None,
        "updated_at": now,
    }
    if by.agent:
        changes["assigned_to"] = by.agent
    row = Task.objects.for_who(by).filter(pk=task.pk, **where)
    return bool(row.update(version=F("version") + 1, **changes))


def lost_race(by: Who, task: Task) -> Refused:
    """What to tell a caller whose UPDATE met another row than it had read."""
    now = moves.find_task(by, task.id)
    if held(now):
        return moves.already_claimed(now)
    return Refused("stale", f"{label(now)} has changed meanwhile; claim it again")


def hand_over(task: Task, by: Who, old: Task) -> None:
    """After a won claim: the old holder's grants end, `grant:` tags open for the new one, the feed says so."""
    taken = {"from": old.holder} if old.holder and not moves.is_holder(old, by) else {}
    if taken:
        end_for_holder(task.id, old.claimed_by_id, reason="claim_lost")
    tools = granted_tools(task.tags) if by.agent else []
    if tools:
        agent = Agent.objects.for_who(by).select_related("capabilities").get(pk=by.agent)
        for tool in tools:
            mint(agent, tool, task_id=task.id, source=Grant.Source.TASK_CLAIM, by=by)
    event = "task_taken_over" if task.status == Status.NEEDS_HUMAN else "task_claimed"
    moves.tell(by, task, event, f"{by.name} claimed {label(task)}", **taken)
