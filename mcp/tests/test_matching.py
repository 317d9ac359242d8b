"""How an entry of a list names tools, in all six lists alike, and as it is stored."""

from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agents.models import Capabilities
from mcp import guards, matching, policy
from mcp.context import Call
from mcp.guards import Case
from mcp.policy import Who
from mcp.registry import Tool
from tests.build import company
from tests.facts import ODD, who_of
from tests.oracle import Facts, means
from tests.testtools import catalogue, probe, stand_in

TOOLS = tuple(stand_in(line) for line in catalogue())
EVERY = {tool.name for tool in TOOLS}
OPEN = who_of(Facts(kind="agent", on=frozenset({tool.switch for tool in TOOLS if tool.switch})))
PEOPLE = {tool.name for tool in TOOLS if tool.human_only}


def starting(prefix: str) -> set[str]:
    """The tools of the catalogue whose names begin so."""
    return {name for name in EVERY if name.startswith(prefix)}


# Case V03: an entry, and the tools that it names.
V03: dict[str, set[str]] = {
    "memory_*": starting("memory_"),
    "mcp__duduclaw__odoo_*": starting("odoo_"),
    "mcp__duduclaw__*": EVERY,
    "mcp__github__*": set(),
    "*_search": set(),
    "mem*ory_search": set(),
    "Memory_search": set(),
    "memory_search ": set(),
}
MORE: dict[str, set[str]] = {
    "*": EVERY,
    "mcp__duduclaw": EVERY,
    "mcp__duduclaw__": set(),
    "mcp__duduclaw__memory_search": {"memory_search"},
    "mcp__duduclaw__memory_search_by": set(),
    "mcp__github__memory_search": set(),
    "mcp__github": set(),
    "mcp__": set(),
    "mcp__DuDuClaw__memory_search": set(),
    "memory_search": {"memory_search"},
    "memory_search(of last week)": {"memory_search"},
    "memory_(any)": set(),
    "*(all of them)": EVERY,
    "(none)": set(),
    "": set(),
    " memory_search": set(),
    "**": set(),
    "memory_**": set(),
    "memory_search\n": set(),
    "m": set(),
}


def denied(who: Who, entry: str) -> set[str]:
    shown = {tool.name for tool in policy.toolset(TOOLS, replace(who, denied=(entry,)))}
    return EVERY - PEOPLE - shown


def allowed(who: Who, entry: str) -> set[str]:
    return {tool.name for tool in policy.toolset(TOOLS, replace(who, allowed=(entry,)))}


def scoped(who: Who, entry: str) -> set[str]:
    shown = {tool.name for tool in policy.toolset(TOOLS, replace(who, scoped=(entry,)))}
    return EVERY - PEOPLE - shown


def asked(kind: str) -> Callable[[Who, str], set[str]]:
    def ask(who: Who, entry: str) -> set[str]:
        holder = replace(who, **{kind: (entry,)})  # type: ignore[arg-type]
        return {tool.name for tool in TOOLS if guards.asks_a_person(case(tool, holder))} - PEOPLE

    return ask


def case(tool: Tool, who: Who) -> Case:
    """A call past the gates, without arguments."""
    return Case(tool, Call(who, tool.name), {}, {})


LISTS: dict[str, Callable[[Who, str], set[str]]] = {
    "denied_tools": denied,
    "allowed_tools": allowed,
    "scoped_tools": scoped,
    "approval_required_tools": asked("approval_required"),
    "irreversible_tools": asked("irreversible"),
    "maybe_irreversible_tools": asked("maybe_irreversible"),
}


@pytest.mark.parametrize("kind", LISTS)
@pytest.mark.parametrize("entry", V03)
def test_V03_an_entry_names_the_same_tools_in_every_list(kind: str, entry: str) -> None:
    assert LISTS[kind](OPEN, entry) == V03[entry] - PEOPLE


@pytest.mark.parametrize("kind", LISTS)
@pytest.mark.parametrize("entry", MORE)
def test_V03_more_entries(kind: str, entry: str) -> None:
    assert LISTS[kind](OPEN, entry) == MORE[entry] - PEOPLE


@pytest.mark.django_db
def test_V03_entries_match_as_they_are_stored() -> None:
    people, tools = company(), (probe("memory_search"), probe("memory_store"))
    for stored, hidden in (("memory_search ", 0), ("memory_search", 1), ("memory_*", 2), (" memory_*", 0)):
        Capabilities.objects.filter(agent=people.owner).update(denied_tools=[stored])
        assert 2 - len(policy.toolset(tools, people.who("owner"))) == hidden, stored


@given(entry=st.one_of(st.sampled_from(ODD), st.text("mcp_duclawgithx*( ", max_size=24), st.text(max_size=8)))
@settings(max_examples=400, deadline=None)
def test_matching_agrees_with_the_oracle(entry: str) -> None:
    for name in ("memory_search", "mcp", "duduclaw", "m", "github_status"):
        assert matching.names(entry, name) == means(entry, name), (entry, name)


def test_the_first_entry_that_names_a_tool_is_told() -> None:
    assert matching.first(("x", "memory_*", "*"), "memory_read") == "memory_*"
    assert matching.first((), "memory_read") is None


@pytest.mark.parametrize(
    ("given", "bare"),
    [("mcp__duduclaw__x", "x"), ("x", "x"), ("mcp__github__x", "mcp__github__x"), ("mcp__duduclaw", "*")],
)
def test_a_qualified_name_without_its_server(given: str, bare: str) -> None:
    assert matching.bare(given) == bare


def test_denied_wins_and_a_filled_allowed_list_is_all_there_is() -> None:
    tool = probe("memory_read")
    both = replace(OPEN, denied=("memory_read",), allowed=("*",))
    refusal = policy.closed(tool, both)
    assert refusal is not None and refusal.error == "denied_tools"
    assert policy.closed(tool, replace(OPEN, allowed=("wiki_read",))) is not None
    assert policy.closed(tool, replace(OPEN, allowed=())) is None
