"""What each session was told of its tools, and when it looked again. Rows, so that any worker may answer."""

from datetime import datetime

from duduclaw.lib import clock
from mcp.models import Session
from mcp.policy import Who


def opened(session: str, who: Who, transport: str, revision: str, client: str) -> None:
    """A session begins."""
    Session.objects.update_or_create(
        id=session,
        defaults={
            "workspace": who.workspace,
            "principal": who.name,
            "key": who.key,
            "transport": transport,
            "revision": revision,
            "client": client[:120],
            "opened_at": clock.now(),
            "closed_at": None,
        },
    )


def listed(session: str, fingerprint: str) -> None:
    """It was given this list; nothing is written when it knew that already."""
    row = Session.objects.filter(pk=session).first()
    if row is None or (row.listed_hash == fingerprint == row.notified_hash):
        return
    now = clock.now()
    heard = row.notified_at is not None and (row.listed_at is None or row.notified_at > row.listed_at)
    relisted = {"relisted_at": now} if heard else {}
    Session.objects.filter(pk=session).update(
        listed_hash=fingerprint, notified_hash=fingerprint, listed_at=now, **relisted
    )


def told(session: str) -> str:
    """The set that the session knows of or was last told about; "" when it never listed."""
    return Session.objects.filter(pk=session).values_list("notified_hash", flat=True).first() or ""


def claim_notice(session: str, before: str, after: str) -> bool:
    """Take the duty to notify; False when another stream of the session was first."""
    mine = Session.objects.filter(pk=session, notified_hash=before)
    return mine.update(notified_hash=after, notified_at=clock.now(), delivered_at=None) == 1


def delivered(session: str, at: datetime) -> None:
    """The notification left this process."""
    Session.objects.filter(pk=session).update(delivered_at=at)


def closed(session: str) -> None:
    """The session ended."""
    Session.objects.filter(pk=session).update(closed_at=clock.now())
