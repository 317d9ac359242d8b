"""The record in the admin: read-only for everybody, whatever is posted, and guarded below the admin as well."""

from typing import Any

import pytest
from django.contrib import admin
from django.db import DatabaseError, models, transaction
from django.urls import reverse

from agents.models import PolicyChange
from agents.tests.admin_house import ROLES, House, house
from mcp import audit
from mcp.models import AuditBlock, AuditRow, AuditSeal, Session
from tasks.models import Activity
from tests.rows import row_for

pytestmark = [pytest.mark.django_db, pytest.mark.engines]
RECORD = (AuditRow, AuditSeal, AuditBlock, Session, PolicyChange, Activity)


@pytest.fixture(name="home_of")
def build_house() -> House:
    return house()


def made(model: type[models.Model], home_of: House) -> Any:
    """A row of acme."""
    return row_for(model, home_of.acme)


@pytest.mark.parametrize("model", RECORD, ids=lambda model: model.__name__)
def test_T43_admin_nobody_adds_edits_or_deletes_the_record(home_of: House, model: type[models.Model]) -> None:
    row = made(model, home_of)
    base = reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_changelist")
    before = list(model._base_manager.values_list())
    columns = {field.name: "changed" for field in model._meta.fields}
    for role in ROLES:
        client = home_of.client(role, stepped_up=True)
        assert client.get(f"{base}add/").status_code == 403
        assert client.post(f"{base}add/", columns).status_code == 403
        assert client.post(f"{base}{row.pk}/change/", columns).status_code == 403
        assert client.get(f"{base}{row.pk}/delete/").status_code == 403
        assert client.post(f"{base}{row.pk}/delete/", {"post": "yes"}).status_code == 403
        client.post(base, {"action": "delete_selected", "_selected_action": [row.pk], "post": "yes"})
        client.post(base, {"_save": "Save", "form-TOTAL_FORMS": "1", "form-0-id": row.pk, **columns})
    assert list(model._base_manager.values_list()) == before
    assert tuple(admin.site._registry[model].actions or ()) == ()


@pytest.mark.parametrize("model", [AuditRow, AuditSeal, AuditBlock], ids=lambda model: model.__name__)
def test_T43_admin_the_database_refuses_as_well(home_of: House, model: type[models.Model]) -> None:
    row = made(model, home_of)
    for change in (row.delete, row.save):
        with pytest.raises(DatabaseError, match="append-only"), transaction.atomic():
            change()


def test_audit_is_searched_and_filtered(home_of: House) -> None:
    who = home_of.who("owner")
    audit.insert(audit.call_row(who, "tasks_list", audit.OK, ""))
    audit.insert(audit.call_row(who, "mail_send", audit.DENIED, "denied_tools"))
    client = home_of.client("viewer")
    for query, shown, hidden in (
        ("?q=mail", "mail_send", "tasks_list"),
        ("?outcome__exact=ok", "tasks_list", "mail_send"),
        ("?outcome=ok", "tasks_list", "mail_send"),
    ):
        answer = client.get(f"/admin/mcp/auditrow/{query}")
        rows = answer.content.decode().split('id="result_list"')[1].split("</table>")[0]
        assert shown in rows
        assert hidden not in rows


def test_no_key_and_no_mac_is_a_way_in(home_of: House) -> None:
    """The pages show what the record holds; a look-up by a column that is no filter is refused."""
    audit.insert(audit.call_row(home_of.who("owner"), "tasks_list", audit.OK, ""))
    assert home_of.client("admin").get("/admin/mcp/auditrow/?mac__startswith=a").status_code == 400
