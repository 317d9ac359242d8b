"""Whatever stands in a body or an address, the answer is documented: no 500, no half change."""

import random
from typing import Any

import pytest

from duduclaw.api.tests import routes
from duduclaw.api.tests.contract import check
from duduclaw.api.tests.house import House, house
from duduclaw.api.tests.routes import Route

pytestmark = pytest.mark.django_db
JUNK: list[Any] = [
    None, True, 0, -1, 1.5, 10**30, "", " ", "x" * 300, "a\nb", "\u202e\U0001f600", "2030-01-01",
    "9999-12-31T23:59:59-23:59", [], [1], [[]], ["x"], [{}], {}, {"a": 1}, {"policy": []}, [["owner"]],
]  # fmt: skip
FIELDS = (
    "id",
    "display_name",
    "role",
    "department",
    "reports_to",
    "status",
    "preset",
    "capabilities",
    "permissions",
    "version",
    "kind",
    "agent",
    "scopes",
    "expires_at",
    "label",
    "client_id",
    "decision",
    "note",
    "title",
    "description",
    "priority",
    "tags",
    "assigned_to",
    "depends_on",
    "parent_task_id",
    "durable",
    "goal_mode",
    "max_retries",
    "feedback",
    "reason",
    "assignee",
    "body",
    "integrations",
    "delegation",
    "container",
    "rate",
    "scope",
)
QUERIES = ("limit", "cursor", "status", "agent", "since", "tool", "key", "department", "stream", "outcome", "active")


@pytest.fixture
def home() -> House:
    return house()


def target(home: House, route: Route) -> str:
    """An id that leads somewhere on this route."""
    if route.template.startswith("v1/tools"):
        return "tasks_create"
    return "T-1" if route.template.startswith("v1/tasks") else "owner"


@pytest.mark.parametrize("route", list(routes.every()), ids=lambda route: f"{route.method} {route.name}")
def test_junk_is_answered_as_documented(home: House, route: Route) -> None:
    chance, client = random.Random(route.name), home.person("admin")
    home.key("operator").post("/api/v1/tasks/", {"title": "Count the sheep"}, format="json")
    path, verb = route.path(target(home, route)), getattr(client, route.method)
    for _ in range(40):
        if route.body is None:
            query = {chance.choice(QUERIES): str(chance.choice(JUNK)) for _ in range(2)}
            answer = client.get(path, query) if route.method == "get" else verb(path)
        else:
            extra = {chance.choice(FIELDS): chance.choice(JUNK) for _ in range(chance.randint(1, 2))}
            answer = verb(path, {**route.body, **extra}, format="json")
        assert answer.status_code != 500, (route, answer.content)
        check(route.method, path, answer)
