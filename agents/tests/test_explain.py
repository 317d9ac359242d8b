"""Explain: the verdict is the kernel's, the trace says who and when, mends are the smallest sets that open."""

from itertools import combinations
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agents.actions import agents, fleet, grants, policy
from agents.actions.keys import revoke_key
from agents.actions.system import platform
from agents.models import Grant
from mcp import explain, matching, mends, registry
from mcp import policy as kernel
from mcp.context import Call
from mcp.errors import Refused
from mcp.mends import Draft
from mcp.policy import Who
from mcp.registry import SWITCHES, Tool
from tests.build import Company, company, key, workspace


@pytest.fixture
def team() -> Company:
    return company()


def stand_in(name: str, **flags: Any) -> Tool:
    """A test tool."""

    def function(call: Call) -> dict[str, Any]:
        """A tool of the tests."""
        return {}

    return registry.build(function, name, "tests", "admin", flags)


CODRIVE = stand_in("codrive_run", switch="codrive")
SHEETS = stand_in("sheets_read", switch="google_workspace")
STAND_INS = (CODRIVE, SHEETS)


def told(team: Company, tool: str, name: str = "owner", **over: Any) -> dict[str, Any]:
    """The explanation for one of the three."""
    getattr(team, name).refresh_from_db()
    with registry.temporarily(*STAND_INS):
        return explain.explain(type(team.owner).objects.system().get(name=name), tool, **over)


def change(team: Company, **capabilities: Any) -> None:
    """A change by the operator."""
    policy.update_agent(team.owner, by=team.who("operator"), changes={"capabilities": capabilities})


@pytest.mark.django_db
def test_an_open_tool_has_nine_open_gates_and_no_mend(team: Company) -> None:
    answer = told(team, "working_state_get")
    assert (answer["verdict"], answer["gate"], answer["mend"]) == ("callable", None, [])
    assert [line["gate"] for line in answer["trace"]] == [f"G{n}" for n in range(1, 10)]
    assert all(line["open"] and line["why"] for line in answer["trace"])
    assert told(team, "tasks_claim")["verdict"] == "conditional"


@pytest.mark.django_db
def test_the_closed_gate_says_why_and_who_closed_it(team: Company) -> None:
    change(team, denied_tools=["tasks_*"])
    answer = told(team, "tasks_list")
    assert (answer["verdict"], answer["gate"]) == ("hidden", "G7")
    line = answer["trace"][6]
    assert (line["open"], line["changed_by"], "tasks_*" in line["why"]) == (False, "operator", True)
    assert line["changed_at"].endswith("Z")
    assert answer["mend"] == [
        {
            "method": "PATCH",
            "path": "/api/v1/agents/owner/",
            "body": {"capabilities": {"denied_tools": []}},
            "says": answer["mend"][0]["says"],
        }
    ]
    assert "tasks_claim" in answer["mend"][0]["says"]


@pytest.mark.django_db
def test_switches_of_agent_and_workspace(team: Company) -> None:
    answer = told(team, "codrive_run")
    assert (answer["gate"], answer["mend"][0]["body"]) == ("G8", {"capabilities": {"codrive": True}})
    answer = told(team, "sheets_read")
    edit = answer["mend"][0]
    assert (edit["path"], edit["body"]) == ("/api/v1/settings/", {"integrations": {"google_workspace": True}})
    by = team.who("operator")
    policy.update_settings(by=by, changes={"integrations": {"google_workspace": True}})
    assert told(team, "sheets_read")["trace"][7]["changed_by"] == "operator"


@pytest.mark.django_db
def test_several_closed_gates_need_an_edit_each(team: Company) -> None:
    by = team.who("operator")
    change(team, denied_tools=["codrive_run", "x"], allowed_tools=["tasks_list"], scoped_tools=["codrive_*", "y"])
    policy.update_agent(team.owner, by=by, changes={"status": "paused"})
    for scope in ("all", "research", "owner"):
        fleet.stop(by=by, scope=scope, reason="drill")
    answer = told(team, "codrive_run")
    assert answer["gate"] == "G1"
    assert [edit["body"] for edit in answer["mend"]] == [
        {"scope": "all"}, {"scope": "department:research"}, {"scope": "agent:owner"}, {"status": "active"},
        {"capabilities": {"denied_tools": ["x"]}}, {"capabilities": {"allowed_tools": ["tasks_list", "codrive_run"]}},
        {"capabilities": {"codrive": True}}, {"capabilities": {"scoped_tools": ["y"]}},
    ]  # fmt: skip


@pytest.mark.django_db
def test_a_grant_opens_and_its_giver_stands_in_the_trace(team: Company) -> None:
    change(team, scoped_tools=["tasks_list"])
    assert told(team, "tasks_list")["gate"] == "G9"
    grants.mint(team.owner, "tasks_list", source=Grant.Source.OPERATOR, by=team.who("operator"))
    answer = told(team, "tasks_list")
    assert (answer["verdict"], answer["trace"][8]["changed_by"]) == ("callable", "operator")


