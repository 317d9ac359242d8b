"""Visible is callable, for every kind of key, over every transport, through real sockets."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from agents.principals import forget
from duduclaw.lib.rate import Bucket
from mcp import calls, parking, policy, refusals, registry, render
from mcp.models import AuditRow
from mcp.policy import Who
from mcp.registry import Tool
from mcp.transports import streamable
from tests.facts import Cast, cast, principals
from tests.law import Direct, Law, Line
from tests.live import Live
from tests.oracle import Facts, first_closed
from tests.testtools import probe, probes, stand_ins
from tests.wire_clients import CLIENTS

pytestmark = [
    pytest.mark.django_db(transaction=True),
    # The server's own threads draw random numbers while an example is drawn.
    pytest.mark.filterwarnings("ignore:Do not use the `random` module inside strategies"),
]
KINDS = ("agent", "run", "operator", "external")
FRESH = Facts(kind="agent")
EVERYTHING_ON = frozenset(registry.SWITCHES)
Lines = Callable[[str], Line]

PRINCIPALS: dict[str, Facts] = {
    "a fresh agent": FRESH,
    "a fresh run": Facts(kind="run"),
    "an agent with all on": replace(FRESH, on=EVERYTHING_ON),
    "an agent with all scoped": replace(FRESH, on=EVERYTHING_ON, scoped=("*",), granted=frozenset({"probe_write"})),
    "an agent with lists": replace(FRESH, denied=("probe_s*",), allowed=("probe_*", "tasks_list")),
    "an agent that must ask": replace(FRESH, asks_first=("*",)),
    "an agent without permissions": replace(FRESH, refused_flags=frozenset(registry.PERMISSIONS)),
    "an agent without admin": replace(FRESH, scopes=("odoo:read", "mail:send", "wiki:write")),
    "a paused agent": replace(FRESH, status="paused"),
    "an agent of a stopped department": replace(FRESH, stops=frozenset({"department"})),
    "a client with nothing": Facts(kind="external", scopes=()),
    "a client with admin": Facts(kind="external", scopes=("admin",)),
    "a client with memory and wiki": Facts(
        kind="external", scopes=("memory:read", "memory:write", "wiki:read", "wiki:write")
    ),
    "a client with all that is grantable": Facts(kind="external", scopes=tuple(sorted(registry.scopes.GRANTABLE))),
    "a client while the fleet stands": Facts(kind="external", scopes=("wiki:read",), stops=frozenset({"all"})),
    **{
        f"an operator key of a {role}": Facts(kind="operator", role=role)
        for role in ("viewer", "operator", "manager", "admin")
    },
    "an operator key with one scope": Facts(kind="operator", role="admin", scopes=("wiki:write",)),
    "an operator while the fleet stands": Facts(kind="operator", role="operator", stops=frozenset({"all"})),
}
PEOPLE = {f"a person of role {role}": Facts(kind="person", role=role) for role in ("viewer", "operator", "admin")}


@pytest.fixture
def tools() -> Iterator[tuple[Tool, ...]]:
    """Every real tool and every probe, registered."""
    with registry.temporarily(*probes()):
        yield registry.every()


@pytest.fixture
def play(monkeypatch: pytest.MonkeyPatch) -> Cast:
    """The principals. What waits for a person ends at once, and nobody calls too often."""
    monkeypatch.setattr(parking, "PATIENCE", 0.01)
    monkeypatch.setattr(streamable, "EXTERNAL", Bucket(0))
    forget()
    return cast()


@pytest.fixture(params=["direct", pytest.param("ws", marks=pytest.mark.engines), "http", "stdio"])
def lines(request: pytest.FixtureRequest, play: Cast) -> Iterator[Lines]:
    """`lines(kind)`: a line of that principal, opened once a test and kept while its rights change."""
    opened: dict[str, Line] = {}
    with ExitStack() as stack:
        url = None if request.param == "direct" else request.getfixturevalue("mcp_server").url

        def line(kind: str) -> Line:
            if url is None or kind == "person":
                return Direct(play.proof(kind))
            if kind not in opened:
                opened[kind] = stack.enter_context(CLIENTS[request.param](url, play.token(kind)))
                opened[kind].initialize()  # type: ignore[attr-defined]
            return opened[kind]

        yield line


def rows() -> int:
    """Calls on record."""
    return AuditRow.objects.filter(stream="tool_calls").count()


def test_T15_every_kind_of_principal_over_every_transport(lines: Lines, play: Cast, tools: tuple[Tool, ...]) -> None:
    law = Law()
    for facts in (PRINCIPALS | PEOPLE).values():
        proof = play.become(facts)
        law.check(lines(facts.kind), facts, proof(), tools, tools)
    assert law.answered == len(tools) * len(PRINCIPALS | PEOPLE)
    assert rows() == law.answered
    assert law.gates == {"G1", "G2", "G3", "G4", "G5", "G6", "G7", "G8", "G9"}


def random_law(lines: Lines, play: Cast, tools: tuple[Tool, ...], *, examples: int, calls_each: int) -> None:
    """Random principals, a list and some calls each; the record counts what was answered.

    A failure is not made smaller here, where each try costs calls: the kernel's own test does that.
    """
    law = Law()
    some = st.lists(st.sampled_from(tools), min_size=calls_each, max_size=calls_each, unique=True)

    @given(facts=principals(tools), sample=some)
    @settings(
        max_examples=examples,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        phases=(Phase.generate,),
        report_multiple_bugs=False,
        database=None,
    )
    def hold(facts: Facts, sample: list[Tool]) -> None:
        proof = play.become(facts)
        law.check(lines(facts.kind), facts, proof(), sample, tools)

    hold()
    assert rows() == law.answered


def test_T15_random_principals_over_every_transport(lines: Lines, play: Cast, tools: tuple[Tool, ...]) -> None:
    random_law(lines, play, tools, examples=200, calls_each=6)


@pytest.mark.long
def test_T15_random_principals_at_full_figures(lines: Lines, play: Cast, tools: tuple[Tool, ...]) -> None:
    random_law(lines, play, tools, examples=1_000, calls_each=24)


@pytest.mark.engines
def test_T15_random_principals_on_both_engines(play: Cast, tools: tuple[Tool, ...]) -> None:
    random_law(lambda kind: Direct(play.proof(kind)), play, tools, examples=100, calls_each=6)


def test_V01_three_transports_list_the_same_and_call_what_they_list(mcp_server: Live, play: Cast) -> None:
    facts = replace(FRESH, denied=("memory_*",), on=EVERYTHING_ON - {"github"})
    play.become(facts)
    with registry.temporarily(*stand_ins()), ExitStack() as stack:
        found = []
        for client in CLIENTS.values():
            line = stack.enter_context(client(mcp_server.url, play.token("agent")))
            line.initialize()
            found.append(line.names())
            for tool in registry.every():
                past = past_the_gates(line.call(tool.name, {}))
                assert past == (tool.name in found[-1]) == (first_closed(tool, facts) is None), tool.name
        assert found[0] == found[1] == found[2]
        hidden = {tool.name for tool in registry.every()} - found[0]
        assert {name for name in hidden if name.startswith(("memory_", "github_"))} == hidden - {"tool_approve"}
        assert rows() == 3 * len(registry.every())


def past_the_gates(frame: dict[str, Any]) -> bool:
    """Argument errors are answers of what can be called."""
    return "gate" not in frame.get("error", {}).get("data", {}) or frame["error"]["data"]["gate"] == "permissions"


@pytest.mark.parametrize(
    "name", ["no_such_tool", "", "Tasks_list", "tasks_list ", "mcp__duduclaw__tasks_list", "x" * 300]
)
def test_P03_only_a_name_that_no_tool_has_is_unknown(lines: Lines, play: Cast, name: str) -> None:
    play.become(FRESH)
    error = lines("agent").call(name, {})["error"]
    assert (error["code"], error["message"]) == (-32602, f"Unknown tool: {name[:64]}")
    assert list(AuditRow.objects.values_list("outcome", "reason")) == [("invalid", "unknown_tool")]


def test_P03_T16_a_hidden_tool_answers_with_its_gates_own_refusal(lines: Lines, play: Cast) -> None:
    play.become(FRESH)
    with registry.temporarily(probe("github_search_issues", switch="github", scope="github:read", read_only=True)):
        error = lines("agent").call("github_search_issues", {})["error"]
    refusal = refusals.switch_off("github_search_issues", "github")
    assert error["message"].encode() == refusal.text.encode()
    assert (error["code"], error["data"]) == (-32003, refusal.data("github_search_issues"))
    row = AuditRow.objects.get()
    assert (row.outcome, row.reason, row.tool) == ("denied", "github_capability_missing", "github_search_issues")


def test_T16_every_gate_refuses_over_every_transport_with_its_own_bytes(lines: Lines, play: Cast) -> None:
    law, tool = Law(), probe("probe_all", switch="codrive", human_only=True)
    shut = replace(FRESH, scopes=(), status="paused", stops=frozenset({"agent"}), denied=("probe_all",))
    steps: tuple[dict[str, Any], ...] = (
        {}, {"stops": frozenset()}, {"status": "active"}, {"scopes": ("admin",)},
    )  # fmt: skip
    with registry.temporarily(tool, probe("probe_listed", switch="codrive")):
        for step in steps:
            shut = replace(shut, **step)
            law.check(lines("agent"), shut, play.become(shut)(), [tool], registry.every())
        facts = replace(FRESH, denied=("probe_listed",), scoped=("probe_listed",))
        for step in ({}, {"denied": ()}, {"on": frozenset({"codrive"})}):
            facts = replace(facts, **step)
            law.check(lines("agent"), facts, play.become(facts)(), [registry.TOOLS["probe_listed"]], registry.every())
    assert law.gates == {"G1", "G2", "G4", "G6", "G7", "G8", "G9"}


# The three mutants: the law's check must fail on each.
def shows_all(who: Who) -> render.View:
    return render.View(registry.every())


MUTANTS: dict[str, tuple[Any, str, Any]] = {
    "list only: the call judges nothing": (calls, "gates", lambda tool, who: None),
    "call only: the list shows everything": (render, "view", shows_all),
    "wrong order: the last gate decides": (policy, "GATES", policy.GATES[::-1]),
}


@pytest.mark.parametrize("mutant", MUTANTS)
def test_T15_a_mutant_is_caught(
    mutant: str, lines: Lines, play: Cast, tools: tuple[Tool, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    facts = replace(FRESH, denied=("probe_switch_*",), scoped=("probe_switch_*",))
    sample = [registry.TOOLS["probe_switch_codrive"]]
    proof = play.become(facts)
    Law().check(lines("agent"), facts, proof(), sample, tools)
    monkeypatch.setattr(*MUTANTS[mutant])
    with pytest.raises(AssertionError):
        Law().check(lines("agent"), facts, proof(), sample, tools)


@pytest.mark.parametrize("mutant", MUTANTS)
def test_T15_random_principals_catch_a_mutant(
    mutant: str, play: Cast, tools: tuple[Tool, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(*MUTANTS[mutant])
    with pytest.raises(AssertionError):
        random_law(lambda kind: Direct(play.proof(kind)), play, tools, examples=200, calls_each=6)
