"""Changes that a superuser plants in a sealed record. Each returns the number that the verifier must name."""

from collections.abc import Callable
from random import Random

from mcp.audit import COLUMNS, LONGEST
from mcp.models import AuditBlock, AuditRow, AuditSeal
from mcp.tests.record import sql

Plant = Callable[[Random], int]
PLANTS: list[Plant] = []
SWAPPED = [column for column in (*COLUMNS, "mac") if column not in ("uid", "stream", "workspace", "tool", "agent")]
BLOCK_TEXTS = ("root", "previous", "sealed_at", "holes", "mac")


def plant(function: Plant) -> Plant:
    """Add to the list."""
    PLANTS.append(function)
    return function


def place(random: Random) -> tuple[int, str]:
    """A sealed row."""
    return random.choice(list(AuditSeal.objects.values_list("seq", "row_uid")))


def two(random: Random) -> list[tuple[int, str]]:
    """Two sealed rows, in order."""
    return sorted(random.sample(list(AuditSeal.objects.values_list("seq", "row_uid")), 2))


def block_of(random: Random) -> AuditBlock:
    """A block that is no tombstone."""
    return random.choice(list(AuditBlock.objects.filter(tombstone=False)))


def end() -> int:
    """The last number."""
    return AuditBlock.objects.latest("last").last


def altered(random: Random, text: str, room: int) -> str:
    """The text with one character more, less or other, of at most `room` characters."""
    at = random.randrange(len(text)) if text else 0
    other = "0" if text[at : at + 1] != "0" else "1"
    drafts = [text + "x", text[:at] + other + text[at + 1 :], text[:at] + text[at + 1 :], other + text]
    return random.choice([draft for draft in drafts if draft != text and len(draft) <= room])


@plant
def edited_row(random: Random) -> int:
    seq, uid = place(random)
    column = random.choice([name for name in (*COLUMNS, "mac") if name != "uid"])
    old = AuditRow.objects.values_list(column, flat=True).get(uid=uid)
    room = {**LONGEST, "mac": 64}.get(column, 10_000)
    sql(f"UPDATE mcp_auditrow SET {column} = %s WHERE uid = %s", altered(random, old, room), uid)
    return seq


@plant
def edited_clock(random: Random) -> int:
    seq, uid = place(random)
    old = AuditRow.objects.get(uid=uid).timestamp
    hour = f"{(int(old[11:13]) + random.randrange(1, 24)) % 24:02}"
    sql("UPDATE mcp_auditrow SET timestamp = %s WHERE uid = %s", f"{old[:11]}{hour}{old[13:]}", uid)
    return seq


@plant
def edited_uid(random: Random) -> int:
    seq, uid = place(random)
    sql("UPDATE mcp_auditrow SET uid = %s WHERE uid = %s", f"{uid[:-1]}x", uid)
    return seq


@plant
def edited_seal(random: Random) -> int:
    seq, uid = place(random)
    column = random.choice(["mac", "row_uid"])
    sql(f"UPDATE mcp_auditseal SET {column} = %s WHERE seq = %s", altered(random, uid, 36), seq)
    return seq


@plant
def moved_seal(random: Random) -> int:
    seq, _ = place(random)
    sql("UPDATE mcp_auditseal SET seq = %s WHERE seq = %s", end() + random.randrange(1, 9), seq)
    return seq


@plant
def edited_block(random: Random) -> int:
    block = block_of(random)
    column = random.choice(BLOCK_TEXTS)
    new = altered(random, getattr(block, column), 32 if column == "sealed_at" else 64)
    sql(f"UPDATE mcp_auditblock SET {column} = %s WHERE id = %s", new, block.pk)
    return block.first


@plant
def edited_numbers_of_a_block(random: Random) -> int:
    block = block_of(random)
    column = random.choice(["count", "high"])
    sql(f"UPDATE mcp_auditblock SET {column} = {column} + %s WHERE id = %s", random.choice([-1, 1, 7]), block.pk)
    return block.first


@plant
def stretched_block(random: Random) -> int:
    block = block_of(random)
    column = random.choice(["first", "last"])
    sql(f"UPDATE mcp_auditblock SET {column} = {column} + %s WHERE id = %s", random.choice([-1, 1]), block.pk)
    return block.first


@plant
def block_passed_off_as_tombstone(random: Random) -> int:
    block = block_of(random)
    sql("UPDATE mcp_auditblock SET tombstone = TRUE WHERE id = %s", block.pk)
    return block.first


@plant
def deleted_row(random: Random) -> int:
    seq, uid = place(random)
    sql("DELETE FROM mcp_auditrow WHERE uid = %s", uid)
    return seq


@plant
def deleted_row_and_seal(random: Random) -> int:
    seq, uid = place(random)
    sql("DELETE FROM mcp_auditrow WHERE uid = %s", uid)
    sql("DELETE FROM mcp_auditseal WHERE seq = %s", seq)
    return seq


@plant
def deleted_seal(random: Random) -> int:
    seq, _ = place(random)
    sql("DELETE FROM mcp_auditseal WHERE seq = %s", seq)
    return seq


@plant
def deleted_block(random: Random) -> int:
    block = block_of(random)
    sql("DELETE FROM mcp_auditblock WHERE id = %s", block.pk)
    return block.first


@plant
def deleted_block_with_its_rows(random: Random) -> int:
    block = block_of(random)
    drop(block.first, block.last)
    sql("DELETE FROM mcp_auditblock WHERE id = %s", block.pk)
    return block.first


