"""The edge that both transports share: Host, Origin and the key, judged before any tool code runs."""

from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from django.conf import settings
from django.http.request import split_domain_port, validate_host

from agents.principals import TOKEN
from duduclaw.lib import clock, rate
from mcp import wire

STRANGERS = rate.Bucket(60)  # requests a minute without a good key, from one address
strangers = rate.Limiter({"unauthenticated": STRANGERS})
KEY_PARAMETERS = frozenset({"api_key", "apikey", "key", "token", "access_token", "authorization"})
BEARER = "bearer "
SUBPROTOCOL_KEY = "mcp.auth."


@dataclass(eq=False)
class Refusal(Exception):
    """An HTTP answer before any session: `status`, a stable code, words, and further headers."""

    status: int
    error: str
    detail: str
    headers: tuple[tuple[str, str], ...] = ()

    @property
    def body(self) -> str:
        """What is answered, as JSON."""
        return wire.dumps({"error": self.error, "detail": self.detail})


def turn_away(scope: dict[str, Any]) -> None:
    """Count a request without a good key. Raises `Refusal` 429 when its address sent too many."""
    address = (scope.get("client") or ("unknown",))[0]
    wait = strangers.check(address, "unauthenticated", clock.now().timestamp())
    if wait is not None:
        raise Refusal(429, "rate_limited", f"try again in {wait} s", (("retry-after", str(wait)),))


def unavailable() -> Refusal:
    """The database gives no answer."""
    return Refusal(503, "unavailable", "no answer from the database; try again", (("retry-after", "2"),))


def headers_of(scope: dict[str, Any]) -> dict[str, list[str]]:
    """Header name in lower case -> its values in order."""
    found: dict[str, list[str]] = {}
    for name, value in scope["headers"]:
        found.setdefault(name.decode("latin-1").lower(), []).append(value.decode("latin-1"))
    return found


def one(headers: dict[str, list[str]], name: str) -> str:
    """A header that may stand there once; "" when it is absent."""
    values = headers.get(name, [])
    if len(values) > 1:
        raise Refusal(400, "duplicate_header", f"the header {name} may be sent once")
    return values[0] if values else ""


def admit(scope: dict[str, Any], headers: dict[str, list[str]]) -> None:
    """Host, then Origin, then the address itself. Raises `Refusal`."""
    if scope.get("raw_path", b"").split(b"?")[0][:1] not in (b"/", b""):
        raise Refusal(400, "absolute_form", "send the path, not the whole address")
    host = one(headers, "host")
    if not validate_host(split_domain_port(host)[0], settings.ALLOWED_HOSTS):
        raise Refusal(421, "bad_host", "this host is not served here; see DUDUCLAW_ALLOWED_HOSTS")
    if "origin" in headers and one_origin(headers) not in origins():
        raise Refusal(403, "bad_origin", "this origin is not allowed; see DUDUCLAW_ALLOWED_ORIGINS")
    refuse_key_in_url(scope.get("query_string", b"").decode("latin-1"))


def one_origin(headers: dict[str, list[str]]) -> str:
    """The one Origin; two of them are none."""
    return headers["origin"][0] if len(headers["origin"]) == 1 else ""


def origins() -> set[str]:
    """Exactly these, scheme, host and port: the configured ones and our own loopback addresses."""
    own = {f"http://{host}:{settings.PORT}" for host in ("127.0.0.1", "localhost", "[::1]")}
    return own | {f"{parts.scheme}://{parts.netloc}" for parts in map(urlsplit, settings.ALLOWED_ORIGINS)}


def refuse_key_in_url(query: str) -> None:
    """A key in an address ends up in logs; it is refused, and its text is never repeated."""
    for name, value in parse_qsl(query, keep_blank_values=True):
        if name.lower() in KEY_PARAMETERS or TOKEN.match(value):
            raise Refusal(400, "key_in_url", "send the key in the Authorization header, never in the address")


def key_of(headers: dict[str, list[str]], subprotocols: list[str] | None = None) -> str | None:
    """The key from `Authorization: Bearer`, or from a subprotocol `mcp.auth.<key>`."""
    header = one(headers, "authorization")
    if header[: len(BEARER)].lower() == BEARER:
        return header[len(BEARER) :].strip()
    offered = [name for name in subprotocols or () if name.startswith(SUBPROTOCOL_KEY)]
    return offered[0].removeprefix(SUBPROTOCOL_KEY) if len(offered) == 1 else None


def round_task(headers: dict[str, list[str]]) -> str | None:
    """X-DuDuClaw-Task as sent: None when absent, "" when blank."""
    values = headers.get("x-duduclaw-task")
    return None if values is None else one(headers, "x-duduclaw-task")
