"""Cards for tests, the two ways to call a tool, and what must not change when a call is refused."""

import json
import threading
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from django.db import connections
from django.test import Client

from agents.models import Agent, Grant, Workspace
from agents.principals import who_for_key
from duduclaw.lib import clock
from mcp.calls import CallRequest, call
from mcp.models import AuditRow
from tasks.actions.numbers import next_number
from tasks.models import Activity, Counter, Task
from tests.build import Company

OK = "ok"
WATCHDOG = 120.0  # seconds


def card(space: Workspace, **over: Any) -> Task:
    """A plain unassigned task of an operator; keyword arguments are columns, `claimed_by` also sets the holder."""
    holder: Agent | None = over.get("claimed_by")
    columns = {
        "title": "Write the report",
        "created_by": over["creator"].name if over.get("creator") else "operator",
        "holder": holder.name if holder else "",
        "created_at": clock.now(),
        **over,
    }
    return Task.objects.create(workspace=space, number=next_number(space.id, "task"), **columns)


class Outcome(NamedTuple):
    """How a call ended: `ok` or the class of its refusal, the structured answer of either, the HTTP status of REST."""

    code: str
    body: dict[str, Any]
    status: int | None = None


Transport = Callable[..., Outcome]


def via_mcp(company: Company, person: str, tool: str, arguments: dict[str, Any], **request: Any) -> Outcome:
    """Through the choke point, as every MCP transport calls it."""
    token = company.tokens[person]
    answer = call(CallRequest(lambda: who_for_key(token), tool, arguments, **request))
    return Outcome(answer.code or OK, answer.structured or (answer.error[2] if answer.error else {}))


def via_rest(company: Company, person: str, tool: str, arguments: dict[str, Any]) -> Outcome:
    """Through `POST /api/v1/tools/{name}/call/` with the person's key."""
    response = Client().post(
        f"/api/v1/tools/{tool}/call/",
        json.dumps(arguments),
        content_type="application/json",
        headers={"Authorization": f"Bearer {company.tokens[person]}"},
    )
    body = response.json()
    return Outcome(body.get("error", OK), body.get("structuredContent", body), response.status_code)


def snapshot() -> list[Any]:
    """Everything that a refused call leaves as it was."""
    return [
        list(Task.objects.system().order_by("id").values()),
        list(Task.depends_on.through.objects.order_by("id").values()),
        list(Activity.objects.system().order_by("id").values()),
        list(Grant.objects.system().order_by("id").values()),
        list(Counter.objects.system().order_by("id").values()),
    ]


def audit_of(tool: str) -> list[dict[str, Any]]:
    """The rows of one tool's calls, oldest first."""
    rows = AuditRow.objects.filter(tool=tool).order_by("id").values("outcome", "reason", "agent", "details")
    return [dict(row) for row in rows]


def race(runners: Iterable[Callable[[], Any]]) -> list[Any]:
    """Start all at one barrier, each in a thread with its own connection; what each answered or raised, in order."""
    todo = list(runners)
    barrier = threading.Barrier(len(todo))
    results: list[Any] = [None] * len(todo)

    def run(place: int, runner: Callable[[], Any]) -> None:
        try:
            barrier.wait(WATCHDOG)
            results[place] = runner()
        except Exception as error:
            results[place] = error
        finally:
            connections.close_all()

    threads = [threading.Thread(target=run, args=(place, runner)) for place, runner in enumerate(todo)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(WATCHDOG)
    assert not any(thread.is_alive() for thread in threads), "a racer is stuck"
    return results
