"""The verifier names the first broken place of whatever a superuser did to the record."""

import json
from collections import Counter
from dataclasses import replace
from datetime import timedelta
from io import StringIO
from random import Random
from typing import Any

import pytest
import time_machine
from django.core.management import call_command
from django.db import transaction
from django.test.utils import CaptureQueriesContext

from duduclaw.lib import clock
from mcp import anchors, audit, seal, stored, verify
from mcp.models import AuditBlock, AuditRow
from mcp.record import NOTES
from mcp.tests.plants import PLANTS
from mcp.tests.record import record, row, sql, superuser, write

pytestmark = [pytest.mark.engines, pytest.mark.django_db, pytest.mark.usefixtures("anchor_home")]
SEED = 43
CHANGES = 200


def command(*args: str) -> tuple[int, str]:
    """Exit code and output of `audit verify`."""
    out, code = StringIO(), 0
    try:
        call_command("audit", "verify", *args, stdout=out)
    except SystemExit as end:
        code = int(end.code or 0)
    return code, out.getvalue()


def history() -> None:
    """Ten numbers that retention cut, then eight blocks of five."""
    record(3)
    seal.cut(clock.now() + timedelta(seconds=1))
    write(4, 16)
    seal.seal()
    record(6, start=21)


def test_T43_the_first_of_200_planted_changes_is_named() -> None:
    history()
    assert command("--json")[0] == 0
    random, planted, wrong = Random(SEED), Counter[str](), []
    with superuser():
        for number in range(CHANGES):
            plant = PLANTS[number % len(PLANTS)]
            with transaction.atomic():
                expected = plant(random)
                code, text = command("--json")
                transaction.set_rollback(True)
            damage = json.loads(text)["damage"] or {}
            planted[plant.__name__] += 1
            if (code, damage.get("seq")) != (1, expected):
                wrong.append(f"{plant.__name__} at {expected}: exit {code}, {damage}")
    assert not wrong, f"seed {SEED}\n" + "\n".join(wrong)
    assert planted.total() == CHANGES and len(planted) == len(PLANTS)
    assert command("--json")[0] == 0, "each change was taken back"


def test_T43_the_command_says_in_words_what_is_broken() -> None:
    record(2)
    assert command() == (0, "the record is whole; read 10 rows in 2 blocks, 0 not sealed yet\n")
    with superuser():
        sql("UPDATE mcp_auditrow SET outcome = 'denied' WHERE reason = 'reason-7'")
    code, text = command()
    assert code == 1 and text.startswith("BROKEN at number 7: the row with the number 7 was changed")
    report = json.loads(command("--json")[1])
    assert report["damage"]["kind"] == "row_changed" and report["ok"] is False


def test_T43_a_tail_cut_with_its_anchors_in_place_is_found_after_new_rows() -> None:
    record(3)
    with superuser():
        sql("DELETE FROM mcp_auditrow WHERE uid IN (SELECT row_uid FROM mcp_auditseal WHERE seq > 5)")
        sql("DELETE FROM mcp_auditseal WHERE seq > 5")
        sql("DELETE FROM mcp_auditblock WHERE last > 5")
    write(10, 6)
    seal.seal()
    damage = verify.verify().damage
    assert damage is not None and damage.seq == 6


def test_T43_a_copy_of_the_anchors_outlives_the_file() -> None:
    record(3)
    copy = anchors.path().with_name("elsewhere.jsonl")
    copy.write_bytes(anchors.path().read_bytes())
    with superuser():
        sql("DELETE FROM mcp_auditrow WHERE uid IN (SELECT row_uid FROM mcp_auditseal WHERE seq > 10)")
        sql("DELETE FROM mcp_auditseal WHERE seq > 10")
        sql("DELETE FROM mcp_auditblock WHERE last > 10")
    anchors.path().write_text("".join(anchors.path().read_text().splitlines(keepends=True)[:2]))
    assert command()[0] == 0, "cut in both places nothing is left to compare"
    code, text = command("--anchors", str(copy))
    assert code == 1 and text.startswith("BROKEN at number 11: the tail was cut")


