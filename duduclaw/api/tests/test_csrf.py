"""T46 over REST: a session writes only with its token, reading changes nothing, nothing is framed."""

from typing import Any

import pytest
from django.db import connection
from django.middleware.csrf import get_token
from django.test import RequestFactory
from django.test.utils import CaptureQueriesContext
from rest_framework.test import APIClient

from duduclaw.api.tests import routes
from duduclaw.api.tests.house import House, house
from duduclaw.api.tests.routes import Route

pytestmark = pytest.mark.django_db
WRITES = [route for route in routes.every() if route.method != "get"]
READS = [route for route in routes.every() if route.method == "get"]
CHANGES = ("INSERT", "UPDATE", "DELETE", "REPLACE")


@pytest.fixture
def home() -> House:
    return house()


def go(client: APIClient, route: Route, **headers: str) -> Any:
    """One request of a route."""
    verb = getattr(client, route.method)
    path = route.path("owner")
    return verb(path, route.body, format="json", **headers) if route.body is not None else verb(path, **headers)


def changes(queries: CaptureQueriesContext) -> list[str]:
    """The statements that write."""
    return [query["sql"] for query in queries if query["sql"].lstrip().upper().startswith(CHANGES)]


@pytest.mark.parametrize("route", WRITES, ids=lambda route: f"{route.method} {route.name}")
def test_T46_rest_a_write_needs_the_token(home: House, route: Route) -> None:
    client = home.person("admin", csrf=True)
    with CaptureQueriesContext(
        connection,
    ) as queries:
        answer = go(client, route)
    assert (answer.status_code, answer.json()["error"]) == (403, "csrf_failed")
    assert changes(queries) == []
    token = get_token(RequestFactory().get("/"))
    client.cookies["csrftoken"] = token
    answer = go(client, route, HTTP_X_CSRFTOKEN=token)
    assert answer.json().get("error") != "csrf_failed"
    assert go(client, route, HTTP_X_CSRFTOKEN=token[::-1]).json()["error"] == "csrf_failed"


@pytest.mark.parametrize("route", READS, ids=lambda route: route.name)
def test_T46_rest_reading_changes_nothing_and_is_not_framed(home: House, route: Route) -> None:
    client = home.person("admin")
    with CaptureQueriesContext(connection) as queries:
        answer = go(client, route)
    assert answer.status_code in (200, 400, 404)
    assert changes(queries) == []
    assert answer["X-Frame-Options"] == "DENY"
    assert "frame-ancestors 'none'" in answer["Content-Security-Policy"]


def test_T46_rest_a_key_needs_no_token_and_a_bad_key_is_no_session(home: House) -> None:
    route = next(route for route in WRITES if (route.name, route.method) == ("agent", "patch"))
    client = APIClient(enforce_csrf_checks=True)
    client.credentials(HTTP_AUTHORIZATION=f"Bearer {home.tokens['operator']}")
    assert go(client, route).status_code == 200
    signed_in = home.person("admin")
    signed_in.credentials(HTTP_AUTHORIZATION="Bearer ddc_test_" + "0" * 32)
    assert go(signed_in, route).status_code == 401
