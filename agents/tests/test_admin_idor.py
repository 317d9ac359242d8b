"""T47 in the admin: what another workspace has is answered exactly as what never was.

Generated from the registry and each page's own addresses, so a new admin page joins by itself.
"""

import re
from itertools import product
from typing import Any
from urllib.parse import urlencode

import pytest
from django.contrib import admin
from django.contrib.messages import get_messages
from django.db import models
from django.test import Client
from django.urls import reverse

from agents.admin_base import WorkspaceAdmin
from agents.tests.admin_house import House, house, signed_in
from duduclaw.adminsite import SECTIONS
from duduclaw.lib.ids import new_id
from tests.rows import row_for

pytestmark = pytest.mark.django_db

MARKER = "globexonly"
BIG = 123_456_789
SHARED = {"mcp.AuditBlock"}  # of the platform, not of a workspace
QUERIES = ("", "?q={}", "?ids={}&decision=approve", "?agent__id__exact={}", "?pk={}", "?id__exact={}")
SURE: tuple[dict[str, str], ...] = ({}, {"confirmed": "yes", "reason": "because", "post": "yes"})
MODELS = sorted(admin.site._registry, key=lambda model: model._meta.label)
TENANT_MODELS = [model for model in MODELS if model._meta.label not in SHARED]
NOISE = re.compile(r'(name="csrfmiddlewaretoken" value="|name="opened_at" value=")[^"]+|id="id_[a-z_]+"')


@pytest.fixture(name="home_of")
def build_house() -> House:
    return house()


def label(model: type[models.Model]) -> str:
    return model._meta.label


def page_of(model: type[models.Model]) -> Any:
    found = admin.site._registry[model]
    assert isinstance(found, WorkspaceAdmin)
    return found


def foreign(model: type[models.Model], home_of: House) -> Any:
    """A row of globex: one that stands there already, or a new one full of the marker."""
    who = home_of.globex.who("operator")
    mine = page_of(model).owned(model._base_manager.all(), who)
    if isinstance(model._meta.pk, models.AutoField):
        # A number that stands nowhere else on a page.
        if label(model) != "agents.Version":  # its rows are the triggers' own
            return row_for(model, home_of.globex, MARKER, id=BIG)
        mine.filter(pk=mine.first().pk).update(id=BIG)
        return mine.get(pk=BIG)
    return mine.first() or row_for(model, home_of.globex, MARKER)


def base_of(model: type[models.Model]) -> str:
    """Address of the model's list."""
    return reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_changelist")


def browsers(home_of: House) -> list[Client]:
    """Those of acme who may least and most, with a fresh step-up."""
    return [home_of.client(role, stepped_up=True) for role in ("viewer", "admin")]


def absent(row: Any) -> Any:
    """An id of the same kind that no row has."""
    return 987_654_321 if isinstance(row.pk, int) else new_id()


def told(client: Client, answer: Any, pk: Any) -> tuple[Any, ...]:
    """All that a person can tell apart: status, address, the text of the page, and what the next page will say."""
    says = [str(message) for message in get_messages(answer.wsgi_request)]
    client.cookies.pop("messages", None)  # or the next page would say it
    parts = (answer.headers.get("Location", ""), answer.content.decode(), *says)
    return answer.status_code, *(NOISE.sub("", part.replace(str(pk), "ID")) for part in parts)


def same(client: Client, ask: Any, row: Any) -> None:
    """`ask(pk)` is answered alike for the foreign row and for none."""
    there, nowhere = (told(client, ask(pk), pk) for pk in (row.pk, absent(row)))
    assert there == nowhere
    assert MARKER not in repr(there)


@pytest.mark.parametrize("model", TENANT_MODELS, ids=label)
def test_T47_admin_pages(home_of: House, model: type[models.Model]) -> None:
    row = foreign(model, home_of)
    routes = [str(pattern.pattern).replace("<path:object_id>", "{}") for pattern in page_of(model).get_urls()]
    for client, route in product(browsers(home_of), routes):
        at = base_of(model) + route
        if "{}" in route:
            same(client, lambda pk, at=at, by=client: by.get(at.format(pk)), row)
            same(client, lambda pk, at=at, by=client: by.post(at.format(pk), {"post": "yes"}), row)