@plant
def deleted_tombstone(random: Random) -> int:
    stone = AuditBlock.objects.get(tombstone=True)
    sql("DELETE FROM mcp_auditblock WHERE id = %s", stone.pk)
    return stone.first


@plant
def inserted_row(random: Random) -> int:
    forged(random)
    return end() + 1


@plant
def inserted_row_and_seal(random: Random) -> int:
    seal(end() + 1, forged(random), random)
    return end() + 1


@plant
def inserted_in_the_middle(random: Random) -> int:
    seq, _ = place(random)
    for number in range(end(), seq - 1, -1):
        sql("UPDATE mcp_auditseal SET seq = seq + 1 WHERE seq = %s", number)
    seal(seq, forged(random), random)
    return seq


@plant
def inserted_block(random: Random) -> int:
    last = AuditBlock.objects.filter(tombstone=False).latest("last")
    seal(last.last + 1, forged(random), random)
    AuditBlock.objects.create(
        first=last.last + 1, last=last.last + 1, count=1, root=last.root, previous=last.mac, sealed_at=last.sealed_at,
        high=last.high + 1, mac=last.mac,
    )  # fmt: skip
    return last.last + 1


@plant
def inserted_tombstone(random: Random) -> int:
    block = block_of(random)
    AuditBlock.objects.create(
        first=block.first, last=end(), count=end() - block.first + 1, root=block.mac, previous=block.previous,
        sealed_at=block.sealed_at, tombstone=True, mac=block.mac,
    )  # fmt: skip
    return block.first


@plant
def swapped_rows(random: Random) -> int:
    (low, left), (_, right) = two(random)
    names = random.choice([SWAPPED, ["timestamp"], ["key"], ["mac"], ["arguments", "request_id"]])
    rows = {uid: AuditRow.objects.filter(uid=uid).values_list(*names).get() for uid in (left, right)}
    for target, source in ((left, right), (right, left)):
        sql(f"UPDATE mcp_auditrow SET {', '.join(f'{name} = %s' for name in names)} WHERE uid = %s",
            *rows[source], target)  # fmt: skip
    return low


@plant
def swapped_numbers(random: Random) -> int:
    (low, _), (high, _) = two(random)
    for old, new in ((low, 0), (high, low), (0, high)):
        sql("UPDATE mcp_auditseal SET seq = %s WHERE seq = %s", new, old)
    return low


@plant
def swapped_uids(random: Random) -> int:
    (low, left), (_, right) = two(random)
    for old, new in ((left, "between"), (right, left), ("between", right)):
        sql("UPDATE mcp_auditrow SET uid = %s WHERE uid = %s", new, old)
    return low


@plant
def swapped_blocks(random: Random) -> int:
    left, right = sorted(random.sample(list(AuditBlock.objects.filter(tombstone=False)), 2), key=lambda b: b.first)
    column = random.choice(["mac", "root", "previous"])
    for block, other in ((left, right), (right, left)):
        sql(f"UPDATE mcp_auditblock SET {column} = %s WHERE id = %s", getattr(other, column), block.pk)
    return left.first


@plant
def cut_tail_of_blocks(random: Random) -> int:
    block = block_of(random)
    drop(block.first, end())
    sql("DELETE FROM mcp_auditblock WHERE first >= %s AND tombstone = FALSE", block.first)
    return block.first


@plant
def cut_tail_of_rows(random: Random) -> int:
    seq, _ = place(random)
    drop(seq, end())
    return seq


@plant
def cut_tail_within_a_block(random: Random) -> int:
    block = block_of(random)
    seq = random.randrange(block.first + 1, block.last + 1)
    drop(seq, end())
    sql("DELETE FROM mcp_auditblock WHERE first > %s AND tombstone = FALSE", block.first)
    sql("UPDATE mcp_auditblock SET last = %s, count = %s WHERE id = %s", seq - 1, seq - block.first, block.pk)
    return block.first


@plant
def cut_everything(random: Random) -> int:
    for table in ("auditrow", "auditseal", "auditblock"):
        sql(f"DELETE FROM mcp_{table}")
    return 1


@plant
def cut_head(random: Random) -> int:
    block = block_of(random)
    first = AuditBlock.objects.filter(tombstone=False).earliest("first").first
    drop(first, block.last)
    sql("DELETE FROM mcp_auditblock WHERE last <= %s AND tombstone = FALSE", block.last)
    return first


def drop(first: int, last: int) -> None:
    """Remove rows and their seals."""
    span = "seq BETWEEN %s AND %s"
    sql(f"DELETE FROM mcp_auditrow WHERE uid IN (SELECT row_uid FROM mcp_auditseal WHERE {span})", first, last)
    sql(f"DELETE FROM mcp_auditseal WHERE {span}", first, last)


def forged(random: Random) -> str:
    """A row that copies a true one, its MAC too, under an id of its own; returns the id."""
    _, uid = place(random)
    kept = AuditRow.objects.values(*COLUMNS, "mac").get(uid=uid)
    new = f"{uid[:-4]}{random.randrange(16**4):04x}"
    return AuditRow.objects.create(**{**kept, "uid": new if new != uid else f"{uid[:-1]}x"}).uid


def seal(seq: int, uid: str, random: Random) -> None:
    """A number for a forged row, with a MAC that belongs to another."""
    mac = random.choice(list(AuditSeal.objects.values_list("mac", flat=True)))
    AuditSeal.objects.create(seq=seq, row_uid=uid, mac=mac)
