"""What a handler may answer besides a result. Pure: domain actions raise these, the choke point reads them."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any


class Refused(Exception):
    """A business refusal: the call is rolled back and answered with `isError` (REST: the status of `http`).

    `code` is a stable class such as `already_claimed`; `outcome` is `denied`, `invalid` or `error`
    (docs/decisions.md, audit); `extra` joins the structured answer, `audit` joins the audit row only.
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


class InvalidArguments(Exception):
    """Arguments that do not fit: JSON-RPC -32602, REST 400. `parameter` names the faulty one."""

    def __init__(self, message: str, parameter: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.parameter = parameter


class GateRefused(Exception):
    """A refusal found per call that travels like a gate's: a JSON-RPC error, never `isError`."""

    def __init__(self, code: int, error: str, gate: str, text: str, **data: Any) -> None:
        super().__init__(text)
        self.code = code
        self.error = error
        self.gate = gate
        self.text = text
        self.data = data


@dataclass(frozen=True, slots=True)
class Parked:
    """A handler's answer "not yet": the call waits on the event loop for this row, then enters again."""

    kind: str
    id: str
    until: datetime
    summary: str = ""
