"""The application's own rights do not reach back into the record: the database refuses."""

from datetime import timedelta

import pytest
from django.db import connection, transaction
from django.db.utils import DatabaseError

from duduclaw.lib import clock
from mcp import seal
from mcp.models import AuditBlock, AuditRow, AuditSeal
from mcp.tests.record import record, sql, write
from mcp.verify import verify

pytestmark = [pytest.mark.engines, pytest.mark.django_db, pytest.mark.usefixtures("anchor_home")]
MODELS = (AuditRow, AuditSeal, AuditBlock)
EDITS = {
    AuditRow: "UPDATE mcp_auditrow SET outcome = 'ok'",
    AuditSeal: "UPDATE mcp_auditseal SET seq = seq + 100",
    AuditBlock: "UPDATE mcp_auditblock SET tombstone = TRUE",
}


def contents() -> list[object]:
    """Everything that the record holds."""
    return [list(model.objects.order_by("pk").values()) for model in MODELS]


@pytest.mark.parametrize("model", MODELS)
def test_T43_update_and_delete_are_refused(model: type[AuditRow | AuditSeal | AuditBlock]) -> None:
    record(2)
    write(1, 11)
    before = contents()
    table = model._meta.db_table
    attempts = [EDITS[model], f"DELETE FROM {table}", f"DELETE FROM {table} WHERE 1 = 1"]
    attempts += [f"TRUNCATE {table}"] if connection.vendor == "postgresql" else []
    for attempt in attempts:
        with pytest.raises(DatabaseError, match="permission denied"), transaction.atomic():
            sql(attempt)
    with pytest.raises(DatabaseError, match="permission denied"), transaction.atomic():
        model.objects.latest("pk").delete()
    with pytest.raises(DatabaseError, match="permission denied"), transaction.atomic():
        model.objects.latest("pk").save()
    assert contents() == before


@pytest.mark.parametrize("model", MODELS)
def test_T43_an_insert_that_replaces_is_refused(model: type[AuditRow | AuditSeal | AuditBlock]) -> None:
    record(1)
    before = contents()
    kept = model.objects.order_by("pk").values().first()
    assert kept is not None
    names, places = ", ".join(kept), ", ".join(["%s"] * len(kept))
    replace = {
        "sqlite": f"INSERT OR REPLACE INTO {model._meta.db_table} ({names}) VALUES ({places})",
        "postgresql": f"INSERT INTO {model._meta.db_table} ({names}) VALUES ({places}) "
        f"ON CONFLICT ({model._meta.pk.column}) DO UPDATE SET mac = 'forged'",
    }
    with pytest.raises(DatabaseError, match="permission denied"), transaction.atomic():
        sql(replace[connection.vendor], *({**kept, "mac": "forged"}).values())
    assert contents() == before


def test_T43_nothing_above_a_tombstone_can_be_deleted() -> None:
    record(3)
    seal.cut(clock.now() + timedelta(seconds=1))
    assert verify().cut_to == 10
    assert AuditSeal.objects.earliest("seq").seq == 11
    for model in MODELS:
        with pytest.raises(DatabaseError, match="permission denied"), transaction.atomic():
            sql(f"DELETE FROM {model._meta.db_table}")


def test_a_row_is_still_inserted() -> None:
    record(1)
    write(2, 6)
    assert AuditRow.objects.count() == 7
