"""What the calling agent keeps between its wakes."""

from typing import Annotated, Any

from pydantic import Field

from duduclaw.knowledge import working_state as reads
from duduclaw.knowledge.actions import handoff, working_state
from mcp.context import Call
from mcp.params import Int, Text
from mcp.registry import tool

Key = Annotated[Text, Field(description="Name matching ^[a-z0-9][a-z0-9._-]{0,63}$.")]
Reason = Annotated[Text, Field(description="Why, one line of 1 to 200 characters; kept in the history.")]


@tool(family="working_state", scope="memory:read", process_agent=True, read_only=True, idempotent=True)
def working_state_get(
    call: Call, *, history_limit: Annotated[Int, Field(ge=1, le=100, description="History rows, 1 to 100.")] = 20
) -> dict[str, Any]:
    """Reads the caller's whole lasting state: keys, expired ones marked, the handoff note and recent history.
    Refused to callers that are no agent."""
    return reads.whole(call.who, history_limit)


@tool(family="working_state", scope="memory:write", process_agent=True, idempotent=True)
def working_state_set(
    call: Call,
    *,
    key: Key,
    value: Annotated[Text, Field(description="One line of 1 to 400 characters.")],
    reason: Reason,
    ttl_hours: Annotated[Int | None, Field(description="Hours until it expires, 1 to 720; never when absent.")] = None,
    expected_value: Annotated[
        Text | None, Field(description="Write only if this is the present value; empty: only if the key is not set.")
    ] = None,
) -> dict[str, Any]:
    """Sets one of at most 32 keys of the caller's state that survives between wakes.
    Refused when expected_value does not match, and to callers that are no agent."""
    wanted = working_state.Wanted(key, value, reason, ttl_hours, expected_value)
    return reads.key_card(working_state.set_key(wanted, by=call.who))


@tool(family="working_state", scope="memory:write", process_agent=True, idempotent=True)
def working_state_clear(call: Call, *, key: Key, reason: Reason) -> dict[str, Any]:
    """Retires one key of the caller's lasting state and keeps the reason in the history.
    Refused to callers that are no agent."""
    return {"key": key, "cleared": working_state.clear_key(key, reason, by=call.who)}


@tool(family="working_state", scope="memory:write", process_agent=True, idempotent=True)
def working_state_handoff(
    call: Call,
    *,
    note: Annotated[Text, Field(description="The note; without status it is cut at about 1,200 characters.")],
    status: Annotated[Text | None, Field(description="continue, complete or blocked; turns validation on.")] = None,
    next_steps: Annotated[
        Text | None, Field(description="What comes next; needed for continue, refused for complete.")
    ] = None,
    evidence: Annotated[Text | None, Field(description="Proof that can be checked; needed for complete.")] = None,
    blocker: Annotated[
        Text | None, Field(description="What is in the way; needed for blocked, refused otherwise.")
    ] = None,
) -> dict[str, Any]:
    """Overwrites the note to the caller's next wake.
    With status it is validated; an inconsistent or oversized one is refused whole, never cut."""
    given = handoff.Note(note, status or "", next_steps or "", evidence or "", blocker or "")
    return reads.handoff_summary(handoff.leave_handoff(given, by=call.who))
