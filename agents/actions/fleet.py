"""Stop work, and release it. A stop is a row that gate G1 reads: the next call is refused."""

import time
from typing import Any, NamedTuple

from django.db import transaction
from django.db.models import Q

from agents import relations
from agents.actions import policy, roles
from agents.actions.history import record
from agents.models import Agent, FleetStop, Role
from duduclaw import events
from duduclaw.lib import clock
from mcp.errors import InvalidArguments, Refused
from mcp.policy import Who

Scope = FleetStop.Scope
REASON = 500


class Target(NamedTuple):
    """What a stop is about; `name` is "" for the whole workspace."""

    scope: str
    name: str

    @property
    def words(self) -> str:
        """As a caller names it without doubt: `all`, `department:research`, `agent:lead`."""
        return self.scope if self.scope == Scope.ALL else f"{self.scope}:{self.name}"


def stop(*, by: Who, scope: str, reason: str) -> dict[str, Any]:
    """Stop `all`, a department or an agent; a name that is both stops both. Stopping twice changes nothing.

    -> `{"stopped": living agents that stand still by it, "still_moving": names, "seconds": float}`. An agent may
    stop itself and those below it, a person with the role operator everything.
    """
    started = time.perf_counter()
    reason = reason.strip()
    if not 0 < len(reason) <= REASON:
        raise InvalidArguments(f"Invalid parameter reason: must have 1 to {REASON} characters", "reason")
    with transaction.atomic():
        policy.lock(by)
        targets = resolve(by, scope)
        for target in targets:
            put(by, target, reason)
    return report(by, targets, started)


def release(*, by: Who, scope: str) -> dict[str, Any]:
    """End the stop of exactly that scope; wider and narrower ones stay. People only.

    The answer has the shape of `stop`: `stopped` counts agents of the scope that another stop still holds.
    """
    started = time.perf_counter()
    roles.need(by, Role.OPERATOR, "releasing a stop")
    with transaction.atomic():
        policy.lock(by)
        targets = [target for target in named(scope) if standing(by, target).exists()]
        if not targets:
            raise Refused("not_stopped", f"{scope[:64]} is not stopped")
        for target in targets:
            lift(by, target)
    return report(by, targets, started)


def named(scope: str) -> list[Target]:
    """What a scope may mean: `all`, a bare name (a department, an agent or both), or one with its kind before it."""
    if scope == Scope.ALL:
        return [Target(Scope.ALL, "")]
    both = [Target(Scope.DEPARTMENT, scope), Target(Scope.AGENT, scope)]
    kind, separator, name = scope.partition(":")
    if separator and kind in (Scope.DEPARTMENT, Scope.AGENT):
        both.append(Target(kind, name))
    return [target for target in both if target.name]


def resolve(by: Who, scope: str) -> list[Target]:
    """The targets that exist and that the caller may stop. Absent and foreign names read alike."""
    targets = named(scope)
    if by.is_agent:
        return [below(by, targets)]
    roles.need(by, Role.OPERATOR, "stopping work")
    found = [target for target in targets if target.scope == Scope.ALL or of(by, [target]).exists()]
    if not found:
        raise Refused("not_found", "no department and no agent of that name")
    return found


def below(by: Who, targets: list[Target]) -> Target:
    """The one agent that an agent may stop: itself or one below it."""
    if targets and targets[0].scope == Scope.ALL:
        raise Refused(
            "delegation_denied",
            "stopping all needs a person; name yourself or an agent below you",
            reason="needs_human",
        )
    agents = [target.name for target in targets if target.scope == Scope.AGENT]
    mine = Agent.objects.for_who(by).living().filter(name__in=agents, id__in=relations.subtree(by)).first()
    if mine is None:
        raise Refused(
            "delegation_denied",
            "an agent may stop itself and the agents below it; departments need a person",
            reason="no_hierarchy_relation",
        )
    return Target(Scope.AGENT, mine.name)


def of(by: Who, targets: list[Target]) -> Any:
    """The living agents that some targets hold still."""
    wanted = Q(pk__in=[])
    for target in targets:
        wanted |= {
            Scope.ALL: ~Q(pk__in=[]),
            Scope.DEPARTMENT: Q(department=target.name),
            Scope.AGENT: Q(name=target.name),
        }[Scope(target.scope)]
    return Agent.objects.for_who(by).living().filter(wanted)


def standing(by: Who, target: Target) -> Any:
    """The stop of a target that no one has released."""
    return FleetStop.objects.for_who(by).filter(scope=target.scope, target=target.name, released_at=None)


def put(by: Who, target: Target, reason: str) -> None:
    """Write the stop, unless it stands."""
    if standing(by, target).exists():
        return
    made = FleetStop.objects.create(
        workspace_id=by.workspace,
        scope=target.scope,
        target=target.name,
        reason=reason,
        stopped_by=by.name,
        stopped_at=clock.now(),
    )
    record(by, "stop", made.id, target.words, "stopped", None, reason)
    events.publish("policy", workspace=by.workspace)


def lift(by: Who, target: Target) -> None:
    """End the stop of a target."""
    now = clock.now()
    for row in standing(by, target):
        FleetStop.objects.for_who(by).filter(pk=row.pk, released_at=None).update(released_by=by.name, released_at=now)
        record(by, "stop", row.id, target.words, "released", row.reason, None)
    events.publish("policy", workspace=by.workspace)


def report(by: Who, targets: list[Target], started: float) -> dict[str, Any]:
    """How many agents of the targets stand still now. Nothing runs between calls yet, so none is still moving."""
    stops = FleetStop.objects.for_who(by).filter(released_at=None)
    held = [Target(stop.scope, stop.target) for stop in stops]
    count = of(by, targets).filter(pk__in=of(by, held).values("pk")).count()
    return {"stopped": count, "still_moving": [], "seconds": round(time.perf_counter() - started, 3)}
