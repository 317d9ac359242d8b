"""T47: what belongs to another workspace answers as if it had never been, on every route, to every caller."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from rest_framework.test import APIClient

from agents.actions import agents, grants
from agents.actions.system import platform
from agents.models import Agent, Approval, Grant, Key, PolicyChange
from duduclaw.api.tests import routes
from duduclaw.api.tests.house import House, house
from duduclaw.lib import clock
from mcp import registry
from mcp.models import AuditRow
from mcp.registry import Tool
from tasks.models import Activity, Comment, Issue, Task, Wake
from tests import build

pytestmark = pytest.mark.django_db
ABSENT = {
    "uuid": "00000000-0000-7000-8000-000000000000",
    "name": "nobody-at-all",
    "task": "T-900001",
    "issue": "ZED-900001",
}
OWNED = (Agent, Approval, Grant, Key, PolicyChange, Task, Activity, Issue, Comment, Wake)


def furnish(home: House) -> dict[str, tuple[str, str]]:
    """Objects of every kind in a workspace: label -> (id, the kind of id)."""
    space, now = home.team.space, clock.now()
    by = platform(space)
    space.issue_prefix = "FAR"
    space.save()
    mine = build.agent(space, "far-agent", department="far-department", scoped_tools=["fork_run"])
    gone = agents.create_agent(by=by, name="far-removed", display_name="Gone")
    agents.remove_agent(gone, by=by)
    grant = grants.mint(mine, "fork_run", source=Grant.Source.OPERATOR, by=by)
    asked = Approval.objects.create(
        workspace=space, agent=mine, kind="capability_grant", tool="fork_run", call_tool="capability_request",
        arguments="{}", digest="0" * 64, requested_by="far", requested_at=now, expires_at=now + timedelta(minutes=5),
    )  # fmt: skip
    task = Task.objects.create(workspace=space, number=900_000, title="Far", created_by="far", created_at=now)
    issue = Issue.objects.create(
        workspace=space, number=900_000, title="Far", created_by="far", created_at=now, updated_at=now
    )
    said = Comment.objects.create(workspace=space, issue=issue, author="far", body="Far", created_at=now)
    wake = Wake.objects.create(workspace=space, agent=mine, reason="far", issue=issue, requested_by="x", created_at=now)
    return {
        "agent name": (mine.name, "name"), "removed name": (gone.name, "name"), "agent": (mine.id, "uuid"),
        "department": (mine.department, "name"), "key": (build.key(space, "agent", agent=mine)[0].id, "uuid"),
        "grant": (grant.id, "uuid"), "approval": (asked.id, "uuid"), "task": (task.id, "uuid"),
        "task number": ("T-900000", "task"), "issue": (issue.id, "uuid"), "issue key": ("FAR-900000", "issue"),
        "comment": (said.id, "uuid"), "wake": (wake.id, "uuid"),
    }  # fmt: skip


ALIKE = ("key colleague", "key stranger", "key manager key", "key admin key", "person manager")


@pytest.fixture
def near() -> House:
    """A workspace whose callers are never slowed down."""
    made = house()
    made.team.space.settings.rate = {kind: dict.fromkeys(("read", "write"), 0) for kind in ("external", "keys")}
    made.team.space.settings.save()
    return made


@pytest.fixture
def far() -> House:
    return house("far")


def state(home: House) -> list[Any]:
    """All rows of a workspace."""
    rows = [list(model.objects.system().filter(workspace=home.team.space).order_by("pk").values()) for model in OWNED]
    return [*rows, list(AuditRow.objects.filter(workspace=home.team.space.id).values_list("uid", flat=True))]


def ask(client: APIClient, method: str, path: str, body: Any, ident: str) -> tuple[int, str]:
    """Status and body, with the id that was asked for taken out."""
    verb = getattr(client, method)
    answer = verb(path) if body is None else verb(path, body, format="json")
    return answer.status_code, answer.content.decode().replace(ident, "ID")


def test_T47_rest_every_route_every_id_every_caller(near: House, far: House) -> None:
    objects, before = furnish(far), state(far)
    asked = 0
    callers = {who: client for who, client in near.everybody().items() if who not in ALIKE}
    for who, client in callers.items():
        for route in (route for route in routes.every() if route.parameters):
            nothing = {
                kind: ask(client, route.method, route.path(ident), route.body, ident) for kind, ident in ABSENT.items()
            }
            for label, (ident, kind) in objects.items():
                found = ask(client, route.method, route.path(ident), route.body, ident)
                assert found == nothing[kind], (who, route, label, found)
                asked += 1
    assert state(far) == before
    assert asked > 2_500


REFERENCES: list[tuple[str, str, Any]] = [
    ("get", "/api/v1/agents/owner/explain/?tool=tasks_list&key={}", None),
    ("get", "/api/v1/agents/owner/tools/?key={}", None),
    ("get", "/api/v1/agents/?department={}", None),
    ("get", "/api/v1/keys/?agent={}", None),
    ("get", "/api/v1/grants/?agent={}", None),
    ("get", "/api/v1/approvals/?agent={}", None),
    ("get", "/api/v1/tasks/?assigned_to={}", None),
    ("get", "/api/v1/issues/?assignee={}", None),
    ("get", "/api/v1/wakes/?agent={}", None),
    ("get", "/api/v1/audit/?agent={}", None),
    ("post", "/api/v1/agents/", {"id": "newcomer", "display_name": "New", "reports_to": "{}"}),
    ("patch", "/api/v1/agents/owner/", {"reports_to": "{}"}),
    ("patch", "/api/v1/settings/", {"delegation": {"allow": [["owner", "{}"]]}}),
    ("post", "/api/v1/keys/", {"kind": "agent", "agent": "{}"}),
    ("post", "/api/v1/tasks/", {"title": "x", "assigned_to": "{}"}),
    ("post", "/api/v1/tasks/", {"title": "x", "parent_task_id": "{}"}),
    ("post", "/api/v1/tasks/", {"title": "x", "depends_on": ["{}"]}),
    ("patch", "/api/v1/tasks/T-1/", {"assigned_to": "{}"}),
    ("patch", "/api/v1/tasks/T-1/", {"parent_task_id": "{}"}),
    ("patch", "/api/v1/tasks/T-1/", {"depends_on": ["{}"]}),
    ("post", "/api/v1/issues/", {"title": "x", "assignee": "{}"}),
    ("post", "/api/v1/fleet/stop/", {"scope": "{}", "reason": "drill"}),
    ("post", "/api/v1/fleet/release/", {"scope": "{}"}),
]


def put(value: Any, ident: str) -> Any:
    """The body with the id in its place."""
    if isinstance(value, dict):
        return {key: put(item, ident) for key, item in value.items()}
    if isinstance(value, list):
        return [put(item, ident) for item in value]
    return value.replace("{}", ident) if isinstance(value, str) else value


@pytest.mark.parametrize(("method", "path", "body"), REFERENCES)
def test_T47_rest_references_in_bodies_and_filters(near: House, far: House, method: str, path: str, body: Any) -> None:
    objects = furnish(far)
    near.key("operator").post("/api/v1/tasks/", {"title": "Near"}, format="json")
    before = state(far)
    for name in ("operator", "viewer key", "owner", "external"):
        client = near.key(name)
        nothing = {kind: ask(client, method, path.format(i), put(body, i), i) for kind, i in ABSENT.items()}
        for label, (ident, kind) in objects.items():
            found = ask(client, method, path.format(ident), put(body, ident), ident)
            assert found == nothing[kind], (name, label, found)
    assert state(far) == before


def arguments(tool: Tool, ident: str) -> Iterator[dict[str, Any]]:
    """For each text parameter of a tool: arguments that are valid but for the id in it."""
    shapes: dict[str, Any] = tool.schema["properties"]
    plain = {
        name: {"integer": 1, "boolean": True, "array": [], "object": {}}.get(shapes[name].get("type"), "x")
        for name in tool.schema.get("required", ())
    }
    for name, shape in shapes.items():
        if shape.get("type") == "string" and "enum" not in shape:
            yield {**plain, name: ident}
        elif shape.get("type") == "array":
            yield {**plain, name: [ident]}


@pytest.mark.parametrize("name", ["owner", "operator", "external", "viewer key"])
def test_T47_rest_tools(near: House, far: House, name: str) -> None:
    objects, before = furnish(far), state(far)
    client, compared = near.key(name), 0
    for tool in registry.every():
        path = f"/api/v1/tools/{tool.name}/call/"
        nothing = {
            kind: [ask(client, "post", path, given, ident) for given in arguments(tool, ident)]
            for kind, ident in ABSENT.items()
        }
        for label, (ident, kind) in objects.items():
            for given, nobodys in zip(arguments(tool, ident), nothing[kind], strict=True):
                found = ask(client, "post", path, given, ident)
                if found[0] == 200:
                    continue  # plain text, such as a title or a state's value
                assert found == nobodys, (tool.name, label, given)
                compared += 1
    assert state(far) == before
    assert compared > 50
