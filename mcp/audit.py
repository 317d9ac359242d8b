"""One row a call. Rows are inserted, never changed; each carries a keyed MAC over the bytes that are stored.

A row is written in the effect's transaction as its last statement, or alone after a refusal. What a caller
sent is masked, cut to its column and has its control characters escaped before it is signed.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from operator import attrgetter
from typing import Any

from django.conf import settings
from django.db import connection, transaction

from duduclaw.lib import clock, redact
from duduclaw.lib.ids import new_id
from duduclaw.lib.oneline import one_line
from mcp import chain
from mcp.policy import Who

CALLS, SECURITY = "tool_calls", "security"
OK, DENIED, INVALID, ERROR, CANCELLED = "ok", "denied", "invalid", "error", "cancelled"

# Refusals that have an event beside the row of their call, and how grave it is.
REFUSALS = {
    "agent_authority_refused": "warning",
    "agent_name_reserved": "warning",
    "delegation_denied": "warning",
    "injection_suspected": "warning",
    "org_placement_denied": "warning",
    "permission_denied": "warning",
    "redaction_token": "warning",
    "script_sandbox_unavailable": "warning",
}
# Every event of the security stream.
EVENTS = REFUSALS | {
    "agent_created": "info",
    "agent_removed": "warning",
    "agent_restored": "info",
    "approval_decided": "info",
    "audit_cut": "warning",
    "effect_intended": "info",
    "fleet_released": "warning",
    "fleet_stopped": "critical",
    "grant_revoked": "info",
    "issue_changed": "info",
    "issue_commented": "info",
    "issue_created": "info",
    "judge_seam_degraded": "warning",
    "key_created": "warning",
    "key_revoked": "warning",
    "policy_changed": "info",
    "responsibility_cli_applied": "info",
    "responsibility_cli_refused": "warning",
    "responsibility_cli_requested": "info",
    "rest_refused": "warning",
    "script_sandbox_bypassed": "critical",
    "task_changed": "info",
    "task_created": "info",
    "team_handoff": "info",
}
SEVERITIES = ("info", "warning", "critical")


@dataclass(frozen=True, slots=True)
class Row:
    """The columns of `AuditRow` but the MAC, all text."""

    stream: str
    workspace: str
    tool: str = ""
    outcome: str = ""
    reason: str = ""
    agent: str = ""
    key: str = ""
    scopes_provided: str = ""
    request_id: str = ""
    transport: str = ""
    ms: str = ""
    arguments: str = ""
    details: str = ""
    uid: str = field(default_factory=new_id)
    timestamp: str = field(default_factory=lambda: clock.stamp(clock.now()))


COLUMNS = tuple(column.name for column in fields(Row))
columns_of = attrgetter(*COLUMNS)  # `astuple` copies and takes ten times as long
LONGEST = {
    "uid": 36, "stream": 16, "workspace": 36, "timestamp": 32, "tool": 64, "outcome": 16, "reason": 64,
    "agent": 120, "key": 36, "request_id": 64, "transport": 16, "ms": 16,
}  # fmt: skip
FROM_OUTSIDE = ("tool", "reason", "agent", "request_id")
INSERT = (
    f"INSERT INTO mcp_auditrow ({', '.join(COLUMNS)}, mac) "  # noqa: S608
    f"VALUES ({', '.join(['%s'] * (len(COLUMNS) + 1))})"
)


def row_mac(key: bytes, values: Sequence[str]) -> str:
    """The MAC over a row's text columns in the order of `COLUMNS`."""
    return chain.sign(key, "row", values)


def insert(row: Row) -> Row:
    """Write a row, inside the caller's transaction or in one of its own, and return it as it was stored."""
    given = columns_of(row)
    values = tuple(map(fitted, COLUMNS, given))
    with transaction.atomic(savepoint=False), connection.cursor() as cursor:
        cursor.execute(INSERT, (*values, row_mac(settings.AUDIT_KEY, values)))
    return row if values == given else Row(**dict(zip(COLUMNS, values, strict=True)))


def fitted(column: str, text: str) -> str:
    """The text as the column keeps it: no secret in a name, one line, not longer than the column."""
    if column in FROM_OUTSIDE:
        text = redact.mask_text(text)
    return one_line(text)[: LONGEST.get(column)]


def call_row(who: Who, tool: str, outcome: str, reason: str, **columns: str) -> Row:
    """The row of one call by one principal."""
    return Row(
        CALLS,
        who.workspace,
        tool=tool,
        outcome=outcome,
        reason=reason,
        agent=who.name,
        key=who.key,
        scopes_provided=json.dumps(sorted(who.scopes)),
        **columns,
    )


def event(
    workspace: str,
    event_type: str,
    *,
    agent: str = "",
    severity: str = "",
    details: dict[str, Any] | None = None,
    call: Row | None = None,
) -> Row:
    """Write a row of the security stream: what happened, to whom, how grave. `call` is the row that it names.

    Inside a transaction it stands or falls with it; what must outlast a refusal is written after the rollback.
    Raises `ValueError` for an event that `EVENTS` does not list or a severity that is none.
    """
    if event_type not in EVENTS or (severity or "info") not in SEVERITIES:
        raise ValueError(f"{event_type} {severity}: declare events in mcp.audit.EVENTS, severities are {SEVERITIES}")
    named = {"call": call.uid, "tool": call.tool} if call else {}
    shown = {"severity": severity or EVENTS[event_type], **named, **(details or {})}
    return insert(
        Row(
            SECURITY,
            workspace,
            reason=event_type,
            agent=agent or (call.agent if call else ""),
            key=call.key if call else "",
            request_id=call.request_id if call else "",
            transport=call.transport if call else "",
            details=redact.summary(shown),
        )
    )
