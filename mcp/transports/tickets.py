"""Session ids of Streamable HTTP: signed, so that any worker knows them and a restart is invisible.

A ticket is `<name>.<revision>.<signature>`; the name is a UUIDv7, which says when it was issued.
"""

import hashlib
import hmac
from uuid import UUID

from django.conf import settings

from duduclaw.lib import clock
from duduclaw.lib.ids import new_id
from mcp import wire
from mcp.policy import Who
from mcp.wire import Id, WireError

LIFE = 30 * 86_400  # seconds
NO_TICKET = "send the Mcp-Session-Id that initialize answered"


def issue() -> str:
    """The name of a new session."""
    return new_id()


def ticket(name: str, revision: str, who: Who) -> str:
    """What the client sends back; bound to the key, so that another principal cannot use it."""
    text = f"mcp-session:{name}:{revision}:{who.key}".encode()
    signature = hmac.new(settings.SECRET_KEY.encode(), text, hashlib.sha256).hexdigest()[:32]
    return f"{name}.{revision}.{signature}"


def opened(sent: str, who: Who) -> tuple[str, str]:
    """(name, revision) of the session that a ticket opens; ("", standard) when it is another's or too old."""
    name, _, rest = sent.partition(".")
    revision = rest.partition(".")[0]
    genuine = hmac.compare_digest(sent.encode(), ticket(name, revision, who).encode())
    if not genuine or revision not in wire.REVISIONS or age(name) > LIFE:
        return "", wire.DEFAULT_REVISION
    return name, revision


def age(name: str) -> float:
    """Seconds since a session of that name was issued."""
    return clock.now().timestamp() - (UUID(name).int >> 80) / 1000


def not_found(request_id: Id = None) -> WireError:
    """404: the client must initialize again."""
    return WireError(wire.UNAUTHENTICATED, "Session not found", request_id, http=404)
