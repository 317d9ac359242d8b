"""Bytes to a checked JSON-RPC message and back. The only importer of `mcp_types`. Knows no transport."""

import json
from dataclasses import dataclass
from typing import Any

import mcp_types.jsonrpc as jsonrpc
from mcp_types import PROTOCOL_VERSION_META_KEY
from mcp_types.methods import CLIENT_REQUESTS, validate_client_request
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError

from duduclaw.lib import redact, strictjson

PARSE_ERROR = jsonrpc.PARSE_ERROR
INVALID_REQUEST = jsonrpc.INVALID_REQUEST
METHOD_NOT_FOUND = jsonrpc.METHOD_NOT_FOUND
INVALID_PARAMS = jsonrpc.INVALID_PARAMS
INTERNAL_ERROR = jsonrpc.INTERNAL_ERROR
UNSUPPORTED_VERSION = jsonrpc.UNSUPPORTED_PROTOCOL_VERSION
RATE_LIMITED = -32029
UNAUTHENTICATED = -32001

LATEST = "2025-11-25"
REVISIONS = ("2025-06-18", LATEST)
DEFAULT_REVISION = "2025-06-18"  # a message without a version header
MAX_FRAME = 1024 * 1024
MAX_ID = 1024

Id = str | int | float | None


class WireError(Exception):
    """A message that is answered with a JSON-RPC error. `http` is its status over Streamable HTTP."""

    def __init__(
        self, code: int, message: str, request_id: Id = None, data: dict[str, Any] | None = None, http: int = 200
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.id = request_id
        self.data = data
        self.http = http


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer: its frame, and what Streamable HTTP says besides."""

    frame: str
    status: int = 200
    retry_after: int | None = None  # seconds


@dataclass(frozen=True, slots=True)
class Message:
    """A request, or a notification when `is_request` is false. Answers of the client are neither."""

    method: str
    id: Id
    params: dict[str, Any]
    is_request: bool
    is_response: bool = False

    @property
    def progress_token(self) -> str | int | None:
        """The token of `_meta.progressToken`, when it is one."""
        token = self.meta.get("progressToken")
        return token if isinstance(token, str | int) and not isinstance(token, bool) else None

    @property
    def meta(self) -> dict[str, Any]:
        """`params._meta`, or empty."""
        meta = self.params.get("_meta")
        return meta if isinstance(meta, dict) else {}


def parse(raw: bytes | str) -> Message:
    """One frame. Raises `WireError` with id null when it is no JSON-RPC message."""
    try:
        body = strictjson.loads(raw.encode("utf-8", "surrogatepass") if isinstance(raw, str) else raw)
    except ValueError as error:
        raise WireError(PARSE_ERROR, f"Parse error: {error}", http=400) from None
    if not isinstance(body, dict):
        raise invalid("batches are not supported" if isinstance(body, list) else "a message is an object")
    if body.get("jsonrpc") != "2.0":
        raise invalid('jsonrpc must be "2.0"')
    if "method" not in body and ("result" in body or "error" in body):
        return Message("", None, {}, is_request=False, is_response=True)
    return request(body)


def request(body: dict[str, Any]) -> Message:
    """A request or a notification out of a JSON object."""
    identifier = body.get("id")
    if "id" in body and not good_id(identifier):
        raise invalid("id must be a string or a number")
    method, params = body.get("method"), body.get("params")
    known = identifier if "id" in body else None
    if not isinstance(method, str):
        raise invalid("method must be a string", known)
    if params is not None and not isinstance(params, dict):
        raise invalid("params must be an object", known)
    return Message(method, known, params or {}, is_request="id" in body)


def good_id(value: object) -> bool:
    """A string of bearable length or a number; true and false are none."""
    if isinstance(value, bool):
        return False
    if isinstance(value, str):
        return len(value) <= MAX_ID
    return isinstance(value, int | float)


def invalid(why: str, request_id: Id = None) -> WireError:
    """-32600."""
    return WireError(INVALID_REQUEST, f"Invalid request: {why}", request_id, http=400)


def check(message: Message, revision: str) -> None:
    """The method exists in the revision and its params have the shape of the schema."""
    refuse_modern(message)
    if (message.method, revision) not in CLIENT_REQUESTS:
        raise unknown_method(message)
    params = dict(message.params)
    if message.method == "tools/call" and params.get("arguments") is None:
        params.pop("arguments", None)
    try:
        validate_client_request(message.method, revision, params or None)
    except ValidationError as error:
        raise WireError(INVALID_PARAMS, f"Invalid params: {first_fault(error)}", message.id) from None


def refuse_modern(message: Message) -> None:
    """An envelope in `_meta` asks for a revision without a handshake; those come later."""
    if PROTOCOL_VERSION_META_KEY in message.meta:
        raise unsupported(str(message.meta[PROTOCOL_VERSION_META_KEY]), message.id)


def unknown_method(message: Message) -> WireError:
    """-32601."""
    return WireError(METHOD_NOT_FOUND, f"Method not found: {message.method[:64]}", message.id)


def unsupported(requested: str, request_id: Id) -> WireError:
    """-32022."""
    data = {"supported": list(REVISIONS), "requested": requested[:32]}
    return WireError(UNSUPPORTED_VERSION, "Unsupported protocol version", request_id, data, http=400)


def named_revision(header: str, agreed: str, request_id: Id) -> str:
    """The revision that `MCP-Protocol-Version` names; the `agreed` one when it is absent."""
    if not header:
        return agreed
    if header in MODERN_PROTOCOL_VERSIONS:
        raise unsupported(header, request_id)
    if header not in REVISIONS:
        raise invalid("unsupported MCP-Protocol-Version", request_id)
    return header


def first_fault(error: ValidationError) -> str:
    """Where and what, without echoing the value."""
    fault = error.errors(include_url=False, include_context=False, include_input=False)[0]
    where = ".".join(str(part) for part in fault["loc"] if part not in ("params",))
    return f"{where or 'params'}: {fault['msg']}"[:200]


def dumps(body: dict[str, Any]) -> str:
    """Compact JSON in one line, with everything outside ASCII kept but U+2028 and its kind escaped."""
    text = json.dumps(body, ensure_ascii=False, separators=(",", ":"))
    return text.replace("\u2028", "\\u2028").replace("\u2029", "\\u2029").replace("\x85", "\\u0085")


def result(request_id: Id, body: dict[str, Any]) -> str:
    """The frame of an answer."""
    return dumps({"jsonrpc": "2.0", "id": request_id, "result": body})


def error(request_id: Id, code: int, message: str, data: dict[str, Any] | None = None) -> str:
    """The frame of an error. What a caller sent may stand in its text, a secret in it may not."""
    body: dict[str, Any] = {"code": code, "message": masked(message)}
    if data:
        body["data"] = {name: masked(value) for name, value in data.items()}
    return dumps({"jsonrpc": "2.0", "id": request_id, "error": body})


def masked(value: Any) -> Any:
    """A text without the keys and tokens in it; anything else as it is."""
    return redact.TOKEN.sub(redact.MASK, value) if isinstance(value, str) else value


def reply_of(fault: WireError) -> Reply:
    """The answer that a `WireError` is."""
    wait = (fault.data or {}).get("retry_after")
    return Reply(error(fault.id, fault.code, fault.message, fault.data), fault.http, wait)


def notification(method: str, params: dict[str, Any] | None = None) -> str:
    """The frame of a notification to the client."""
    return dumps({"jsonrpc": "2.0", "method": method, **({"params": params} if params else {})})


LIST_CHANGED = notification("notifications/tools/list_changed")
