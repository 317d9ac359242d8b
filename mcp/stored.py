"""The record in the database, read by key in steps: constant memory, no long transaction, no lock."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from django.db import connection

from mcp import anchors
from mcp.anchors import Anchor
from mcp.audit import COLUMNS
from mcp.chain import Block
from mcp.record import Entry, Stored
from mcp.seal import BLOCKS, TOMBSTONES, blocks, newest

STEP = 1000  # rows
ROW = ", ".join(f"r.{column}" for column in (*COLUMNS, "mac"))
ENTRIES = (
    f"SELECT s.seq, s.row_uid, s.mac, {ROW} FROM mcp_auditseal s LEFT JOIN mcp_auditrow r ON r.uid = s.row_uid "  # noqa: S608
    "WHERE s.seq BETWEEN %s AND %s ORDER BY s.seq"
)
LOOSE = (
    f"SELECT r.id, {ROW} FROM mcp_auditrow r WHERE r.id > %s AND r.id <= %s "  # noqa: S608
    "AND NOT EXISTS (SELECT 1 FROM mcp_auditseal s WHERE s.row_uid = r.uid) ORDER BY r.id"
)
STRAY = "SELECT MIN(seq) FROM mcp_auditseal WHERE seq > (SELECT COALESCE(MAX(last), 0) FROM mcp_auditblock)"


class Database:
    """The record up to the block that was the newest when this was made. The anchor file is read no further."""

    whole = True

    def __init__(self, anchor_file: Path | None = None) -> None:
        self._file = anchor_file or anchors.path()
        self._bytes = self._file.stat().st_size if self._file.exists() else 0
        self.cut_to = newest(TOMBSTONES).last
        self.last = newest(BLOCKS).last

    def blocks(self) -> Iterator[Block]:
        """By steps of their numbers."""
        for kind, low, high in ((TOMBSTONES, 0, self.cut_to), (BLOCKS, 0, self.last)):
            while step := blocks(f"{kind} AND last > %s AND last <= %s ORDER BY last LIMIT {STEP}", (low, high)):
                yield from step
                low = step[-1].last

    def entries(self, first: int, last: int) -> Iterator[Entry]:
        """By steps of numbers; a number that two rows share comes twice."""
        for low in range(first, last + 1, STEP):
            for seq, uid, mac, *row in select(ENTRIES, (low, min(low + STEP - 1, last))):
                yield Entry(seq, uid, mac, None if row[-1] is None else Stored(tuple(row[:-1]), row[-1]))

    def stray(self) -> int | None:
        """One statement, so that a block sealed meanwhile does no harm."""
        found: int | None = select(STRAY, ())[0][0]
        return found

    def loose(self) -> Iterator[tuple[int, Stored]]:
        """By steps of row ids."""
        low, top = select("SELECT COALESCE(MIN(id), 1) - 1, COALESCE(MAX(id), 0) FROM mcp_auditrow", ())[0]
        while low < top:
            high = upper(low)
            for row_id, *row in select(LOOSE, (low, high)):
                yield row_id, Stored(tuple(row[:-1]), row[-1])
            low = high

    def envelope(self) -> str:
        """A database has none."""
        return ""

    def anchors(self) -> Iterator[Anchor]:
        """As far as the file went before the newest block was looked up."""
        return anchors.read(self._file, self._bytes)


def upper(low: int) -> int:
    """The id that ends the next step of rows above `low`."""
    ids = "SELECT id FROM mcp_auditrow WHERE id > %s ORDER BY id LIMIT %s"
    found: int = select(f"SELECT MAX(id) FROM ({ids}) step", (low, STEP))[0][0]  # noqa: S608
    return found


def select(sql: str, values: tuple[Any, ...]) -> list[Any]:
    """All rows of one step."""
    with connection.cursor() as cursor:
        cursor.execute(sql, values)
        return cursor.fetchall()
