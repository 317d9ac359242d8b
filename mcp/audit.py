"""One row a call. Rows are inserted, never changed; each carries a keyed MAC over the bytes that are stored."""

import hashlib
import hmac
import json
from dataclasses import astuple, dataclass, field, fields
from typing import Any

from django.conf import settings
from django.db import connection

from duduclaw.lib import clock, redact
from duduclaw.lib.ids import new_id
from mcp.policy import Who

CALLS, SECURITY = "tool_calls", "security"
OK, DENIED, INVALID, ERROR, CANCELLED = "ok", "denied", "invalid", "error", "cancelled"


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
INSERT = (
    f"INSERT INTO mcp_auditrow ({', '.join(COLUMNS)}, mac) "  # noqa: S608
    f"VALUES ({', '.join(['%s'] * (len(COLUMNS) + 1))})"
)


def mac(values: tuple[str, ...]) -> str:
    """HMAC-SHA256 over the row's text columns in the order of `COLUMNS`, in hex."""
    return hmac.new(settings.AUDIT_KEY, json.dumps(values).encode(), hashlib.sha256).hexdigest()


def insert(row: Row) -> Row:
    """Write a row: the last statement of the effect's transaction, or alone after a refusal."""
    values = astuple(row)
    with connection.cursor() as cursor:
        cursor.execute(INSERT, (*values, mac(values)))
    return row


def call_row(who: Who, tool: str, outcome: str, reason: str, **columns: str) -> Row:
    """The row of one call by one principal."""
    return Row(
        CALLS,
        who.workspace,
        tool=tool[:64],
        outcome=outcome,
        reason=reason[:64],
        agent=who.name,
        key=who.key,
        scopes_provided=json.dumps(sorted(who.scopes)),
        **columns,
    )


def event(
    workspace: str, event_type: str, *, agent: str = "", severity: str = "info", details: dict[str, Any] | None = None
) -> Row:
    """Write a row of the security stream: what happened, to whom, how grave."""
    shown = redact.summary({"severity": severity, **(details or {})})
    return insert(Row(SECURITY, workspace, tool="", outcome="", reason=event_type, agent=agent, details=shown))
