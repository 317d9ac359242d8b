"""What each session was told of its tools, and when it looked again. Rows, so that any worker may answer.

`listed_hash` is the set that it looked at last, "" before it ever looked; `notified_hash` the set that it knows
or was last told about. All functions run in a lane.
"""

from datetime import datetime
from typing import NamedTuple

from django.db import connection

from duduclaw.lib import clock
from mcp.models import Session
from mcp.policy import Who

READ = "SELECT listed_hash, notified_hash, listening, stale, closed_at IS NOT NULL FROM mcp_session WHERE id = %s"


class Receipt(NamedTuple):
    """One session as it stands."""

    listed: str = ""
    told: str = ""
    listening: bool = False
    stale: bool = False
    closed: bool = False


def opened(
    session: str, who: Who, transport: str, *, revision: str = "", client: str = "", listening: bool = False
) -> None:
    """A session begins, or introduces itself once more."""
    fresh = {
        "workspace": who.workspace,
        "principal": who.name,
        "key": who.key,
        "transport": transport,
        "revision": revision,
        "client": client[:120],
        "listening": listening,
        "closed_at": None,
    }
    Session.objects.update_or_create(id=session, defaults=fresh, create_defaults={**fresh, "opened_at": clock.now()})


def read(session: str) -> Receipt | None:
    """The session's receipt; None when nothing is known of it. Each message over HTTP asks: plain SQL."""
    with connection.cursor() as cursor:
        cursor.execute(READ, [session])
        row = cursor.fetchone()
    return row and Receipt(row[0], row[1], *map(bool, row[2:]))


def listed(session: str, before: Receipt, fingerprint: str) -> bool:
    """It was given this list; `before` was read before the list was made. Nothing is written when nothing changed.

    False when it was told of a change meanwhile: then it will look again, and stays stale until it does.
    """
    if before.listed == fingerprint == before.told and not before.stale:
        return True
    now = clock.now()
    mine = Session.objects.filter(pk=session)
    relisted = {"relisted_at": now} if before.stale else {}
    known = {"listed_hash": fingerprint, "listed_at": now, **relisted}
    if mine.filter(notified_hash=before.told).update(notified_hash=fingerprint, stale=False, **known):
        return True
    mine.update(**known)
    return False


def claim_notice(session: str, before: str, after: str) -> bool:
    """Take the duty to notify; False when another stream of the session was first."""
    mine = Session.objects.filter(pk=session, notified_hash=before)
    return mine.update(notified_hash=after, notified_at=clock.now(), delivered_at=None, stale=True) == 1


def delivered(session: str, at: datetime) -> None:
    """The notification left this process."""
    Session.objects.filter(pk=session).update(delivered_at=at)


def fell_behind(session: str) -> None:
    """Its tools changed, no stream could tell it, and it has not looked."""
    Session.objects.filter(pk=session, stale=False).update(stale=True)


def listens(session: str, listening: bool) -> None:
    """A stream that can tell it was opened, or ended."""
    Session.objects.filter(pk=session).update(listening=listening)


def closed(session: str) -> None:
    """The session ended."""
    Session.objects.filter(pk=session).update(closed_at=clock.now(), listening=False)
