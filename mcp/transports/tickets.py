"""Session ids of Streamable HTTP: signed, so that any worker knows them and a restart is invisible."""

import hashlib
import hmac

from django.conf import settings

from duduclaw.lib.ids import new_id
from mcp.policy import Who
from mcp.transports.edge import Refusal
from mcp.wire import Message, WireError, invalid


def issue(who: Who) -> tuple[str, str]:
    """(name of the session, the id that the client sends back)."""
    name = new_id()
    return name, f"{name}.{sign(name, who)}"


def sign(name: str, who: Who) -> str:
    """Bound to the key: another principal cannot use it."""
    text = f"mcp-session:{name}:{who.key}".encode()
    return hmac.new(settings.SECRET_KEY.encode(), text, hashlib.sha256).hexdigest()[:32]


def open(ticket: str, who: Who, message: Message | None) -> str:  # noqa: A001
    """The session's name. 400 when no id was sent, 404 when it is not this principal's."""
    if not ticket:
        if message is None:
            raise Refusal(400, "session_required", "send the Mcp-Session-Id that initialize answered")
        raise invalid("send the Mcp-Session-Id that initialize answered", message.id)
    name, _, signature = ticket.partition(".")
    if not hmac.compare_digest(signature.encode(), sign(name, who).encode()):
        raise WireError(-32001, "Session not found", message.id if message else None, http=404)
    return name
