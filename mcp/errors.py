"""What a handler may answer besides a result. Pure: domain actions raise these, the choke point reads them."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from mcp.refusals import Refusal, unknown_tool


class Refused(Exception):
    """A business refusal: the call is rolled back and answered with `isError` (REST: the status of `http`).

    `code` is a stable class such as `already_claimed`; `outcome` is `denied`, `invalid` or `error`
    (rules of the record); `reason` and `target` stand in the audit row; `extra` joins the structured answer.
    """

    def __init__(
        self,
        code: str,
        detail: str,
        *,
        outcome: str = "denied",
        reason: str | None = None,
        target: str | None = None,
        **extra: Any,
    ) -> None:
        super().__init__(f"{code}: {detail}")
        self.code = code
        self.detail = detail
        self.outcome = outcome
        self.reason = reason or code
        self.target = target
        self.extra = extra

    def settle(self) -> None:
        """What stands although the call is rolled back; runs in the transaction of the refusal's row."""


class InvalidArguments(Exception):
    """Arguments that do not fit: JSON-RPC -32602, REST 400. `parameter` names the faulty one."""

    def __init__(self, message: str, parameter: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.parameter = parameter


class UnknownTool(InvalidArguments):
    """A name that no tool has: JSON-RPC -32602, REST 404."""

    def __init__(self, name: str) -> None:
        super().__init__(unknown_tool(name))


class GateRefused(Exception):
    """A refusal that travels as a JSON-RPC error, never as `isError`: a gate's, or a per-call check's of its rank.

    `event` names what the security stream keeps beside the call's row; `data` joins the error's data.
    """

    def __init__(self, refusal: Refusal, *, event: dict[str, Any] | None = None, **data: Any) -> None:
        super().__init__(refusal.text)
        self.refusal = refusal
        self.event = event
        self.data = data

    @property
    def error(self) -> str:
        """The audit class."""
        return self.refusal.error

    @property
    def text(self) -> str:
        """The words for the caller."""
        return self.refusal.text


@dataclass(frozen=True, slots=True)
class Parked:
    """A handler's answer "not yet": the call waits on the event loop for this row, then enters again."""

    kind: str
    id: str
    until: datetime
    summary: str = ""
