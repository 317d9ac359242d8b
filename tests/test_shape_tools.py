"""The shape of the catalogue: names, descriptions, schemas, presets, and what a fast tool asks of the database."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from agents.actions.presets import LARGEST, PRESETS
from agents.models import Agent, Capabilities, PlatformSettings
from agents.tests.admin_house import question
from mcp import audit, calls, policy, registry
from mcp.policy import Who
from mcp.registry import Tool
from tasks.models import Comment, Issue
from tasks.tests.board import card, via_mcp
from tests.build import Company, company

NAME = re.compile(r"[a-z][a-z0-9_]{0,39}\Z", re.ASCII)
BYTES, QUERIES, ROWS = 200, 12, 15
CONTROL = ("SAVEPOINT", "RELEASE", "ROLLBACK", "BEGIN", "COMMIT")
EXEMPT: set[tuple[str, str]] = set()  # longer descriptions that the catalogue asks for
ROOT_WORDS = {"oneOf", "anyOf", "allOf", "$ref", "$defs", "not", "if"}
# Arguments beside the required ones, one thing at a time, that lead past the first look.
FURTHER: dict[str, tuple[dict[str, Any], ...]] = {
    "activity_list": ({"task_id": "T-1", "agent_id": "*"},),
    "activity_post": ({"task_id": "T-1"},),
    "capability_request": ({"task_id": "T-2"},),
    "create_issue": ({"assignee": "colleague"},),
    "emergency_stop": ({"scope": "owner"}, {"scope": "colleague"}),
    "list_issues": ({"query": "issue", "status": "open", "limit": 5},),
    "tasks_create": ({"assigned_to": "colleague"}, {"parent_task_id": "T-1"}, {"depends_on": ["T-3", "T-4", "T-5"]}),
    "tasks_list": ({"assigned_to": "*", "status": "pending"},),
    "tasks_update": ({"assigned_to": "colleague"}, {"depends_on": ["T-3", "T-4", "T-5"]}, {"title": "new"}),
}
# What takes more by its nature: the lock of the tree, the look for circles, links out and links in.
LONGER = {("tasks_update", "depends_on"): 13}
FAST = [
    (tool.name, further) for tool in registry.every() if not tool.slow for further in ({}, *FURTHER.get(tool.name, ()))
]


def described() -> Iterator[tuple[str, str, str]]:
    """(tool, parameter or "", description)."""
    for tool in registry.every():
        yield tool.name, "", tool.description
        yield from ((tool.name, name, body.get("description", "")) for name, body in tool.schema["properties"].items())


def test_descriptions_keep_their_budget() -> None:
    bad = {
        f"{tool} {name}": len(text.encode())
        for tool, name, text in described()
        if not text or (len(text.encode()) > BYTES and (tool, name) not in EXEMPT)
    }
    assert bad == {}


def test_names_are_those_that_every_client_takes() -> None:
    names = [tool.name for tool in registry.every()]
    assert [name for name in names if not NAME.match(name)] == []
    assert len({name.casefold() for name in names}) == len(names)


def words(schema: Any) -> Iterator[str]:
    """Every key of a schema, at any depth, but for the parameters' own names."""
    if isinstance(schema, list):
        for item in schema:
            yield from words(item)
    elif isinstance(schema, dict):
        for key, value in schema.items():
            yield key
            yield from words(list(value.values()) if key == "properties" else value)


@pytest.mark.parametrize("tool", registry.every(), ids=lambda tool: tool.name)
def test_schemas_are_plain(tool: Tool) -> None:
    assert tool.schema["type"] == "object"
    assert tool.schema["additionalProperties"] is False
    assert ROOT_WORDS & set(tool.schema) == set()
    assert {"$ref", "$defs"} & set(words(tool.schema)) == set()
    assert set(tool.schema.get("required", ())) <= set(tool.schema["properties"])
    assert set(tool.annotations) == {"readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"}


