"""Names of agents: what a new one may be called, and when two names are one. Pure."""

import re
import unicodedata

FORMAT = re.compile(r"[a-z0-9-]{1,64}\Z", re.ASCII)
RESERVED = frozenset(
    "dashboard webhook cron heartbeat autopilot goal-loop-driver a2a-client default doctor-probe".split()
)
RESERVED_PREFIXES = ("__", "standalone-")
# Exported homes must open on every file system.
DEVICES = frozenset(("con", "prn", "aux", "nul", *(f"{name}{n}" for name in ("com", "lpt") for n in range(10))))


class BadName(ValueError):
    """A name that no new agent gets; `reason` is `format` or `reserved`."""

    def __init__(self, reason: str, text: str) -> None:
        super().__init__(text)
        self.reason = reason


def key_of(name: str) -> str:
    """What must be unique: the name under NFKC and casefold, so that look-alikes by case or width are one."""
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold())


def is_reserved(name: str) -> bool:
    """Whether the platform keeps the name for itself, whatever its case or width."""
    key = key_of(name)
    return key in RESERVED or key in DEVICES or key.startswith(RESERVED_PREFIXES)


def check_new(name: str) -> str:
    """The name, when a new agent may have it. Raises `BadName` with a text for the caller."""
    if not FORMAT.match(name):
        raise BadName("format", "must be 1 to 64 lowercase ASCII letters, digits or hyphens")
    if is_reserved(name):
        raise BadName("reserved", f"{name} is a reserved name; choose another")
    return name
