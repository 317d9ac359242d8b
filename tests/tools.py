"""Stand-ins for tools that come later, and tools that wait where a test wants them to.

with registry.temporarily(send_message()): ...
"""

import threading
from dataclasses import dataclass, field
from typing import Annotated, Any

from pydantic import Field

from duduclaw.lib import clock
from mcp import registry
from mcp.context import Call
from mcp.params import Int, Text
from mcp.registry import Tool
from tasks.models import Activity
from tests.stack import WATCHDOG

SENT = "test.message"


def send_message(name: str = "send_message", **flags: Any) -> Tool:
    """A write whose effect is one line of the feed."""

    def function(
        call: Call,
        *,
        to: Annotated[Text, Field(description="Where to.")],
        text: Annotated[Text, Field(description="What.")],
    ) -> dict[str, Any]:
        """Sends a message."""
        line = Activity.objects.create(
            workspace_id=call.who.workspace, actor=call.who.name, event_type=SENT, summary=text, created_at=clock.now()
        )
        return {"sent": line.id, "to": to}

    return registry.build(function, name, "messaging", "admin", flags)


def sent() -> list[str]:
    """The texts that `send_message` sent, oldest first."""
    return list(Activity.objects.system().filter(event_type=SENT).order_by("id").values_list("summary", flat=True))


def peek(name: str = "peek", **flags: Any) -> Tool:
    """A read without a query."""

    def function(
        call: Call,
        *,
        limit: Annotated[Int, Field(description="How many.")] = 20,
        task_id: Annotated[Text, Field(description="Which.")] = "",
    ) -> dict[str, Any]:
        """Says what it was asked."""
        return {"limit": limit, "task_id": task_id}

    return registry.build(function, name, "tests", "admin", {"read_only": True, **flags})


@dataclass
class Door:
    """A tool that waits inside: `entered` says that a call is in it, `open` lets all through."""

    entered: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    open: threading.Event = field(default_factory=threading.Event)

    def tool(self, name: str = "wait_inside", **flags: Any) -> Tool:
        """It sends a message once it is through, unless it only reads."""
        reads = bool(flags.get("read_only"))

        def function(call: Call, *, text: Annotated[Text, Field(description="What.")] = "") -> dict[str, Any]:
            """Waits until it may go on."""
            self.entered.release()
            assert self.open.wait(WATCHDOG)
            if not reads:
                Activity.objects.create(
                    workspace_id=call.who.workspace,
                    actor=call.who.name,
                    event_type=SENT,
                    summary=text,
                    created_at=clock.now(),
                )
            return {"done": True}

        return registry.build(function, name, "tests", "admin", flags)

    def wait_entered(self) -> None:
        """Until one more call is inside."""
        assert self.entered.acquire(timeout=WATCHDOG), "no call came in"
