"""What the record costs, as ratios to a bare INSERT: `python scripts/measure_audit.py` prints a table.

Runs on the database of the environment (`DATABASE_URL`, `DUDUCLAW_HOME`), which must be empty and migrated.
"""

import os
import random
import statistics
import sys
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import django

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "duduclaw.settings")
django.setup()

from django.db import connection, transaction  # noqa: E402

from duduclaw.lib import clock, redact  # noqa: E402
from mcp import audit, seal, verify  # noqa: E402
from mcp.models import AuditRow  # noqa: E402

CLOCK = time.process_time if "--cpu" in sys.argv else time.perf_counter
SEED, ROUNDS, COMMITS, ROWS = 2026, 9, 200, 10_000
RANDOM = random.Random(SEED)  # noqa: S311
BARE = audit.INSERT.replace("mcp_auditrow", "bare")


def arguments() -> dict[str, object]:
    """What a call of ordinary size sends."""
    words = " ".join(RANDOM.choice(("report", "of", "the", "board", "for", "review")) for _ in range(20))
    return {"title": words, "limit": RANDOM.randrange(100), "tags": ["office", "urgent"], "task_id": "T-121"}


def row() -> audit.Row:
    """A call's row before it is fitted."""
    return audit.Row(
        audit.CALLS, "w", tool="tasks_create", outcome="ok", agent="analyst", key="k" * 36, ms="3.2", transport="http",
        scopes_provided='["admin"]', request_id=str(RANDOM.randrange(9999)), arguments=redact.summary(arguments()),
    )  # fmt: skip


def bare(made: audit.Row) -> None:
    """The same bytes into a table with the same columns and indexes, without MAC, masking, escaping or trigger."""
    with connection.cursor() as cursor:
        cursor.execute(BARE, (*audit.columns_of(made), "0" * 64))


def pair(*, together: bool) -> tuple[float, float, float]:
    """Microseconds a row of a bare INSERT and of the record, and their ratio: medians over alternating rounds."""
    found = []
    for _ in range(ROUNDS):
        rows = [row() for _ in range(2 * COMMITS)]
        base = written(bare, rows[::2], together=together)
        cost = written(audit.insert, rows[1::2], together=together)
        found.append((base, cost, cost / base))
    base, cost, ratio = (statistics.median(column) for column in zip(*found, strict=True))
    return base, cost, ratio


def written(write: Callable[[audit.Row], object], rows: list[audit.Row], *, together: bool) -> float:
    """Microseconds a row, committed alone or in one transaction."""
    started = CLOCK()
    if together:
        with transaction.atomic():
            for made in rows:
                write(made)
    else:
        for made in rows:
            with transaction.atomic():
                write(made)
    return (CLOCK() - started) / len(rows) * 1e6


def seconds(work: Callable[[], object]) -> float:
    """How long it took."""
    started = CLOCK()
    work()
    return CLOCK() - started


def prepare() -> None:
    """A twin of the table, guarded by nothing."""
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute("CREATE TABLE bare (LIKE mcp_auditrow INCLUDING ALL)")
        else:
            cursor.execute("SELECT name, sql FROM sqlite_master WHERE tbl_name = 'mcp_auditrow' AND sql IS NOT NULL "
                           "AND type IN ('table', 'index') ORDER BY type DESC")  # fmt: skip
            for name, statement in cursor.fetchall():
                twin = statement.replace("mcp_auditrow", "bare").replace(f'"{name}"', f'"bare_{name}"')
                cursor.execute(twin.replace('"bare_mcp_auditrow"', '"bare"'))


def main() -> None:
    prepare()
    alone, common = pair(together=False), pair(together=True)
    while seal.seal():
        pass
    with transaction.atomic():
        for _ in range(ROWS):
            audit.insert(row())
    total = seconds(seal.seal)
    idle = statistics.median(seconds(seal.seal) for _ in range(50))
    head = seal.newest(seal.BLOCKS)
    with transaction.atomic():
        for _ in range(seal.CHUNK):
            audit.insert(row())
    waiting = seal.unsealed(head)
    block = seconds(lambda: seal.write(head, waiting))
    rows = AuditRow.objects.count()
    check = seconds(verify.verify)
    assert verify.verify().ok  # noqa: S101
    cut = seconds(lambda: seal.cut(clock.now() + timedelta(seconds=1)))
    sealed = total / ROWS * 1e6
    lines = [
        ("a row in a transaction of its own", *alone),
        ("a row in a common transaction", *common),
        ("sealing 10,000 rows, a row, to one in a transaction of its own", alone[0], sealed, sealed / alone[0]),
        ("sealing 10,000 rows, a row, to one in a common transaction", common[0], sealed, sealed / common[0]),
    ]
    print(
        f"\n{connection.vendor}, seed {SEED}, {'CPU of this process' if CLOCK is time.process_time else 'wall time'}\n"
    )
    print("| | bare INSERT, us | record, us | ratio |\n|---|---|---|---|")
    for name, base, cost, ratio in lines:
        print(f"| {name} | {base:.0f} | {cost:.0f} | {ratio:.2f} |")
    print(f"\nSealing 10,000 rows {total:.2f} s; writing a block of {seal.CHUNK} {block * 1000:.1f} ms; an idle run "
          f"{idle * 1000:.2f} ms; verifying {rows} rows {check:.2f} s; cutting them {cut:.2f} s.")  # fmt: skip


if __name__ == "__main__":
    main()
