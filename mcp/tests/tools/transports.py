"""The two ways into the choke point that the tables of tool tests run over, with one shape of outcome."""

import json
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import pytest
from django.db import models
from django.test import Client
from django.urls import Resolver404, resolve

from agents.principals import who_for_key
from mcp.calls import CallRequest, call
from mcp.models import AuditRow
from tests.build import Company, key

OK = "ok"
ISSUE_SCOPES = ["issues:read", "issues:write", "comments:read", "comments:write", "agents:write"]


class Outcome(NamedTuple):
    """`ok` or the refusal's class, the structured answer of either, and the HTTP status (0 over MCP)."""

    code: str
    body: dict[str, Any]
    status: int = 0


Transport = Callable[..., Outcome]


def via_mcp(people: Company, person: str, tool: str, arguments: dict[str, Any]) -> Outcome:
    """As every MCP transport calls it."""
    token = people.tokens[person]
    answer = call(CallRequest(lambda: who_for_key(token), tool, arguments))
    if answer.error:
        return Outcome(answer.code, {"detail": answer.error[1]} | answer.error[2])
    return Outcome(answer.code or OK, answer.structured or {})


def via_rest(people: Company, person: str, tool: str, arguments: dict[str, Any]) -> Outcome:
    """`POST /api/v1/tools/{name}/call/` with the same key."""
    answer = Client().post(
        f"/api/v1/tools/{tool}/call/",
        json.dumps(arguments),
        content_type="application/json",
        headers={"authorization": f"Bearer {people.tokens[person]}"},
    )
    body = answer.json()
    if answer.status_code == 200:
        return Outcome(OK, body["structuredContent"], 200)
    return Outcome(body["error"], body, answer.status_code)


def rest_is_there() -> bool:
    """Whether the address exists."""
    try:
        resolve("/api/v1/tools/list_issues/call/")
    except (Resolver404, ImportError):
        return False
    return True


TRANSPORTS = [
    pytest.param(via_mcp, id="mcp"),
    pytest.param(via_rest, id="rest", marks=pytest.mark.skipif(not rest_is_there(), reason="no REST in this tree")),
]


def with_clients(people: Company) -> Company:
    """Adds an external client with the issue scopes, one that only reads issues, and an operator key of a viewer."""
    tokens = {
        "external": key(people.space, "external", client_id="client", scopes_held=ISSUE_SCOPES),
        "reader": key(people.space, "external", client_id="reader", scopes_held=["issues:read"]),
        "viewer": key(people.space, "operator", client_id="viewer", role="viewer"),
    }
    people.tokens |= {name: token for name, (_, token) in tokens.items()}
    return people


def rows_of(*tables: type[models.Model]) -> list[Any]:
    """All rows of some tables: what a refusal leaves as it was."""
    return [list(table.objects.system().order_by("pk").values()) for table in tables]  # type: ignore[attr-defined]


def audit_of(tool: str) -> list[tuple[str, str, str]]:
    """(outcome, reason, agent) of each call of a tool, oldest first."""
    return list(AuditRow.objects.filter(tool=tool).order_by("id").values_list("outcome", "reason", "agent"))


def cases(table: Iterable[tuple[Any, ...]]) -> list[Any]:
    """(tool, label, arguments, {person: code}) rows as parameter sets; the people of a row share one company."""
    return [
        pytest.param(tool, arguments, expected, id=f"{tool}-{label}".replace(" ", "_"))
        for tool, label, arguments, expected in table
    ]
