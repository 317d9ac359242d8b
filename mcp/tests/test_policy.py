"""The kernel against the oracle, without a server: visible is callable is what the rules say, for anybody."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcp import policy, refusals, registry
from mcp.policy import CALLABLE, CONDITIONAL, GATES, HIDDEN, Who
from mcp.registry import Tool
from tests.facts import principals, who_of
from tests.oracle import Facts, first_closed
from tests.testtools import probe, probes, stand_ins

TOOLS = (*probes(), *registry.every())
CATALOGUE = (*registry.every(), *stand_ins())
ORDER = tuple(gate.id for gate in GATES)
FRESH = Facts(kind="agent")


def check(tools: tuple[Tool, ...], facts: Facts, who: Who) -> None:
    """List, call and explain of one principal, tool by tool, against the oracle."""
    shown = policy.toolset(tools, who)
    assert list(shown) == [tool for tool in tools if first_closed(tool, facts) is None]
    for tool in tools:
        gate, refusal, verdict = first_closed(tool, facts), policy.closed(tool, who), policy.verdict(tool, who)
        assert (refusal.gate if refusal else None) == gate, tool.name
        assert (tool in shown) == (refusal is None) == (verdict.state != HIDDEN), tool.name
        assert verdict.refusal == refusal
        if refusal is not None:
            own = next(each for each in GATES if each.id == refusal.gate).closed(tool, who)
            assert own is not None and own.text.encode() == refusal.text.encode() and own == refusal


@given(facts=principals(TOOLS))
@settings(max_examples=200, deadline=None)
def test_T15_visible_is_callable_is_what_the_rules_say(facts: Facts) -> None:
    check(TOOLS, facts, who_of(facts))


@given(facts=principals(CATALOGUE))
@settings(max_examples=50, deadline=None)
def test_T15_over_the_whole_catalogue(facts: Facts) -> None:
    check(CATALOGUE, facts, who_of(facts))


@pytest.mark.long
@given(facts=principals(CATALOGUE))
@settings(max_examples=5_000, deadline=None)
def test_T15_over_the_whole_catalogue_at_full_figures(facts: Facts) -> None:
    check(CATALOGUE, facts, who_of(facts))


@given(facts=principals(TOOLS), tool=st.sampled_from(TOOLS))
@settings(max_examples=200, deadline=None)
def test_the_trace_shows_every_gate_in_order_and_the_first_closed_one_decides(facts: Facts, tool: Tool) -> None:
    verdict = policy.verdict(tool, who_of(facts))
    assert tuple(step.gate for step in verdict.trace) == ORDER
    closed = [step for step in verdict.trace if not step.open]
    assert verdict.refusal == (closed[0].refusal if closed else None)
    assert all((step.refusal is None) == step.open for step in verdict.trace)
    assert all(step.refusal.gate == step.gate for step in closed if step.refusal)


def test_the_order_of_the_gates_is_the_written_one() -> None:
    assert ORDER == ("G1", "G2", "G3", "G4", "G5", "G6", "G7", "G8", "G9")


# For each gate a tool and a principal that close it together with every later gate that can close beside it.
SHUT = Facts(
    kind="agent",
    scopes=(),
    status="paused",
    stops=frozenset({"agent"}),
    denied=("probe_*",),
    allowed=("tasks_list",),
    scoped=("*",),
)
OPENINGS: tuple[tuple[str, dict[str, object]], ...] = (
    ("G1", {"stops": frozenset()}),
    ("G2", {"status": "active"}),
    ("G4", {"scopes": ("admin",)}),
    ("G7", {"denied": ()}),
    ("G7", {"allowed": ()}),
    ("G8", {"on": frozenset({"codrive"})}),
    ("G9", {"granted": frozenset({"probe_switch_codrive"})}),
)


def test_gates_open_one_after_the_other() -> None:
    tool, facts = probe("probe_switch_codrive", switch="codrive"), SHUT
    for gate, change in OPENINGS:
        refusal = policy.closed(tool, who_of(facts))
        assert refusal is not None and refusal.gate == gate
        facts = replace(facts, **change)  # type: ignore[arg-type]
    assert policy.closed(tool, who_of(facts)) is None


@pytest.mark.parametrize(
    ("facts", "tool", "error"),
    [
        (replace(FRESH, stops=frozenset({"all"})), probe("probe_a"), "stopped"),
        (replace(FRESH, status="paused"), probe("probe_a"), "agent_not_active"),
        (Facts(kind="external", scopes=("admin",)), probe("probe_a"), "external_not_available"),
        (Facts(kind="external", scopes=("admin",)), probe("wiki_read", scope="wiki:read"), "insufficient_scope"),
        (replace(FRESH, scopes=("wiki:read",)), probe("probe_a"), "insufficient_scope"),
        (Facts(kind="operator"), probe("probe_a", process_agent=True), "process_agent_tool"),
        (Facts(kind="person", role="admin"), probe("probe_a", process_agent=True), "process_agent_tool"),
        (
            Facts(kind="external", scopes=("wiki:write",)),
            probe("probe_a", scope="wiki:write", process_agent=True),
            "process_agent_tool",
        ),
        (FRESH, probe("probe_a", human_only=True), "human_only"),
        (replace(FRESH, kind="run"), probe("probe_a", human_only=True), "human_only"),
        (replace(FRESH, denied=("probe_a",), allowed=("x",)), probe("probe_a"), "denied_tools"),
        (replace(FRESH, allowed=("x",)), probe("probe_a"), "allowed_tools"),
        *(
            (FRESH, probe("probe_a", switch=name), f"{name}_capability_missing")
            for name in sorted(registry.SWITCHES - {"fork", "responsibilities"})
        ),
        (FRESH, probe("probe_a", switch="fork"), "fork_disabled"),
        (FRESH, probe("probe_a", switch="responsibilities"), "responsibilities_disabled"),
        (replace(FRESH, scoped=("probe_a",)), probe("probe_a"), "capability_grant_missing"),
        (Facts(kind="operator", role="viewer"), probe("probe_a"), "insufficient_scope"),
        (Facts(kind="person", role="viewer"), probe("probe_a"), "insufficient_scope"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_each_gate_has_its_code_and_class(facts: Facts, tool: Tool, error: str) -> None:
    refusal = policy.closed(tool, who_of(facts))
    assert refusal is not None
    assert refusal.error == error
    assert refusal.code == (-32601 if error == "external_not_available" else -32003)
    assert refusal.data(tool.name) == {"error": error, "gate": refusal.gate, "tool": tool.name}


def test_a_stop_holds_agents_and_clients_and_no_people() -> None:
    tool = probe("probe_a", scope="wiki:read")
    stopped = {"stops": frozenset({"all"}), "scopes": ("wiki:read",)}
    for kind in ("agent", "run", "external"):
        refusal = policy.closed(tool, who_of(Facts(kind=kind, **stopped)))  # type: ignore[arg-type]
        assert refusal == refusals.stopped("probe_a", "the fleet")
    for kind in ("operator", "person"):
        assert policy.closed(tool, who_of(Facts(kind=kind, role="operator", **stopped))) is None  # type: ignore[arg-type]


def test_a_fresh_agent_sees_all_ungated_tools_but_the_one_for_people() -> None:
    shown = {tool.name for tool in policy.toolset(CATALOGUE, who_of(FRESH))}
    ungated = {tool.name for tool in CATALOGUE if tool.switch is None}
    assert ungated - shown == {"tool_approve"}
    assert shown <= ungated
    assert len(shown) == 179


def test_the_seeds_counts_of_hidden_tools() -> None:
    everything = who_of(replace(FRESH, on=frozenset(registry.SWITCHES)))
    counts = {}
    for switch in registry.SWITCHES:
        who = replace(everything, switches=everything.switches - {switch})
        counts[switch] = len(policy.toolset(CATALOGUE, everything)) - len(policy.toolset(CATALOGUE, who))
    assert counts == {
        "google_workspace": 19, "github": 5, "os_native": 6, "recording": 5, "system_operator": 19, "codrive": 2,
        "computer_use": 8, "db_sources": 4, "fork": 6, "responsibilities": 3, "static_catalog": 0,
    }  # fmt: skip


def test_a_client_with_the_memory_and_wiki_scopes_sees_exactly_24_tools() -> None:
    client = Facts(kind="external", scopes=("memory:read", "memory:write", "wiki:read", "wiki:write"))
    assert len(policy.toolset(CATALOGUE, who_of(client))) == 24


def test_admin_on_an_external_key_stands_in_for_nothing() -> None:
    assert policy.toolset(CATALOGUE, who_of(Facts(kind="external", scopes=("admin",)))) == ()


def test_a_paused_or_stopped_agent_sees_nothing() -> None:
    for facts in (replace(FRESH, status="paused"), replace(FRESH, stops=frozenset({"department"}))):
        assert policy.toolset(CATALOGUE, who_of(facts)) == ()


def test_three_values_and_nothing_else() -> None:
    who = who_of(replace(FRESH, refused_flags=frozenset({"can_create_agents"})))
    states = {
        "probe_plain": policy.verdict(probe("probe_plain"), who).state,
        "probe_flag": policy.verdict(probe("probe_flag", permission="can_create_agents"), who).state,
        "probe_open_flag": policy.verdict(probe("probe_open_flag", permission="can_schedule_tasks"), who).state,
        "probe_relation": policy.verdict(probe("probe_relation", relation=True), who).state,
        "probe_odoo": policy.verdict(probe("probe_odoo", odoo_feature=True), who).state,
        "probe_hidden": policy.verdict(probe("probe_hidden", human_only=True, relation=True), who).state,
    }
    assert states == {
        "probe_plain": CALLABLE,
        "probe_flag": CONDITIONAL,
        "probe_open_flag": CALLABLE,
        "probe_relation": CONDITIONAL,
        "probe_odoo": CONDITIONAL,
        "probe_hidden": HIDDEN,
    }


def test_the_kernel_keeps_the_order_that_it_is_given() -> None:
    tools = tuple(sorted(TOOLS, key=lambda tool: tool.name, reverse=True))
    assert list(policy.toolset(tools, who_of(FRESH))) == [t for t in tools if policy.closed(t, who_of(FRESH)) is None]