@pytest.mark.django_db
def test_a_field_that_never_changed_stands_since_the_hiring(team: Company) -> None:
    agents.create_agent(by=team.who("operator"), name="writer", display_name="Writer")
    line = told(team, "codrive_run", "colleague")["trace"][7]
    assert (line["changed_by"], line["changed_at"]) == (None, None)
    team.colleague = type(team.owner).objects.system().get(name="writer")
    with registry.temporarily(*STAND_INS):
        assert explain.explain(team.colleague, "codrive_run")["trace"][7]["changed_by"] == "operator"


@pytest.mark.django_db
def test_where_no_policy_decides_there_is_no_mend(team: Company) -> None:
    assert told(team, "tool_approve")["mend"] == []
    narrow = key(team.space, "agent", agent=team.owner, scopes_held=["issues:read"])[0]
    answer = told(team, "tasks_list", key=narrow)
    assert (answer["gate"], answer["mend"], answer["trace"][3]["changed_by"]) == ("G4", [], "platform")
    client = key(team.space, "external", scopes_held=["issues:read"])[0]
    assert told(team, "tasks_list", key=client)["gate"] == "G3"
    assert told(team, "list_issues", key=client)["verdict"] == "callable"
    assert told(team, "codrive_run", key=key(team.space, "operator")[0])["mend"] == []


@pytest.mark.django_db
def test_dead_and_foreign_keys(team: Company) -> None:
    dead = revoke_key(key(team.space, "agent", agent=team.owner)[0], by=platform(team.space))
    answer = told(team, "tasks_list", key=dead)
    assert (answer["verdict"], answer["gate"], answer["mend"]) == ("hidden", "key", [])
    assert "revoked" in answer["trace"][0]["why"]
    with pytest.raises(Refused, match="not_found"):
        told(team, "tasks_list", key=key(team.space, "agent", agent=team.colleague)[0])
    for name in ("no_such_tool", "schedule_task"):
        with pytest.raises(Refused, match="not_found"):
            told(team, name)


@pytest.mark.django_db
def test_the_toolset_counts_what_is_listed(team: Company) -> None:
    change(team, allowed_tools=["tasks_list", "activity_list"])
    whole = explain.toolset(type(team.owner).objects.system().get(name="owner"))
    assert (whole["visible"], whole["certificate"]) == (2, None)
    assert whole["schema_tokens"] == sum(row["schema_tokens"] for row in whole["tools"] if row["verdict"] != "hidden")
    assert {row["gate"] for row in whole["tools"] if row["verdict"] == "hidden"} <= {"G6", "G7"}


@pytest.mark.django_db
def test_stops_of_others_are_not_released(team: Company) -> None:
    fleet.stop(by=platform(workspace("other")), scope="all", reason="drill")
    fleet.stop(by=team.who("operator"), scope="stranger", reason="drill")
    assert told(team, "tasks_list")["gate"] is None
    assert [edit["body"] for edit in told(team, "tasks_list", "stranger")["mend"]] == [{"scope": "agent:stranger"}]


NAMES = ("alpha_one", "alpha_two", "beta_one", "beta_two", "gamma")
CATALOGUE = tuple(
    stand_in(name, switch=switch) for name, switch in zip(NAMES, (None, *sorted(SWITCHES)[:4]), strict=True)
)
ENTRIES = st.lists(st.sampled_from((*NAMES, "alpha_*", "beta_*", "*", "mcp__duduclaw__gamma", "other")), max_size=4)
WHO = st.builds(
    lambda denied, allowed, scoped, on, status: Who(
        kind="agent", workspace="w", name="owner", agent="a", scopes=frozenset({"admin"}), status=status,
        denied=tuple(denied), allowed=tuple(allowed), scoped=tuple(scoped), switches=frozenset(on),
    ),
    ENTRIES, ENTRIES, ENTRIES, st.sets(st.sampled_from(sorted(SWITCHES))), st.sampled_from(("active", "paused")),
)  # fmt: skip
STOPS = st.lists(st.sampled_from(("all", "department:x", "agent:owner")), unique=True, max_size=3).map(tuple)


@settings(max_examples=300, deadline=None)
@given(who=WHO, stops=STOPS)
def test_mends_are_smallest_sets_that_open(who: Who, stops: tuple[str, ...]) -> None:
    draft = Draft(who, stops).changed(stopped=stops[0] if stops else "")
    for tool in CATALOGUE:
        edits = mends.mend(tool, draft, CATALOGUE)
        hidden = kernel.closed(tool, draft.who) is not None
        assert bool(edits) == hidden
        assert mends.opens(tool, draft, edits)
        for size in range(len(edits)):
            assert not any(mends.opens(tool, draft, part) for part in combinations(edits, size))


@given(who=WHO)
def test_an_edit_that_frees_more_says_so(who: Who) -> None:
    draft = Draft(who)
    for tool in CATALOGUE:
        for edit in mends.mend(tool, draft, CATALOGUE):
            for column, field in (("denied_tools", "denied"), ("scoped_tools", "scoped")):
                if column in edit.body.get("capabilities", {}):
                    after = tuple(edit.body["capabilities"][column])
                    before = getattr(who, field)
                    freed = {
                        name for name in NAMES
                        if matching.first(before, name) is not None and matching.first(after, name) is None
                    } - {tool.name}  # fmt: skip
                    assert all(name in edit.says for name in freed)
