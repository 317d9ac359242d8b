"""Tasks, issues and wakes over REST."""

from typing import Any

import pytest

from duduclaw.api.tests.house import House, house, send
from tasks.models import Task

pytestmark = pytest.mark.django_db
TASKS, ISSUES = "/api/v1/tasks/", "/api/v1/issues/"


@pytest.fixture
def home() -> House:
    return house()


def task(home: House, **over: Any) -> dict[str, Any]:
    """A new task."""
    made = send(home.key("operator"), "post", TASKS, {"title": "Count the sheep", **over})
    assert made.status_code == 201, made.json()
    return dict(made.json())


def test_create_list_read_change(home: House) -> None:
    client = home.key("operator")
    first, second = task(home), task(home, title="Feed them", assigned_to="owner", tags=["farm"], priority="high")
    assert set(first) >= {
        "id", "number", "title", "description", "kind", "status", "priority", "assigned_to", "claimed_by",
        "created_by", "tags", "depends_on", "parent_task_id", "blocked_reason", "summary", "lease_expires_at",
        "created_at",
    }  # fmt: skip
    listed = send(client, "get", TASKS).json()["results"]
    assert [row["id"] for row in listed] == [second["id"], first["id"]]
    assert send(client, "get", f"{TASKS}?assigned_to=owner").json()["results"] == [second]
    assert send(client, "get", f"{TASKS}T-1/").json() == first
    changed = send(client, "patch", f"{TASKS}{first['id']}/", {"title": "Count them again", "version": 1}).json()
    assert (changed["title"], changed["version"]) == ("Count them again", 2)
    stale = send(client, "patch", f"{TASKS}{first['id']}/", {"title": "No", "version": 1})
    assert (stale.status_code, stale.json()["error"]) == (409, "stale")


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "title"),
        ({"title": ""}, "title"),
        ({"title": 5}, "title"),
        ({"title": "x", "colour": "red"}, "colour"),
        ({"title": "x", "priority": "now"}, "priority"),
        ({"title": "x", "durable": "yes"}, "durable"),
        ({"title": "x", "assigned_to": "nobody"}, "assigned_to"),
        ({"title": "x", "depends_on": ["T-99"]}, "depends_on"),
    ],
)
def test_faults_of_a_task_are_400_by_name(home: House, body: dict[str, Any], field: str) -> None:
    answer = send(home.key("operator"), "post", TASKS, body)
    assert (answer.status_code, field in answer.json()["detail"]) == (400, True)
    assert not Task.objects.system().exists()


@pytest.mark.parametrize("body", [{"by": "x"}, {"task": "x"}, {"status": "done"}, {"title": 5}, {"version": "1"}])
def test_faults_of_a_change_are_400(home: House, body: dict[str, Any]) -> None:
    made = task(home)
    assert send(home.key("operator"), "patch", f"{TASKS}{made['id']}/", body).status_code == 400


def test_what_is_not_built_says_so(home: House) -> None:
    answer = send(home.key("operator"), "post", TASKS, {"title": "x", "kind": "goal"})
    assert answer.status_code in (400, 422)


def test_a_persons_moves(home: House) -> None:
    client = home.person("operator")
    made = task(home)
    gone = send(client, "post", f"{TASKS}{made['id']}/cancel/", {"reason": "rain"}).json()
    assert gone["status"] == "cancelled"
    again = send(client, "post", f"{TASKS}{made['id']}/cancel/")
    assert again.status_code == 422
    assert send(client, "post", f"{TASKS}{made['id']}/retry/").json()["status"] == "todo"
    goal = task(home, goal_mode=True, acceptance_criteria="all counted")
    for verb in ("tasks_claim", "tasks_complete"):
        done = send(home.key("owner"), "post", f"/api/v1/tools/{verb}/call/", {"task_id": goal["id"]})
        assert done.status_code == 200, done.json()
    assert send(client, "post", f"{TASKS}{goal['id']}/reject/").status_code == 400
    rejected = send(client, "post", f"{TASKS}{goal['id']}/reject/", {"feedback": "one is missing"}).json()
    assert (rejected["status"], rejected["blocked_reason"]) == ("revising", "one is missing")
    for verb in ("tasks_claim", "tasks_complete"):
        send(home.key("owner"), "post", f"/api/v1/tools/{verb}/call/", {"task_id": goal["id"]})
    assert send(client, "post", f"{TASKS}{goal['id']}/accept/", {"note": "good"}).json()["status"] == "done"


def test_who_reads_and_who_writes(home: House) -> None:
    made = task(home)
    for name, client in home.everybody().items():
        reader = name.startswith("person") or name.endswith(" key") or name == "key operator"
        writer = reader and "viewer" not in name
        assert send(client, "get", TASKS).status_code == (200 if reader else 403), name
        changed = send(client, "patch", f"{TASKS}{made['id']}/", {"priority": "low"})
        assert changed.status_code == (200 if writer else 403), name
        assert send(client, "post", f"{TASKS}{made['id']}/retry/").status_code == (422 if writer else 403), name


def test_issues_and_comments(home: House) -> None:
    client = home.key("operator")
    made = send(client, "post", ISSUES, {"title": "The gate squeaks", "description": "Oil it."}).json()
    assert (made["key"], made["status"], made["version"]) == ("AAC-1", "open", 1)
    assert send(client, "get", ISSUES).json()["results"][0]["id"] == made["id"]
    changed = send(client, "patch", f"{ISSUES}AAC-1/", {"status": "done", "version": 1}).json()
    assert (changed["status"], changed["version"]) == ("done", 2)
    assert send(client, "patch", f"{ISSUES}AAC-1/", {"status": "open", "version": 1}).status_code == 409
    assert send(client, "patch", f"{ISSUES}AAC-1/", {"status": "lost"}).status_code == 400
    assert send(client, "patch", f"{ISSUES}AAC-1/", {"assignee": "owner"}).status_code == 400
    said = send(client, "post", f"{ISSUES}AAC-1/comments/", {"body": "Oiled."})
    assert (said.status_code, said.json()["author"]) == (201, "operator")
    assert [row["body"] for row in send(client, "get", f"{ISSUES}AAC-1/comments/").json()["results"]] == ["Oiled."]
    assert send(client, "post", ISSUES, {"description": "no title"}).status_code == 400


def test_wakes_are_read_only(home: House) -> None:
    client = home.key("operator")
    issue = send(client, "post", ISSUES, {"title": "The gate squeaks"}).json()["id"]
    body = {"issue_id": issue, "agent_id": "owner"}
    wake = send(client, "post", "/api/v1/tools/assign_issue_to_agent/call/", body).json()["structuredContent"][
        "wake_id"
    ]
    row = send(client, "get", f"/api/v1/wakes/{wake}/").json()
    assert (row["agent"], row["issue_id"], row["state"]) == ("owner", issue, "queued")
    assert send(client, "get", "/api/v1/wakes/?agent=owner").json()["results"] == [row]
    assert send(client, "get", "/api/v1/wakes/?agent=colleague").json()["results"] == []
    for method in ("post", "patch", "delete"):
        assert send(client, method, f"/api/v1/wakes/{wake}/", {}).status_code == 405
