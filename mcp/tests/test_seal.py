"""The sealer: every committed row gets one number, whatever the order of commits, batches and sealers."""

import json
import stat
import threading
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest
import time_machine
from django.db import connection, transaction
from django.db.utils import DatabaseError
from django.test.utils import CaptureQueriesContext

from duduclaw.beat import SCHEDULE
from duduclaw.celery import app
from duduclaw.lib import clock
from mcp import anchors, audit, holes, jobs, seal
from mcp.models import AuditBlock, AuditRow, AuditSeal
from mcp.tests.record import complete, numbers, record, row, sql, superuser, write
from mcp.verify import verify

pytestmark = [pytest.mark.engines, pytest.mark.django_db, pytest.mark.usefixtures("anchor_home")]
in_the_open = pytest.mark.django_db(transaction=True)
on_postgres = pytest.mark.skipif("connection.vendor != 'postgresql'", reason="ids out of order need PostgreSQL")


def lines() -> list[dict[str, object]]:
    """The anchor file."""
    return [json.loads(line) for line in anchors.path().read_text().splitlines()]


def broken() -> tuple[int, str]:
    """What the verifier names."""
    damage = verify().damage
    assert damage is not None
    return damage.seq, damage.kind


def test_rows_get_numbers_in_blocks_that_are_chained_and_anchored() -> None:
    write(3)
    assert seal.seal() == 3
    write(2, 4)
    assert seal.seal() == 2
    first, second = AuditBlock.objects.all()
    assert (first.first, first.last, second.first, second.last) == (1, 3, 4, 5)
    assert second.previous == first.mac
    assert [(line["last"], line["mac"]) for line in lines()] == [(3, first.mac), (5, second.mac)]
    assert stat.S_IMODE(anchors.path().stat().st_mode) == 0o600
    assert complete() and verify().ok


def test_nothing_to_do_costs_two_selects() -> None:
    with time_machine.travel(clock.now() - timedelta(seconds=holes.WINDOW + 1)):
        record(2)
    with CaptureQueriesContext(connection) as queries:
        assert seal.seal() == 0
    assert len(queries) == 2 and all("SELECT" in query["sql"] for query in queries)


def test_a_busy_run_reads_new_rows_alone() -> None:
    with time_machine.travel(clock.now() - timedelta(seconds=holes.WINDOW + 1)):
        record(3)
    write(4, 16)
    with CaptureQueriesContext(connection) as queries:
        assert seal.seal() == 4
    assert not any("SELECT row_uid" in query["sql"] for query in queries), "rows sealed long ago are looked at again"


def test_more_than_a_block_is_sealed_in_bounded_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seal, "CHUNK", 4)
    write(10)
    assert seal.seal() == 10
    assert [block.count for block in AuditBlock.objects.all()] == [4, 4, 2]
    assert complete() and verify().ok


def test_one_run_is_bounded_and_the_next_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seal, "CHUNK", 2)
    monkeypatch.setattr(seal, "CHUNKS", 2)
    write(5)
    assert (seal.seal(), seal.seal(), seal.seal()) == (4, 1, 0)
    assert complete() and lines()[-1]["last"] == 5


def test_a_row_rolled_back_gets_no_number() -> None:
    write(1)
    with pytest.raises(ZeroDivisionError), transaction.atomic():
        audit.insert(row(2))
        raise ZeroDivisionError
    write(1, 3)
    assert seal.seal() == 2 and complete()


class Late:
    """A row that is inserted now and committed, or rolled back, when told."""

    def __init__(self, number: int) -> None:
        self.inserted, self.told, self.commit = threading.Event(), threading.Event(), True
        self.thread = threading.Thread(target=self.run, args=(number,))
        self.thread.start()
        assert self.inserted.wait(60)

    def run(self, number: int) -> None:
        with transaction.atomic():
            audit.insert(row(number))
            self.inserted.set()
            assert self.told.wait(60)
            transaction.set_rollback(not self.commit)
        connection.close()

    def end(self, *, commit: bool = True) -> None:
        """Let its transaction end."""
        self.commit = commit
        self.told.set()
        self.thread.join(60)


@on_postgres
@in_the_open
def test_a_late_commit_below_sealed_ids_is_found() -> None:
    late = Late(1)
    write(3, 2)
    assert seal.seal() == 3
    assert seal.seal() == 0 and verify().ok
    late.end()
    assert verify().waiting == 1
    assert seal.seal() == 1
    ids = dict(AuditRow.objects.values_list("uid", "id"))
    order = [ids[uid] for uid in AuditSeal.objects.values_list("row_uid", flat=True)]
    assert order[-1] == min(order), "the lowest id has the highest number"
    assert complete() and verify().ok


@on_postgres
@in_the_open
def test_a_hole_that_never_fills_is_forgotten_after_the_window() -> None:
    late = Late(1)
    write(2, 2)
    seal.seal()
    late.end(commit=False)
    with time_machine.travel(clock.now() + timedelta(seconds=holes.WINDOW + 1), tick=False):
        with CaptureQueriesContext(connection) as queries:
            seal.seal()
        assert len(queries) == 2
        write(1, 4)
        assert seal.seal() == 1
    assert AuditBlock.objects.latest("last").holes == "[]" and complete()


