"""The verifier: reads a record from one end to the other and names its first broken place.

It trusts the key alone and computes every MAC again from stored text, a few rows at a time. Three passes: the
chain of blocks with their rows, the rows without a number, the anchors against the blocks.
"""

from collections import deque
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta

from django.conf import settings

from duduclaw.lib import clock
from mcp import holes
from mcp.anchors import Anchor, BadAnchor
from mcp.audit import COLUMNS, row_mac
from mcp.chain import GENESIS, Block, Root, same, seal_mac
from mcp.record import Damage, Entry, Record, Report, Stored
from mcp.stored import Database

TIMESTAMP, UID = COLUMNS.index("timestamp"), COLUMNS.index("uid")
TRIES = 3
SKEW = timedelta(minutes=1)  # between the clocks of two machines


class Broken(Exception):
    """Carries the first damage of one pass."""

    def __init__(self, seq: int, kind: str, text: str) -> None:
        super().__init__(text)
        self.damage = Damage(seq, kind, text)


def verify() -> Report:
    """Verify the database's own record. When retention cut rows meanwhile it is read again."""
    for _ in range(TRIES):
        record = Database()
        report = examine(record, settings.AUDIT_KEY)
        if report.ok or Database().cut_to == record.cut_to:
            break
    return report


def examine(record: Record, key: bytes) -> Report:
    """Read the whole record; of all damages the report names the one with the lowest number."""
    report, found = Report(), []
    passes: tuple[Callable[[Record, bytes, Report], None], ...] = (check_chain, check_loose, check_anchors)
    for check in passes:
        try:
            check(record, key, report)
        except Broken as broken:
            found.append(broken.damage)
    if not found and (fault := record.envelope()):
        found.append(Damage(report.last + 1, "envelope", fault))
    report.damage = min(found, key=lambda damage: damage.seq, default=None)
    return report


def check_chain(record: Record, key: bytes, report: Report) -> None:
    """Blocks follow each other, tombstones first, and within each its rows."""
    link = stone = GENESIS
    end, earlier, forged = 0, "", 0
    for block in record.blocks():
        if block.last <= report.cut_to and not block.tombstone:
            continue  # an interrupted cut left it
        if block.tombstone and block.first > end + 1 and not same(block.signed(key), block.mac):
            forged = forged or block.first
            continue  # what it claims to stand for may be there
        check_block(block, key, end + 1, stone if block.tombstone else link)
        link, end = block.link, block.last
        if block.tombstone:
            stone, report.cut_to = block.mac, end
        else:
            check_rows(record, key, block, earlier, report)
            earlier, report.last = block.sealed_at, end
            report.blocks += 1
    stray = record.stray()
    if stray is not None:
        raise Broken(end + 1, "seal_without_block", f"the seal number {stray} belongs to no block")
    if forged:
        raise Broken(min(forged, end + 1), "block_changed", f"the tombstone that begins with {forged} is forged")


def check_block(block: Block, key: bytes, expected: int, previous: str) -> None:
    """The block itself: its MAC, its place, the block before it."""
    name = f"the {'tombstone' if block.tombstone else 'block'} {block.first} to {block.last}"
    if not same(block.signed(key), block.mac):
        raise Broken(expected, "block_changed", f"{name} was changed: its MAC is wrong")
    if block.first > expected:
        raise Broken(expected, "missing_block", f"the block that begins with {expected} is missing before {name}")
    if block.first < expected or block.count != block.last - block.first + 1:
        raise Broken(expected, "block_out_of_place", f"{name} is not the one that follows number {expected - 1}")
    if not same(block.previous, previous):
        raise Broken(expected, "broken_link", f"{name} does not continue the block before it")


