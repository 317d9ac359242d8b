"""Asking a person, answering as one, and stopping everything."""

from typing import Annotated, Any

from pydantic import Field

from agents.actions import approvals, fleet, requests
from agents.models import Approval
from mcp.context import Call
from mcp.errors import Parked, Refused
from mcp.params import Text
from mcp.registry import tool


@tool(family="approval", scope="admin", asks_person=True)
def capability_request(
    call: Call,
    *,
    tool: Annotated[Text, Field(description="Name of the tool wanted; it must be on the caller's scoped_tools list.")],
    reason: Annotated[Text, Field(description="Why it is needed now; the person who decides reads it.")],
    task_id: Annotated[
        Text | None, Field(description="Task that the grant ends with; the current round's task when absent.")
    ] = None,
) -> dict[str, Any] | Parked:
    """Asks a person for a temporary grant of a scoped tool and waits for the answer.
    Refused for tools that are not on the caller's scoped_tools list."""
    return requests.capability(call, tool, reason, task_id or "")


@tool(family="approval", scope="admin", human_only=True)
def tool_approve(
    call: Call,
    *,
    approval_id: Annotated[Text, Field(description="Id of the pending approval.")],
    decision: Annotated[Text, Field(description="approve or deny.")],
    note: Annotated[Text | None, Field(description="Shown to the requester, at most 300 characters.")] = None,
) -> dict[str, Any]:
    """Decides one pending approval for good.
    Refused to agents, to the requester, and when it was decided or has expired."""
    row = Approval.objects.for_who(call.who).filter(pk=approval_id).first()
    if row is None:
        raise Refused("not_found", "no such approval")
    return approvals.shown(approvals.decide(row, by=call.who, decision=decision, note=note or ""))


@tool(family="approval", scope="admin", idempotent=True, relation=True)
def emergency_stop(
    call: Call,
    *,
    reason: Annotated[Text, Field(description="Why; every operator reads it.", min_length=1, max_length=500)],
    scope: Annotated[
        Text, Field(description="all, a department or an agent; an agent may name itself or one below it.")
    ] = "all",
) -> dict[str, Any]:
    """Stops work at once: further calls are refused until a person releases it.
    An agent may stop itself and its subtree only."""
    return fleet.stop(by=call.who, scope=scope, reason=reason)
