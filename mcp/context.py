"""What a handler is told about the call that it serves. Pure."""

from dataclasses import dataclass

from mcp.policy import Who


@dataclass(frozen=True, slots=True)
class Call:
    """One call, past every gate.

    `digest` is the SHA-256 of the canonical arguments: with agent and tool it names "the same call".
    `round_task` is the header X-DuDuClaw-Task as sent: None when absent, "" when blank.
    """

    who: Who
    tool: str
    digest: str = ""
    arguments: str = ""  # canonical JSON of the redacted arguments, for show
    round_task: str | None = None
    resumed: str = ""  # the row whose decision woke this call
    request_id: str = ""
    transport: str = "test"