def check_rows(record: Record, key: bytes, block: Block, earlier: str, report: Report) -> None:
    """The rows of a block: none missing, none twice, each MAC right, and together the block's root."""
    expected, root, (oldest, newest) = block.first, Root(), dates(earlier, block.sealed_at)
    for entry in record.entries(block.first, block.last):
        if entry.seq < expected:
            raise Broken(entry.seq, "double", f"the number {entry.seq} stands there twice")
        if record.whole and entry.seq > expected:
            raise Broken(expected, "missing_seal", f"the number {expected} is missing")
        row = check_entry(entry, key)
        if not oldest <= row.values[TIMESTAMP] <= newest:
            report.note(f"{entry.seq} is dated {row.values[TIMESTAMP]}, outside its block: a clock was set")
        root.add(entry.mac)
        expected = entry.seq + 1
        report.rows += 1
    if record.whole and expected <= block.last:
        raise Broken(expected, "missing_seal", f"the number {expected} is missing")
    if record.whole and root.hexdigest() != block.root:
        raise Broken(block.first, "root_differs", f"the rows {block.first} to {block.last} are not those sealed")


def check_entry(entry: Entry, key: bytes) -> Stored:
    """One row and its seal."""
    row = entry.row
    if row is None:
        raise Broken(entry.seq, "missing_row", f"the row with the number {entry.seq} was deleted")
    if not same(row_mac(key, row.values), row.mac):
        raise Broken(entry.seq, "row_changed", f"the row with the number {entry.seq} was changed: its MAC is wrong")
    if not same(seal_mac(key, entry.seq, entry.row_uid, row.mac), entry.mac):
        raise Broken(entry.seq, "seal_changed", f"the number {entry.seq} was given to another row")
    return row


def dates(earlier: str, sealed_at: str) -> tuple[str, str]:
    """Between which moments a row was written that one run of the sealer did not see and the next one did."""
    oldest = clock.stamp(datetime.fromisoformat(earlier) - timedelta(seconds=holes.WINDOW)) if earlier else ""
    return oldest, clock.stamp(datetime.fromisoformat(sealed_at) + SKEW)


def check_loose(record: Record, key: bytes, report: Report) -> None:
    """A row without a number is new, or may still be found by the sealer; else it was planted or lost its seal."""
    end = deque(record.blocks(), maxlen=1)
    last, high, text = (end[0].last, end[0].high, end[0].holes) if end else (0, 0, "[]")
    open_holes = holes.alive(holes.load(text), int(clock.now().timestamp()))
    for row_id, row in record.loose():
        name = f"the row {row.values[UID]} of {row.values[TIMESTAMP]} has no number"
        if not same(row_mac(key, row.values), row.mac):
            raise Broken(last + 1, "forged_row", f"{name} and a wrong MAC: it was not written by the application")
        if row_id <= high and not holes.covers(open_holes, row_id):
            raise Broken(last + 1, "unsealed_row", f"{name} although younger rows have: its seal was removed")
        report.waiting += 1


def check_anchors(record: Record, key: bytes, report: Report) -> None:
    """Each anchor names a block that is there, unchanged."""
    agreed = report.cut_to
    try:
        for anchor, block in pairs(record, report.cut_to):
            check_anchor(anchor, block, agreed)
            agreed = report.anchored = anchor.last
    except BadAnchor as error:
        raise Broken(agreed + 1, "anchor_unreadable", str(error)) from error
    if report.blocks and not report.anchored:
        raise Broken(report.last + 1, "anchors_missing", "no block is anchored: whether a tail was cut cannot be known")
    if report.last > agreed:
        report.note(f"the anchor file ends with {agreed}, the record with {report.last}")


def pairs(record: Record, cut_to: int) -> Iterator[tuple[Anchor, Block | None]]:
    """Each anchor above what was cut, and the first block that ends there or later."""
    blocks = (block for block in record.blocks() if not block.tombstone)
    block = next(blocks, None)
    for anchor in record.anchors():
        if anchor.last <= cut_to:
            continue
        while block is not None and block.last < anchor.last:
            block = next(blocks, None)
        yield anchor, block


def check_anchor(anchor: Anchor, block: Block | None, agreed: int) -> None:
    """The anchored block stands in the record."""
    if block is None:
        raise Broken(
            agreed + 1,
            "tail_cut",
            f"the tail was cut: {anchor.last} was the last number at {anchor.sealed_at}, and the record ends before",
        )
    if block.last != anchor.last or not same(block.mac, anchor.mac):
        text = f"the block that ended with {anchor.last} at {anchor.sealed_at} is gone; another took its place"
        raise Broken(agreed + 1, "anchor_differs", text)
