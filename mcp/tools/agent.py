"""The directory of agents: who is there, and how one is set up."""

from typing import Annotated, Any

from pydantic import Field

from agents import directory
from mcp import results
from mcp.context import Call
from mcp.errors import Refused
from mcp.params import Bool, Text
from mcp.registry import tool


@tool(family="agent", scope="admin", read_only=True, idempotent=True)
def list_agents(
    call: Call,
    *,
    include_archived: Annotated[Bool, Field(description="Also show paused and terminated agents.")] = False,
) -> dict[str, Any]:
    """Lists the agents that the caller may know of, with role, state and whom they report to.
    Removed ones never show."""
    lines = directory.lines(directory.known(call.who, archived=include_archived), call.who)
    kept = results.fit(lines, len(lines))
    return {"agents": kept, "count": len(kept), "truncated": len(kept) < len(lines)}


@tool(family="agent", scope="admin", read_only=True, idempotent=True)
def agent_status(call: Call, *, agent_id: Annotated[Text, Field(description="Name of the agent.")]) -> dict[str, Any]:
    """Shows one agent's state and configuration.
    Refused for a name that does not exist or that the caller may not know of."""
    agent = directory.find(call.who, agent_id)
    if agent is None:
        raise Refused("not_found", "no such agent")
    return directory.card(agent, call.who)