def test_a_crash_between_commit_and_anchor_heals(monkeypatch: pytest.MonkeyPatch) -> None:
    record(1)
    whole = anchors.path().read_text()
    record(2)
    anchors.path().write_text(whole + '{"last": 10, "ma')
    assert verify().ok, "a torn last line is no damage"
    assert seal.seal() == 0
    assert [line["last"] for line in lines()] == [5, 10, 15]
    assert not verify().notes


def test_what_cannot_be_anchored_stops_the_sealer(anchor_home: Path) -> None:
    record(1)
    anchors.path().unlink()
    anchors.path().mkdir()
    write(1, 6)
    with pytest.raises(IsADirectoryError):
        seal.seal()
    assert numbers() == [1, 2, 3, 4, 5]
    anchors.path().rmdir()
    assert seal.seal() == 1 and [line["last"] for line in lines()] == [5, 6]


def test_an_anchor_file_ahead_of_the_database_is_kept_as_evidence() -> None:
    record(3)
    with superuser():
        for table, last in (("auditblock", "last"), ("auditseal", "seq")):
            sql(f"DELETE FROM mcp_{table} WHERE {last} > 5")
        sql("DELETE FROM mcp_auditrow WHERE uid NOT IN (SELECT row_uid FROM mcp_auditseal)")
    write(1, 20)
    assert seal.seal() == 1
    assert [line["last"] for line in lines()] == [5, 10, 15]
    assert broken() == (6, "tail_cut")
    write(9, 21)
    assert seal.seal() == 9
    assert [line["last"] for line in lines()] == [5, 10, 15]
    assert broken() == (6, "anchor_differs")


def in_threads(*work: Callable[[], None]) -> None:
    """Run all at once; the first failure is raised."""
    faults: list[BaseException] = []

    def guarded(function: Callable[[], None]) -> None:
        try:
            function()
        except BaseException as fault:
            faults.append(fault)
        finally:
            connection.close()

    threads = [threading.Thread(target=guarded, args=(function,)) for function in work]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
        assert not thread.is_alive()
    if faults:
        raise faults[0]


@in_the_open
def test_four_writers_and_two_sealers_leave_no_gap_and_no_double(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seal, "CHUNK", 7)
    writing, each = threading.Event(), 60
    left = [4]
    lock = threading.Lock()

    def writer(start: int) -> Callable[[], None]:
        def run() -> None:
            for number in range(start, start + each):
                with transaction.atomic():
                    audit.insert(row(number))
                    transaction.set_rollback(number % 6 == 0)
            with lock:
                left[0] -= 1
                if not left[0]:
                    writing.set()

        return run

    def sealer() -> None:
        while not writing.is_set():
            seal.seal()

    in_threads(*(writer(start) for start in (0, 60, 120, 180)), sealer, sealer)
    while seal.seal():
        pass
    assert AuditRow.objects.count() == 200
    assert complete() and verify().ok


def test_retention_cuts_whole_blocks_and_leaves_a_signed_tombstone() -> None:
    with time_machine.travel("2026-01-01T00:00:00Z", tick=False):
        record(2)
    with time_machine.travel("2026-02-01T00:00:00Z", tick=False):
        record(2)
        assert seal.cut(clock.now() - timedelta(days=10)) == 10
        assert seal.cut(clock.now() - timedelta(days=10)) == 0
        seal.seal()
        report = verify()
        assert report.ok and (report.cut_to, report.rows, report.last) == (10, 11, 21)
        assert AuditRow.objects.filter(reason="audit_cut").get().details.count('"last": 10') == 1
    with time_machine.travel("2026-03-01T00:00:00Z", tick=False):
        record(1)
        assert seal.cut(clock.now()) == 11, "the newest block stays"
        assert AuditBlock.objects.filter(tombstone=True).count() == 2
        assert verify().ok
        with pytest.raises(DatabaseError, match="permission denied"), transaction.atomic():
            AuditBlock.objects.filter(tombstone=True).delete()


def test_an_interrupted_cut_is_accepted_and_finished_later(monkeypatch: pytest.MonkeyPatch) -> None:
    record(4)
    with monkeypatch.context() as halfway:
        halfway.setattr(seal, "sweep", lambda: 0)
        seal.cut(clock.now() + timedelta(seconds=1))
    assert (AuditRow.objects.count(), verify().cut_to, verify().ok) == (21, 15, True)
    sql("DELETE FROM mcp_auditrow WHERE uid IN (SELECT row_uid FROM mcp_auditseal WHERE seq < 4)")
    assert verify().ok
    assert seal.cut(clock.now() - timedelta(days=1)) == 12
    assert numbers() == list(range(16, 21)) and verify().ok


def test_a_clock_that_was_set_back_costs_no_younger_row() -> None:
    for moment in ("2026-05-01", "2026-01-01", "2026-05-02"):
        with time_machine.travel(f"{moment}T00:00:00Z", tick=False):
            record(1)
    with time_machine.travel("2026-06-01T00:00:00Z", tick=False):
        assert seal.cut(clock.now() - timedelta(days=60)) == 0
        assert verify().ok and len(verify().notes) == 5


def test_the_scheduler_seals_each_second() -> None:
    entry = SCHEDULE["seal"]
    assert (entry["task"], entry["schedule"]) == (jobs.seal_audit.name, 1.0)
    assert jobs.seal_audit.name in app.tasks
    write(2)
    jobs.seal_audit()
    assert complete()
