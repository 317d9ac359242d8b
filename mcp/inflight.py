"""Requests that run: found again by session and id, so that another message may take one back."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from mcp.parking import park
from mcp.wire import Id, invalid


@dataclass(eq=False, slots=True)
class Running:
    """One request in flight. A write that finds itself cancelled before its commit is rolled back."""

    cancelled: bool = False
    parked_on: str = ""  # the row that it waits for

    def cancel(self) -> None:
        """Take it back; when it waits, it wakes."""
        self.cancelled = True
        park.wake(self.parked_on)


@dataclass(eq=False)
class InFlight:
    """Those of this process."""

    requests: dict[tuple[str, Id], Running] = field(default_factory=dict)

    @contextmanager
    def entered(self, session: str, request_id: Id) -> Iterator[Running]:
        """In flight until the end of the block. Raises `WireError` when the id is in use."""
        place, running = (session, request_id), Running()
        if place in self.requests:
            raise invalid("this id is in flight already", request_id)
        if session:
            self.requests[place] = running
        try:
            yield running
        finally:
            if session:
                del self.requests[place]

    def cancel(self, session: str, request_id: Id) -> bool:
        """Take a request back; False when it does not run here."""
        running = self.requests.get((session, request_id))
        if running is not None:
            running.cancel()
        return running is not None

    def cancel_all(self) -> None:
        """The process ends: what is not committed yet is not done."""
        for running in self.requests.values():
            running.cancel()


inflight = InFlight()
