"""What a schedule says: a cron expression or one instant. Pure."""

from datetime import datetime

from cronsim import CronSim, CronSimError

CRON, INSTANT = "cron", "instant"
YEAR_CHARACTERS = frozenset("0123456789*,-/")
ANY_TIME = datetime(2026, 1, 1)


def classify(text: str) -> str | None:
    """`cron` (5 to 7 fields), `instant` (RFC 3339 with an offset), or None for neither."""
    return INSTANT if is_instant(text) else CRON if is_cron(text) else None


def is_instant(text: str) -> bool:
    """An RFC 3339 date and time with its offset."""
    if len(text) < 20 or text[10] not in "Tt ":
        return False
    try:
        return datetime.fromisoformat(text.upper()).tzinfo is not None
    except ValueError:
        return False


def is_cron(text: str) -> bool:
    """Fields that the scheduler's own evaluator takes; a seventh is the year."""
    fields = text.split()
    if len(fields) == 7 and set(fields.pop()) - YEAR_CHARACTERS:
        return False
    try:
        CronSim(" ".join(fields), ANY_TIME)
    except CronSimError:
        return False
    return True
