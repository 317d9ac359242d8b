"""An agent asks for one of its scoped tools; a person's answer mints the grant, this answers the waiting call."""

from typing import Any

from agents.actions import approvals
from agents.models import Approval, Grant
from duduclaw.lib import clock
from mcp import matching
from mcp.context import Call
from mcp.errors import InvalidArguments, Parked, Refused
from mcp.policy import Who
from tasks.models import Task

REASON = 300


def capability(call: Call, tool: str, reason: str, task_id: str) -> dict[str, Any] | Parked:
    """File the question, wait for it, and report the grant. Each refusal leaves no grant."""
    tool = matching.bare(tool.strip())
    if not tool:
        raise InvalidArguments("Invalid parameter tool: must not be blank", "tool")
    if not reason.strip():
        raise InvalidArguments("Invalid parameter reason: must not be blank", "reason")
    refuse_needless(call.who, tool)
    bound = bound_task(call, task_id)
    kind = Approval.Kind.CAPABILITY_GRANT
    answer = approvals.answer(call, kind, lambda: approvals.ask(call, kind, tool, reason.strip()[:REASON], bound))
    if isinstance(answer, Parked):
        return answer
    if not approvals.consume(answer):
        raise Refused("approval_used", "another call used this approval", approval_id=answer.id)
    return granted(answer)


def refuse_needless(who: Who, tool: str) -> None:
    """Only a scoped tool can be granted, to an agent, and never against a denial."""
    if not who.is_agent:
        raise Refused("not_an_agent", "only an agent can ask for a capability")
    if matching.first(who.scoped, tool) is None:
        raise Refused("not_scoped", f"{tool} is not on your scoped_tools list: no grant is needed or possible")
    if matching.first(who.denied, tool) is not None:
        raise Refused("denied_tools", f"{tool} is on your denied_tools list, which a grant does not lift")


def bound_task(call: Call, asked: str) -> str:
    """The task that the grant ends with: the one named, else the round's, else none (then only its time ends it)."""
    ref = asked or call.who.task or call.round_task or ""
    if not ref:
        return ""
    task = Task.objects.for_who(call.who).named(ref).first()
    if task is None:
        raise Refused("not_found", "no such task")
    if call.who.agent not in (task.assigned_to_id, task.claimed_by_id):
        raise Refused("not_yours", "a grant can be bound only to a task that you hold; claim it first")
    if task.status in Task.GRANTS_END:
        raise Refused("task_finished", "this task has ended")
    return str(task.id)


class GrantEnded(Refused):
    """The grant was minted and has ended before the agent heard of it; the next call asks anew."""

    def __init__(self, approval: Approval) -> None:
        self.row = approval
        super().__init__("grant_ended", "the grant has ended already; ask again", approval_id=approval.id)

    def settle(self) -> None:
        approvals.consume(self.row)


def granted(approval: Approval) -> dict[str, Any]:
    """What the agent is told: how long, until which task ends, and the grant's id."""
    held = Grant.objects.system().filter(agent=approval.agent_id, tool=approval.tool, task_id=approval.task_id)
    grant = held.active(clock.now()).order_by("-expires_at").first()
    if grant is None:
        raise GrantEnded(approval)
    return {
        "status": "approved",
        "approval_id": approval.id,
        "grant_id": grant.id,
        "tool": grant.tool,
        "task_id": grant.task_id or None,
        "seconds": int((grant.expires_at - clock.now()).total_seconds()),
        "expires_at": clock.stamp(grant.expires_at),
    }