@pytest.mark.parametrize("preset", PRESETS)
def test_a_preset_is_short_and_names_tools_that_exist(preset: str) -> None:
    entries = PRESETS[preset]
    assert LARGEST == 40
    assert 0 < len(entries) <= LARGEST
    assert set(entries) <= {tool.name for tool in registry.every()}
    assert len(set(entries)) == len(entries)


def opened() -> Company:
    """A company in which every switch is on and every list has more rows than a fast tool has queries."""
    made = company()
    Capabilities.objects.filter(agent=made.owner).update(
        **dict.fromkeys(Capabilities.SWITCHES, True), db_sources=["crm"], scoped_tools=["web_fetch"]
    )
    PlatformSettings.objects.system().filter(workspace=made.space).update(
        integrations={"google_workspace": True, "github": True}, responsibilities={"enabled": True}
    )
    for number in range(ROWS):
        name = f"analyst-{number}"
        Agent.objects.create(
            workspace=made.space, name=name, name_key=name, display_name=name, department="research",
            reports_to=made.colleague,
        )  # fmt: skip
        card(made.space, assigned_to=made.owner, title=f"card {number}", durable=True, status="pending")
        prepared(made, "activity_post", summary="a note", task_id=f"T-{number + 1}")
        prepared(made, "create_issue", title=f"issue {number}")
        prepared(made, "working_state_set", key=f"key{number}", value="a value", reason="test")
    for _ in range(ROWS):
        prepared(made, "comment_issue", issue_id=Issue.objects.system().latest("number").pk, body="a comment")
    prepared(made, "tasks_claim", task_id="T-2")
    return made


def prepared(made: Company, tool: str, **arguments: Any) -> None:
    """One call that must succeed."""
    assert via_mcp(made, "owner", tool, arguments).code == "ok"


def valid(made: Company, tool: Tool) -> dict[str, Any]:
    """Every required argument: of what has a name here the thing itself, else something that the schema takes."""
    known = {
        "task_id": "T-1" if tool.name in ("tasks_claim", "tasks_update") else "T-2",
        "issue_id": Issue.objects.system().latest("number").pk,
        "comment_id": Comment.objects.system().latest("created_at").pk,
        "approval_id": question(made.owner).pk,
        "agent_id": "colleague",
        "tool": "web_fetch",
        "decision": "approve",
        "key": "key1",
        "confirm": True,
    }
    required = tool.schema.get("required", ())
    return {name: known.get(name, sample(tool.schema["properties"][name])) for name in required}


def sample(body: dict[str, Any]) -> Any:
    """The plainest value of a parameter's type and limits."""
    if "enum" in body:
        return body["enum"][0]
    kinds = {"boolean": True, "array": [], "object": {}, "integer": body.get("minimum", 1), "number": 1.0}
    return kinds.get(body["type"], "x" * max(1, body.get("minLength", 1)))


def caller(made: Company, tool: Tool) -> tuple[str, Who]:
    """An agent, or where the tool is for people an operator."""
    for name in ("owner", "operator"):
        who = made.who(name)
        if policy.closed(tool, who) is None:
            return name, who
    raise AssertionError(f"{tool.name}: its gates are closed to everybody here")


@pytest.mark.engines
@pytest.mark.django_db
@pytest.mark.parametrize(("name", "further"), FAST, ids=lambda part: part if isinstance(part, str) else "-".join(part))
def test_a_fast_tool_asks_the_database_a_few_questions(name: str, further: dict[str, Any]) -> None:
    made, tool = opened(), registry.TOOLS[name]
    arguments = valid(made, tool) | further
    person, _ = caller(made, tool)
    with CaptureQueriesContext(connection) as queries:
        answer = calls.call(calls.CallRequest(lambda: made.who(person), name, arguments))
    assert answer.parked or answer.outcome in (audit.OK, audit.DENIED), answer
    assert answer.error is None, answer.error
    asked = [query["sql"] for query in queries.captured_queries if not query["sql"].startswith(CONTROL)]
    told = "\n".join(sql[:160] for sql in asked)
    most = max([QUERIES, *(LONGER.get((name, part), 0) for part in further)])
    assert len(asked) <= most, f"{name} ({answer.outcome} {answer.code}) made {len(asked)} queries:\n{told}"
