"""Keys from the terminal and from the action: shown once, bounded, revoked once; and the other commands."""

import json
from io import StringIO
from typing import Any

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError

from agents.models import FleetStop, Key
from agents.principals import BadKey, who_for_key
from mcp import registry
from mcp.models import AuditRow
from tests.build import Company, company, workspace

pytestmark = pytest.mark.django_db


@pytest.fixture
def team() -> Company:
    return company()


def run(*arguments: str) -> tuple[int, str]:
    """Exit code and output of a command."""
    out, err = StringIO(), StringIO()
    try:
        call_command(*arguments, stdout=out, stderr=err)
    except SystemExit as end:
        return int(end.code or 0), out.getvalue() + err.getvalue()
    return 0, out.getvalue()


def as_json(*arguments: str) -> Any:
    """The JSON that a command prints."""
    return json.loads(run(*arguments, "--json")[1])


def test_a_key_is_made_used_listed_and_revoked(team: Company) -> None:
    made = as_json("keys", "create", "--kind", "agent", "--agent", "owner", "--label", "laptop", "--days", "5")
    assert who_for_key(made["key"]).name == "owner"
    listed = as_json("keys", "list")
    assert made["id"] in [row["id"] for row in listed]
    assert made["key"] not in run("keys", "list")[1]
    assert run("keys", "revoke", made["prefix"])[0] == 0
    with pytest.raises(BadKey, match="revoked"):
        who_for_key(made["key"])
    assert run("keys", "revoke", made["id"])[0] == 1
    assert as_json("keys", "revoke", made["id"])["error"] == "already_revoked"
    reasons = AuditRow.objects.filter(stream="security").values_list("reason", "agent")
    assert sorted(reasons) == [("key_created", "terminal"), ("key_revoked", "terminal")]
    assert Key.objects.system().get(pk=made["id"]).created_by == "terminal"


def test_text_output_is_the_key_alone(team: Company) -> None:
    code, text = run("keys", "create", "--kind", "external", "--scopes", "wiki:read,issues:read")
    assert code == 0
    assert who_for_key(text.strip()).scopes == {"wiki:read", "issues:read"}


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("keys", "create", "--kind", "agent", "--agent", "nobody"), 1),
        (("keys", "create", "--kind", "agent"), 2),
        (("keys", "create", "--kind", "external", "--scopes", "admin"), 2),
        (("keys", "create", "--kind", "operator", "--days", "0"), 2),
        (("keys", "create", "--kind", "operator", "--days", "366"), 2),
        (("keys", "revoke", "nothing"), 1),
        (("keys", "list", "--workspace", "nowhere"), 1),
        (("fleet", "release"), 1),
        (("fleet", "stop", "nowhere", "--reason", "drill"), 1),
        (("fleet", "stop", "--reason", " "), 2),
        (("explain", "nobody", "tasks_list"), 1),
        (("explain", "owner", "no_such_tool"), 1),
        (("explain", "owner", "tasks_list", "--key", "nothing"), 1),
        (("tools", "--where", "no_such_tool"), 1),
    ],
)
def test_exit_codes(team: Company, arguments: tuple[str, ...], code: int) -> None:
    before = Key.objects.system().count()
    assert run(*arguments)[0] == code
    told = as_json(*arguments)
    assert set(told) == {"error", "detail"}
    assert Key.objects.system().count() == before


def test_usage_is_an_error(team: Company) -> None:
    for arguments in (("keys",), ("keys", "create"), ("fleet", "stop"), ("explain", "owner"), ("tools", "x")):
        with pytest.raises(CommandError):
            run(*arguments)


def test_several_workspaces_must_be_told_apart(team: Company) -> None:
    workspace("other")
    assert run("keys", "list")[0] == 2
    assert run("keys", "list", "--workspace", "acme")[0] == 0


def test_fleet_stop_and_release(team: Company) -> None:
    assert as_json("fleet", "stop", "research", "--reason", "drill")["stopped"] == 2
    assert team.who("owner").stopped
    code, text = run("fleet", "release", "research")
    assert (code, "released" in text) == (0, True)
    assert FleetStop.objects.system().get().released_by == "terminal"


def test_explain_prints_gates_and_mends(team: Company) -> None:
    team.owner.capabilities.denied_tools = ["tasks_*"]
    team.owner.capabilities.save()
    code, text = run("explain", "owner", "tasks_list")
    assert code == 0
    assert "hidden" in text
    assert "CLOSED" in text
    assert "PATCH /api/v1/agents/owner/" in text
    assert as_json("explain", "owner", "tasks_list")["gate"] == "G7"
    assert "no edit of policy" in run("explain", "owner", "tool_approve")[1]


def test_tools_lists_places_and_costs() -> None:
    assert [row["name"] for row in as_json("tools")] == [tool.name for tool in registry.every()]
    place = as_json("tools", "--where", "tasks_claim")
    assert place["file"] == "mcp/tools/tasks.py"
    assert run("tools", "--where", "tasks_claim")[1].strip() == f"{place['file']}:{place['line']}"
    costs = as_json("tools", "--budget")
    assert costs["all"]["all"]["tools"] == len(registry.every())
    assert costs["presets"]["worker"]["tokens"] > 0
    assert sum(one["tools"] for one in costs["families"].values()) == len(registry.every())
    assert "tokens" in run("tools", "--budget")[1]
