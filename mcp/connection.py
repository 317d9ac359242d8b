"""One client as the method table sees it, whatever carries its frames."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from agents import principals
from mcp import wire
from mcp.inflight import Running
from mcp.policy import Who
from mcp.push import hub
from mcp.watch import Watch


@dataclass(eq=False)
class Connection:
    """`send` takes notifications and may be called at any time; `session` is "" before a session is agreed on."""

    token: str
    key: str  # id of the key row
    transport: str
    send: Callable[[str], Awaitable[None]]
    revision: str = wire.DEFAULT_REVISION
    session: str = ""
    round_task: str | None = None
    gone: bool = False
    running: set[Running] = field(default_factory=set)

    def who(self) -> Who:
        """In a lane: the principal, proved anew. Raises `BadKey`."""
        return principals.who_for_key(self.token)

    @property
    def watch(self) -> Watch | None:
        """The stream of this process that tells the session of changes, when one is open."""
        return hub.of(self.session)

    def leave(self) -> None:
        """The client is gone. What runs is finished; what waits for a person ends, its question lives on."""
        self.gone = True
        for running in self.running:
            if running.parked_on:
                running.cancel()