@pytest.mark.parametrize(
    ("text", "seq", "kind"),
    [
        ("", 11, "anchors_missing"),
        ("not json\n", 1, "anchor_unreadable"),
        ('{"last": 5, "mac": "00"}\n', 1, "anchor_differs"),
        ('{"last": 7, "mac": "00"}\n', 1, "anchor_differs"),
        ('{"last": 99, "mac": "00", "sealed_at": "then"}\n', 1, "tail_cut"),
    ],
)
def test_T43_a_damaged_anchor_file_is_found(text: str, seq: int, kind: str) -> None:
    record(2)
    anchors.path().write_text(text)
    damage = verify.verify().damage
    assert damage is not None and (damage.seq, damage.kind) == (seq, kind)


def test_new_rows_wait_and_are_no_damage() -> None:
    record(1)
    write(3, 6)
    report = verify.verify()
    assert report.ok and (report.rows, report.waiting) == (5, 3)


def test_a_clock_that_was_set_is_told_and_is_no_damage() -> None:
    with time_machine.travel("2026-05-02T00:00:00Z", tick=False):
        record(1)
    with time_machine.travel("2026-05-01T00:00:00Z", tick=False):
        write(1, 6)
        seal.seal()
    report = verify.verify()
    assert report.ok and report.notes == ["6 is dated 2026-05-01T00:00:00.000000Z, outside its block: a clock was set"]


def test_a_cut_that_runs_meanwhile_is_no_damage(monkeypatch: pytest.MonkeyPatch) -> None:
    record(3)
    read = stored.Database.entries

    def cut_first(self: stored.Database, first: int, last: int) -> Any:
        monkeypatch.setattr(stored.Database, "entries", read)
        seal.cut(clock.now() + timedelta(seconds=1))
        return read(self, first, last)

    monkeypatch.setattr(stored.Database, "entries", cut_first)
    report = verify.verify()
    assert report.ok and report.cut_to == 10


def test_a_block_sealed_meanwhile_is_no_damage(monkeypatch: pytest.MonkeyPatch) -> None:
    record(2)
    read = stored.Database.entries

    def seal_first(self: stored.Database, first: int, last: int) -> Any:
        write(2, 100 + first)
        seal.seal()
        return read(self, first, last)

    monkeypatch.setattr(stored.Database, "entries", seal_first)
    report = verify.verify()
    assert report.ok and (report.last, report.waiting) == (10, 0)


def test_the_verifier_reads_in_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored, "STEP", 3)
    record(2, 7)
    report = verify.verify()
    assert report.ok and report.rows == 14


def test_a_row_rewritten_with_the_wrong_key_is_found(settings: Any) -> None:
    record(1)
    true = settings.AUDIT_KEY
    settings.AUDIT_KEY = b"another key"
    audit.insert(row(6))
    seal.seal()
    settings.AUDIT_KEY = true
    damage = verify.verify().damage
    assert damage is not None and damage.seq == 6


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        ({"count": 4}, "block_out_of_place"),
        ({"previous": "0" * 64}, "broken_link"),
        ({"root": "0" * 64}, "root_differs"),
        ({"first": 5, "count": 6}, "block_out_of_place"),
    ],
)
def test_a_block_that_somebody_with_the_key_changed_does_not_fit(
    change: dict[str, Any], kind: str, settings: Any
) -> None:
    record(3)
    block = replace(seal.blocks(f"{seal.BLOCKS} AND first = 6")[0], **change)
    columns = {**change, "mac": block.signed(settings.AUDIT_KEY)}
    with superuser():
        for column, value in columns.items():
            sql(f"UPDATE mcp_auditblock SET {column} = %s WHERE last = 10", value)
    damage = verify.verify().damage
    assert damage is not None and (damage.seq, damage.kind) == (6, kind)


def test_notes_are_few() -> None:
    with time_machine.travel("2026-05-02T00:00:00Z", tick=False):
        record(1)
    with time_machine.travel("2026-05-01T00:00:00Z", tick=False):
        record(1, rows=12, start=6)
    report = verify.verify()
    assert report.ok and len(report.notes) == NOTES


def test_verifying_writes_nothing() -> None:
    record(2)
    before = (AuditRow.objects.count(), AuditBlock.objects.count(), anchors.path().read_bytes())
    with transaction.atomic(), CaptureQueriesContext(transaction.get_connection()) as queries:
        verify.verify()
    assert all(query["sql"].lstrip().upper().startswith(("SELECT", "SAVEPOINT", "RELEASE")) for query in queries)
    assert before == (AuditRow.objects.count(), AuditBlock.objects.count(), anchors.path().read_bytes())
