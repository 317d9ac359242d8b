"""Work given to agents (AACWorkflow)."""

from typing import Annotated, Any

from pydantic import Field

from mcp.context import Call
from mcp.params import Text
from mcp.registry import tool
from tasks.actions import issues
from tasks.issue_render import issue_card


@tool(family="agents", scope="agents:write", idempotent=True)
def assign_issue_to_agent(
    call: Call,
    *,
    issue_id: Annotated[Text, Field(description="UUID, or key such as AAC-42.")],
    agent_id: Annotated[Text, Field(description="Name of an agent of the workspace.")],
) -> dict[str, Any]:
    """Gives an issue to an agent and queues its wake; the same call again changes nothing.
    No runner takes the queue yet."""
    issue, wake = issues.assign_issue(issue_id, agent_id, by=call.who)
    return {
        "issue": issue_card(issue),
        "wake_id": wake.id,
        "wake_state": wake.state,
        "note": "the wake is queued; this server does not run wakes yet, so the agent starts when it next looks",
    }
