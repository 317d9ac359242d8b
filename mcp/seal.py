"""The sealer: committed rows get numbers without gaps, in blocks that are chained and anchored outside.

Rows never wait for it. It finds them after their commit in whatever order they came (`mcp.holes`), so neither
batches nor rolled-back ids matter. One sealer writes at a time; a second one finds its work done.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import astuple, fields, replace
from datetime import datetime
from typing import Any

from django.conf import settings
from django.db import connection, transaction

from duduclaw.lib import clock
from mcp import anchors, audit, holes
from mcp.anchors import Anchor
from mcp.chain import GENESIS, Block, root, seal_mac

CHUNK = 250  # rows of a block; on SQLite its transaction must stay below 20 ms
CHUNKS = 40  # blocks of one run
LOCK = 0x6475_6475_0001  # PostgreSQL advisory lock of the sealer
TOP = 2**63 - 1
COLUMNS = ", ".join(column.name for column in fields(Block))
START = Block(0, 0, 0, "", "", False, "", 0, "[]", GENESIS)

NEW = "SELECT id, uid, mac FROM mcp_auditrow WHERE id > %s ORDER BY id LIMIT %s"
LATE = "SELECT id, uid, mac FROM mcp_auditrow WHERE id"
SEALED = "SELECT row_uid FROM mcp_auditseal WHERE row_uid"
AMONG = {"postgresql": "= ANY(%s)", "sqlite": "IN (SELECT value FROM json_each(%s))"}
BLOCKS = f"SELECT {COLUMNS} FROM mcp_auditblock WHERE tombstone = FALSE"  # noqa: S608
# Below the first young block: a clock that was once set back must not cost a younger row.
YOUNG = "SELECT MIN(last) FROM mcp_auditblock WHERE tombstone = FALSE AND sealed_at >= %s"
OLD = f"{BLOCKS} AND sealed_at < %s AND last < %s AND last < COALESCE(({YOUNG}), %s)"
TOMBSTONES = f"SELECT {COLUMNS} FROM mcp_auditblock WHERE tombstone = TRUE"  # noqa: S608

Candidate = tuple[int, str, str]  # id, uid, mac


def seal() -> int:
    """Seal every committed row that is not yet, at most `CHUNKS` blocks of them; how many rows that were.

    With nothing to do it costs two SELECTs, three while there are holes. Raises `OSError` when the anchor file
    cannot be written: then nothing more is sealed until it can.
    """
    sealed = 0
    for _ in range(CHUNKS):
        head = newest(BLOCKS)
        anchor(head)
        rows = unsealed(head)
        if not rows:
            break
        sealed += write(head, rows)
    return sealed


def unsealed(head: Block) -> list[Candidate]:
    """The next rows in the order of their ids: in holes below the highest sealed one, and above it."""
    with connection.cursor() as cursor:
        cursor.execute(NEW, (head.high, CHUNK))
        new = cursor.fetchall()
    late = [row_id for low, high, _ in holes.alive(holes.load(head.holes), now()) for row_id in range(low, high + 1)]
    return sorted(found_late(late) + new)[:CHUNK] if late else new


def found_late(ids: list[int]) -> list[Candidate]:
    """The rows with these ids that are not sealed. Two look-ups by key: a join would be planned as a scan."""
    rows = among(LATE, ids)
    sealed = {uid for (uid,) in among(SEALED, [row[1] for row in rows])} if rows else set()
    return [(row_id, uid, mac) for row_id, uid, mac in rows if uid not in sealed]


def among(select: str, values: Sequence[int | str]) -> list[Any]:
    """The rows whose key is one of the values."""
    listed = list(values) if connection.vendor == "postgresql" else json.dumps(values)
    with connection.cursor() as cursor:
        cursor.execute(f"{select} {AMONG[connection.vendor]}", (listed,))
        return cursor.fetchall()


def write(head: Block, rows: Sequence[Candidate]) -> int:
    """Seal the rows on top of `head` as one block; 0 when another sealer was faster."""
    key, first = settings.AUDIT_KEY, head.last + 1
    seals = [(seq, uid, seal_mac(key, seq, uid, mac)) for seq, (_, uid, mac) in enumerate(rows, first)]
    ids = [row[0] for row in rows]
    block = Block(
        first=first,
        last=head.last + len(rows),
        count=len(rows),
        root=root(mac for _, _, mac in seals),
        previous=head.mac,
        tombstone=False,
        sealed_at=clock.stamp(clock.now()),
        high=max(head.high, ids[-1]),
        holes=holes.dump(holes.after(holes.load(head.holes), head.high, ids, now())),
    )
    with transaction.atomic():
        take_turn()
        if newest(BLOCKS) != head:
            return 0
        insert("mcp_auditseal (seq, row_uid, mac)", seals)
        insert(f"mcp_auditblock ({COLUMNS})", [astuple(replace(block, mac=block.signed(key)))])
    return len(rows)


def take_turn() -> None:
    """Wait until no other sealer writes; the turn ends with the transaction. On SQLite BEGIN IMMEDIATE did it."""
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_xact_lock(%s)", (LOCK,))


def anchor(head: Block) -> None:
    """Append to the anchor file what it does not know yet: the newest block, and what a crash left out.

    A new file begins with the newest block. A file that is ahead of the database (its tail was cut) is left
    as it is, as evidence.
    """
    if not head.last:
        return
    with anchors.keeping() as keeper:
        known = keeper.newest()
        if known is None:
            missing = [head]
        elif known.last < head.last:
            missing = blocks(f"{BLOCKS} AND last > %s ORDER BY last", (known.last,))
        else:
            return
        keeper.append([Anchor(block.last, block.mac, block.sealed_at) for block in missing])


def cut(before: datetime) -> int:
    """Retention: remove whole blocks that were sealed before that moment; how many rows that were.

    A signed tombstone block stays for them, and an `audit_cut` event. The newest block always stays. A cut that
    was interrupted is finished by the next one.
    """
    removed, limit = sweep(), clock.stamp(before)
    with transaction.atomic():
        take_turn()
        old = blocks(f"{OLD} ORDER BY last DESC LIMIT 1", (limit, newest(BLOCKS).last, limit, TOP))
        if old:
            bury(old[0])
    return removed + sweep()


def bury(block: Block) -> None:
    """Write the tombstone of this block and of all below it."""
    before = newest(TOMBSTONES)
    stone = replace(
        block,
        first=before.last + 1,
        count=block.last - before.last,
        root=block.mac,
        previous=before.mac,
        tombstone=True,
        sealed_at=clock.stamp(clock.now()),
    )
    insert(f"mcp_auditblock ({COLUMNS})", [astuple(replace(stone, mac=stone.signed(settings.AUDIT_KEY)))])
    audit.event("", "audit_cut", details={"first": stone.first, "last": stone.last, "rows": stone.count})


def sweep() -> int:
    """Delete what lies below the newest tombstone, a few rows a transaction."""
    last, removed = newest(TOMBSTONES).last, 0
    while last and (low := lowest_seal()) <= last:
        high = min(low + CHUNK - 1, last)
        with transaction.atomic(), connection.cursor() as cursor:
            span = "seq BETWEEN %s AND %s"
            sealed = f"SELECT row_uid FROM mcp_auditseal WHERE {span}"  # noqa: S608
            cursor.execute(f"DELETE FROM mcp_auditrow WHERE uid IN ({sealed})", (low, high))  # noqa: S608
            removed += cursor.rowcount
            cursor.execute(f"DELETE FROM mcp_auditseal WHERE {span}", (low, high))  # noqa: S608
            cursor.execute("DELETE FROM mcp_auditblock WHERE tombstone = FALSE AND last <= %s", (high,))
    return removed


def lowest_seal() -> int:
    """The lowest number that is still there."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT MIN(seq) FROM mcp_auditseal")
        return cursor.fetchone()[0] or TOP


def newest(kind: str) -> Block:
    """The last block or tombstone; `START` before the first."""
    found = blocks(f"{kind} ORDER BY last DESC LIMIT 1")
    return found[0] if found else START


def blocks(sql: str, values: Iterable[Any] = ()) -> list[Block]:
    """The blocks of a SELECT."""
    with connection.cursor() as cursor:
        cursor.execute(sql, tuple(values))
        return [as_block(row) for row in cursor.fetchall()]


def as_block(row: Sequence[Any]) -> Block:
    """A block from its columns; SQLite keeps a truth value as a number."""
    block = Block(*row)
    return replace(block, tombstone=bool(block.tombstone))


def insert(into: str, rows: Sequence[Sequence[Any]]) -> None:
    """One INSERT of several rows."""
    places = ", ".join([f"({', '.join(['%s'] * len(rows[0]))})"] * len(rows))
    with connection.cursor() as cursor:
        cursor.execute(f"INSERT INTO {into} VALUES {places}", [value for row in rows for value in row])  # noqa: S608


def now() -> int:
    """Seconds since 1970."""
    return int(clock.now().timestamp())
