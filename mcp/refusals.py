"""Every text that a gate or a per-call check answers, in one place (kept by a snapshot test)."""

from dataclasses import dataclass
from typing import Any

DENIED = -32003
UNAVAILABLE = -32601
INVALID = -32602
REDACTED = -32007
RATE = -32029
CONFIRM = "confirm: true required for destructive operations"


@dataclass(frozen=True, slots=True)
class Refusal:
    """One refusal: JSON-RPC `code`, audit class `error`, the `gate` that closed and the text for the caller."""

    code: int
    error: str
    gate: str
    text: str

    def data(self, tool: str) -> dict[str, Any]:
        """The JSON-RPC `data` member."""
        return {"error": self.error, "gate": self.gate, "tool": tool}


SWITCH_TEXTS = {
    "google_workspace": "Google Workspace is off in this workspace's settings ([integrations] google_workspace).",
    "github": "GitHub is off in this workspace's settings ([integrations] github).",
    "responsibilities": "Responsibilities are off in this workspace's settings ([responsibilities] enabled).",
    "db_sources": "This agent has no database source ([capabilities] db_sources is empty).",
    "fork": "Forking is off for this agent ([fork] enabled).",
}
SWITCH_ERRORS = {"fork": "fork_disabled", "responsibilities": "responsibilities_disabled"}


def stopped(tool: str, what: str) -> Refusal:
    return Refusal(DENIED, "stopped", "G1", f"{tool} is refused: {what} is stopped. An operator can release it.")


def agent_not_active(tool: str, status: str) -> Refusal:
    return Refusal(
        DENIED, "agent_not_active", "G2", f"{tool} is refused: this agent is {status}. An operator can make it active."
    )


def external_not_available(tool: str) -> Refusal:
    return Refusal(UNAVAILABLE, "external_not_available", "G3", f"{tool} is not available to external clients.")


def insufficient_scope(tool: str, scope: str) -> Refusal:
    return Refusal(
        DENIED, "insufficient_scope", "G4", f"Insufficient scope: {tool} needs {scope}, which this key does not hold."
    )


def process_agent_tool(tool: str) -> Refusal:
    return Refusal(
        DENIED, "process_agent_tool", "G5", f"{tool} acts for the calling agent, and this caller is no agent."
    )


def human_only(tool: str) -> Refusal:
    return Refusal(DENIED, "human_only", "G6", f"{tool} is for people and operator keys only.")


def denied_tools(tool: str, entry: str) -> Refusal:
    return Refusal(DENIED, "denied_tools", "G7", f"{tool} is on this agent's denied_tools (entry {entry!r}).")


def allowed_tools(tool: str) -> Refusal:
    return Refusal(
        DENIED, "allowed_tools", "G7", f"{tool} is not on this agent's allowed_tools, which names all that it may call."
    )


def switch_off(tool: str, switch: str) -> Refusal:
    text = SWITCH_TEXTS.get(switch, f"The capability {switch} is off for this agent ([capabilities] {switch}).")
    return Refusal(DENIED, SWITCH_ERRORS.get(switch, f"{switch}_capability_missing"), "G8", f"{tool}: {text}")


def capability_grant_missing(tool: str, entry: str = "") -> Refusal:
    """`entry` is the removed name on the list when the call that replaced it is what needs the grant."""
    asked = entry or tool
    return Refusal(
        DENIED,
        "capability_grant_missing",
        "G9",
        f"{tool} needs a grant. Call capability_request with tool={asked!r} and a reason; a person decides.",
    )


def grant_revoked(tool: str) -> Refusal:
    return Refusal(
        DENIED, "grant_revoked", "G9", f"{tool} is refused: its grant ended during the call. Nothing was done."
    )


def confirm_missing() -> Refusal:
    return Refusal(INVALID, CONFIRM, "confirm", CONFIRM)


def permission_denied(tool: str, flag: str) -> Refusal:
    return Refusal(
        DENIED, "permission_denied", "permissions", f"{tool} is refused: this agent's permission {flag} is not granted."
    )


def injection_suspected(tool: str, score: int) -> Refusal:
    return Refusal(
        DENIED,
        "injection_suspected",
        "injection",
        f"{tool} is refused: its arguments look like an injected instruction (risk {score} of 100).",
    )


def redaction_token(tool: str) -> Refusal:
    return Refusal(
        REDACTED, "redaction_token", "redaction", f"{tool} is refused: a <REDACT:...> token may not leave through it."
    )


def rate_limited(tool: str, seconds: int) -> Refusal:
    return Refusal(RATE, "rate_limited", "rate", f"Too many calls: try {tool} again in {seconds} s.")


def unknown_tool(tool: str) -> str:
    return f"Unknown tool: {tool[:64]}"


def missing_parameter(name: str) -> str:
    return f"Missing required parameter: {name}"


def invalid_parameter(name: str, words: str) -> str:
    return f"Invalid parameter {name}: {words}"


REMOVED_TOOLS = {
    "schedule_task": "tasks_create with schedule",
    "skill_bank_search": 'skill_search with source="bank"',
    "shared_wiki_ls": 'wiki_ls with scope="shared"',
    "shared_wiki_read": 'wiki_read with scope="shared"',
    "shared_wiki_write": 'wiki_write with scope="shared"',
    "shared_wiki_search": 'wiki_search with scope="shared"',
    "shared_wiki_stats": 'wiki_stats with scope="shared"',
    "shared_wiki_lint": 'wiki_lint with scope="shared"',
}


def removed_tool(tool: str) -> str:
    return f"{tool} was removed in v1.69. Use {REMOVED_TOOLS[tool]} instead."
