"""One line in the log when something stops working, and one when it works again."""

import logging


class Outage:
    """Remembers whether `what` is down, so that a fault met every second is told once."""

    def __init__(self, log: logging.Logger, what: str) -> None:
        self._log = log
        self._what = what
        self.down = False

    def began(self, error: BaseException) -> None:
        """It failed."""
        if not self.down:
            self._log.warning("%s: down: %s: %s", self._what, type(error).__name__, error)
        self.down = True

    def ended(self) -> None:
        """It worked."""
        if self.down:
            self._log.warning("%s: works again", self._what)
        self.down = False
