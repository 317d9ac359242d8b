"""T46 in the admin: no write without the token, none by GET, no frame. Generated from the site's addresses."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.apps import apps
from django.contrib import admin
from django.db import models
from django.test import Client
from django.urls import URLPattern, URLResolver

from agents.tests.admin_house import House, house, question, signed_in, step_up
from tests.rows import row_for

pytestmark = pytest.mark.django_db
NOT_STATE = {"sessions.Session"}
EXTRA = "?action=remove&decision=approve&confirmed=yes&ids={0}&_selected_action={0}&post=yes&note=x"


@pytest.fixture(name="home_of")
def build_house() -> House:
    made = house()
    for model in admin.site._registry:
        if mine(model, made) is None:
            row_for(model, made.acme)
    return made


def mine(model: type[models.Model], home_of: House) -> Any:
    """A row of acme, or None."""
    page: Any = admin.site._registry[model]
    return page.owned(model._base_manager.all(), home_of.acme.who("operator")).first()


def addresses(patterns: list[Any], before: str = "/admin/") -> Iterator[tuple[str, Any]]:
    """Every address of the site and the model that it belongs to, with `{0}` for an id."""
    for pattern in patterns:
        route = before + str(pattern.pattern)
        if isinstance(pattern, URLResolver):
            yield from addresses(pattern.url_patterns, route)
        elif isinstance(pattern, URLPattern) and "<" not in route.replace("<path:object_id>", ""):
            yield route.replace("<path:object_id>", "{0}"), pattern


def routes() -> list[str]:
    found = sorted({route for route, _ in addresses(admin.site.get_urls()) if "(" not in route})
    assert len(found) > 80
    return found


def id_for(route: str, home_of: House) -> Any:
    """A row of acme of the address's model."""
    parts = route.split("/")
    for model in admin.site._registry:
        if parts[2:4] == [model._meta.app_label, model._meta.model_name]:
            return mine(model, home_of).pk
    return "none"


def everything() -> dict[str, list[Any]]:
    """All rows of all tables but the sessions."""
    return {
        model._meta.label: sorted(map(repr, model._base_manager.values_list()))
        for model in apps.get_models(include_auto_created=True)
        if model._meta.label not in NOT_STATE
    }


def test_T46_admin_posts_without_a_token_are_403(home_of: House) -> None:
    client = signed_in(home_of.people["admin"])
    step_up(client)
    strict = Client(enforce_csrf_checks=True)
    strict.cookies = client.cookies
    before = everything()
    for route in routes():
        address = route.format(id_for(route, home_of))
        answer = strict.post(address, {"action": "remove", "confirmed": "yes", "_selected_action": ["x"]})
        assert answer.status_code in (403, 405), address
    assert everything() == before


def test_T46_admin_a_login_without_a_token_is_403(home_of: House) -> None:
    form = {"username": "admin", "password": "a long enough password", "next": "/admin/"}
    assert Client(enforce_csrf_checks=True).post("/admin/login/", form).status_code == 403


def test_T46_admin_get_changes_nothing_and_no_page_stands_in_a_frame(home_of: House) -> None:
    client = home_of.client("admin", stepped_up=True)
    row = question(home_of.acme.owner)
    before = everything()
    for route in routes():
        if "logout" in route:
            continue
        for extra in ("", EXTRA.format(row.pk)):
            address = route.format(id_for(route, home_of)) + extra
            answer = client.get(address)
            assert answer.status_code < 500, address
            if answer.status_code == 200 and "jsi18n" not in address:
                assert answer.headers["X-Frame-Options"] == "DENY", address
                assert "script-src 'self'" in answer.headers["Content-Security-Policy"]
                assert "unsafe-inline" not in answer.headers["Content-Security-Policy"]
    assert client.get("/admin/logout/").status_code == 405
    assert everything() == before


def test_T46_admin_a_token_of_another_site_is_403(home_of: House) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(home_of.people["admin"])
    token = client.get("/admin/login/?next=/x").cookies.get("csrftoken")
    page = client.get(f"/admin/agents/agent/{home_of.acme.owner.pk}/change/")
    good = token.value if token else page.cookies["csrftoken"].value
    address = "/admin/agents/agent/"
    form = {"action": "pause", "_selected_action": [home_of.acme.owner.pk]}
    assert client.post(address, {**form, "csrfmiddlewaretoken": "x" * 32}).status_code == 403
    foreign = {"Origin": "https://example.org"}
    assert client.post(address, {**form, "csrfmiddlewaretoken": good}, headers=foreign).status_code == 403
    home_of.acme.owner.refresh_from_db()
    assert home_of.acme.owner.status == "active"
    assert client.post(address, {**form, "csrfmiddlewaretoken": good}).status_code == 302
    home_of.acme.owner.refresh_from_db()
    assert home_of.acme.owner.status == "paused"
