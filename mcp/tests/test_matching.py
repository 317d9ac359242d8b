"""V03: how list entries name tools, in every list that has them."""

from collections.abc import Callable

import pytest

from mcp import guards, matching, policy
from mcp.context import Call
from mcp.guards import Case
from mcp.policy import Who
from mcp.registry import Tool
from tests.tools import peek

NAMES = ("github_status", "memory_read", "memory_search", "odoo_crm_leads", "odoo_execute", "tasks_list", "wiki_search")
TOOLS = tuple(peek(name) for name in NAMES)
MEMORY = {"memory_read", "memory_search"}
ODOO = {"odoo_crm_leads", "odoo_execute"}
# entry -> the tools that it names
TABLE: dict[str, set[str]] = {
    "memory_*": MEMORY,
    "mcp__duduclaw__odoo_*": ODOO,
    "mcp__duduclaw__*": set(NAMES),
    "mcp__duduclaw": set(NAMES),
    "*": set(NAMES),
    "memory_search": {"memory_search"},
    "mcp__duduclaw__memory_search": {"memory_search"},
    "memory_search(query)": {"memory_search"},
    "mcp__github__*": set(),
    "mcp__github__memory_search": set(),
    "mcp__duduclaw__": set(),
    "*_search": set(),
    "mem*ory_search": set(),
    "memory_**": set(),
    "Memory_search": set(),
    "memory_search ": set(),
    " memory_search": set(),
    "memory": set(),
    "": set(),
}


def agent(**lists: tuple[str, ...]) -> Who:
    return Who(kind="agent", workspace="w", name="owner", agent="a", scopes=frozenset({"admin"}), **lists)  # type: ignore[arg-type]


def denied(tool: Tool, entry: str) -> bool:
    refusal = policy.closed(tool, agent(denied=(entry,)))
    assert refusal is None or refusal.error == "denied_tools"
    return refusal is not None


def allowed(tool: Tool, entry: str) -> bool:
    refusal = policy.closed(tool, agent(allowed=(entry,)))
    assert refusal is None or refusal.error == "allowed_tools"
    return refusal is None


def scoped(tool: Tool, entry: str) -> bool:
    refusal = policy.closed(tool, agent(scoped=(entry,)))
    assert refusal is None or refusal.error == "capability_grant_missing"
    return refusal is not None


def asked(name: str) -> Callable[[Tool, str], bool]:
    def asks(tool: Tool, entry: str) -> bool:
        who = agent(**{name: (entry,)})
        return guards.asks_a_person(Case(tool, Call(who, tool.name), {}, {}))

    return asks


LISTS: dict[str, Callable[[Tool, str], bool]] = {
    "denied_tools": denied,
    "allowed_tools": allowed,
    "scoped_tools": scoped,
    "approval_required_tools": asked("approval_required"),
    "irreversible_tools": asked("irreversible"),
    "maybe_irreversible_tools": asked("maybe_irreversible"),
}


@pytest.mark.parametrize("entry", TABLE)
@pytest.mark.parametrize("kind", LISTS)
def test_V03_an_entry_names_the_same_tools_in_every_list(kind: str, entry: str) -> None:
    assert {tool.name for tool in TOOLS if LISTS[kind](tool, entry)} == TABLE[entry]


def test_a_denial_wins_over_an_allowance() -> None:
    who = agent(denied=("memory_*",), allowed=("memory_search",))
    refusals = {tool.name: policy.closed(tool, who) for tool in TOOLS}
    found = {name: refusal.error for name, refusal in refusals.items() if refusal}
    assert found == {name: "denied_tools" if name in MEMORY else "allowed_tools" for name in NAMES}


def test_empty_lists_restrict_nothing() -> None:
    assert policy.toolset(TOOLS, agent()) == TOOLS


@pytest.mark.parametrize(
    ("name", "bare"),
    [("mcp__duduclaw__x", "x"), ("x", "x"), ("mcp__github__x", "mcp__github__x"), ("mcp__duduclaw", "*")],
)
def test_a_qualifier_of_this_server_is_dropped(name: str, bare: str) -> None:
    assert matching.bare(name) == bare