@pytest.mark.parametrize("model", TENANT_MODELS, ids=label)
def test_T47_admin_lists_and_pages_without_an_id(home_of: House, model: type[models.Model]) -> None:
    row = foreign(model, home_of)
    routes = [str(pattern.pattern) for pattern in page_of(model).get_urls() if "<" not in str(pattern.pattern)]
    client = home_of.client("admin", stepped_up=True)
    base = base_of(model)
    for route, query in product(routes, QUERIES):
        at = base + route + query
        same(client, lambda pk, at=at: client.get(at.format(pk)), row)


@pytest.mark.parametrize("model", TENANT_MODELS, ids=label)
def test_T47_admin_actions(home_of: House, model: type[models.Model]) -> None:
    row = foreign(model, home_of)
    before = list(model._base_manager.filter(pk=row.pk).values_list())
    actions = (*page_of(model).actions, "delete_selected")
    client = home_of.client("admin", stepped_up=True)
    for action, sure in product(actions, SURE):

        def act(pk: Any, action: str = action, sure: Any = sure) -> Any:
            return client.post(base_of(model), {"action": action, "_selected_action": [pk], **sure})

        same(client, act, row)
    assert list(model._base_manager.filter(pk=row.pk).values_list()) == before


def relations() -> list[Any]:
    """Every relation of every model that some picker may offer."""
    return [
        pytest.param(model, field, id=f"{label(model)}.{field.name}")
        for model in MODELS
        for field in model._meta.get_fields()
        if getattr(field, "many_to_one", False) and not field.auto_created
    ]


@pytest.mark.parametrize(("model", "field"), relations())
def test_T47_admin_autocomplete(home_of: House, model: type[models.Model], field: Any) -> None:
    if field.related_model in admin.site._registry:
        foreign(field.related_model, home_of)
    for role in ("viewer", "admin"):
        query = {"app_label": model._meta.app_label, "model_name": model._meta.model_name, "field_name": field.name}
        answer = home_of.client(role).get(f"/admin/autocomplete/?{urlencode({**query, 'term': ''})}")
        assert answer.status_code in (200, 403)
        if answer.status_code == 200:
            ours = home_of.acme.who("operator").workspace
            shown = field.related_model._base_manager.filter(pk__in=[item["id"] for item in answer.json()["results"]])
            assert {getattr(item, "workspace_id", ours) for item in shown} <= {ours}


def test_T47_admin_choices_of_a_form(home_of: House) -> None:
    """A superior of another workspace is as invalid as one that never was."""
    client, agent = home_of.client("operator"), home_of.acme.owner
    address = f"/admin/agents/agent/{agent.pk}/change/"

    def choose(pk: Any) -> Any:
        return client.post(address, {"display_name": "Owner", "reports_to": pk, "seen_version": agent.version})

    same(client, choose, home_of.globex.owner)
    agent.refresh_from_db()
    assert agent.reports_to_id is None


@pytest.mark.parametrize("model", TENANT_MODELS, ids=label)
def test_T47_admin_shows_its_own(home_of: House, model: type[models.Model]) -> None:
    """The other half of the proof: the same row is there for its own people."""
    row = foreign(model, home_of)
    client = signed_in(home_of.people["stranger"])
    assert client.get(f"{base_of(model)}{row.pk}/change/").status_code == 200
    assert client.get(f"{base_of(model)}{row.pk}/history/").status_code == 200


def test_a_free_look_up_is_no_oracle(home_of: House) -> None:
    client = home_of.client("admin")
    for query in ("digest__startswith=a", "agent__capabilities__allowed_tools__contains=x", "workspace__slug=globex"):
        assert client.get(f"/admin/agents/key/?{query}").status_code == 400


def test_nul_in_an_id_is_no_such_row(home_of: House) -> None:
    assert home_of.client("admin").get("/admin/agents/agent/a%00b/change/").status_code == 302


def test_every_page_is_bounded_and_every_model_has_one() -> None:
    assert all(isinstance(page, WorkspaceAdmin) for page in admin.site._registry.values())
    listed = [name for _, names in SECTIONS for name in names]
    assert sorted(listed) == sorted(label(model) for model in MODELS)


def test_shared_pages_are_read_only(home_of: House) -> None:
    for name in SHARED:
        page = page_of(next(model for model in MODELS if label(model) == name))
        assert (page.add_role, page.change_role, tuple(page.actions)) == (None, None, ())
