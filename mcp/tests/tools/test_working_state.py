"""The working state: every limit with one allowed and one refused call, over every transport."""

from collections.abc import Callable
from datetime import timedelta
from typing import Annotated, Any

import pytest
import time_machine
from pydantic import Field

from agents.models import Key, PlatformSettings
from duduclaw.knowledge.actions.handoff import cut
from duduclaw.knowledge.models import Handoff, StateChange, StateKey
from duduclaw.lib import clock
from duduclaw.lib.canonical import canonical
from mcp import registry
from mcp.context import Call
from mcp.models import AuditRow
from mcp.params import Text
from mcp.results import MOST_CHARACTERS
from mcp.tests.tools.transports import OK, TRANSPORTS, Transport, audit_of, cases, rows_of, via_mcp
from tests.build import Company, company, key

pytestmark = pytest.mark.django_db

INVALID, CHANGED, FULL, LARGE = "invalid_arguments", "state_changed", "too_many_keys", "handoff_too_large"
NO_AGENT, EXTERNAL, SCOPE = "process_agent_tool", "external_not_available", "insufficient_scope"
STATUS = {OK: 200, INVALID: 400, CHANGED: 422, FULL: 422, LARGE: 422, NO_AGENT: 403, EXTERNAL: 403, SCOPE: 403}
NAMES = {"external": "client"}
TABLES = (StateKey, StateChange, Handoff)

Arguments = Callable[[Company], dict[str, Any]]


@pytest.fixture
def people() -> Company:
    """The company, with an external client that holds both memory scopes."""
    made = company()
    made.tokens["external"] = key(
        made.space, "external", client_id="client", scopes_held=["memory:read", "memory:write"]
    )[1]
    return made


def setting(people: Company, person: str = "owner", **over: Any) -> dict[str, Any]:
    """A set by `person`."""
    arguments = {"key": "plan", "value": "step one", "reason": "begun", **over}
    return via_mcp(people, person, "working_state_set", arguments).body


def fixed(**arguments: Any) -> Arguments:
    return lambda people: arguments


def put(**over: Any) -> Arguments:
    return fixed(**{"key": "plan", "value": "v", "reason": "r", **over})


def after(**over: Any) -> Arguments:
    """A set by an agent whose `plan` is "step one"."""

    def build(people: Company) -> dict[str, Any]:
        for person in AGENTS:
            setting(people, person)
        return put(**over)(people)

    return build


def filled(count: int, key: str) -> Arguments:
    """A set by agents that have `count` keys."""

    def build(people: Company) -> dict[str, Any]:
        StateKey.objects.bulk_create(
            StateKey(
                workspace=people.space,
                agent=getattr(people, person),
                key=f"k{n}",
                value="v",
                reason="r",
                updated_at=clock.now(),
            )
            for person in AGENTS
            for n in range(count)
        )
        return put(key=key)(people)

    return build


def note(**over: Any) -> Arguments:
    return fixed(**{"note": "n", **over})


AGENTS = ("owner", "colleague", "stranger")
ALLOWED = dict.fromkeys(AGENTS, OK) | {"operator": NO_AGENT, "external": NO_AGENT}
WRONG = dict.fromkeys(AGENTS, INVALID) | {"operator": NO_AGENT, "external": NO_AGENT}


def refused(code: str) -> dict[str, str]:
    return {**WRONG, **dict.fromkeys(AGENTS, code)}


TABLE: list[tuple[str, str, Arguments, dict[str, str]]] = [
    ("working_state_get", "default", fixed(), ALLOWED),
    ("working_state_get", "history 1", fixed(history_limit=1), ALLOWED),
    ("working_state_get", "history 100", fixed(history_limit="100"), ALLOWED),
    ("working_state_get", "history 0", fixed(history_limit=0), WRONG),
    ("working_state_get", "history 101", fixed(history_limit=101), WRONG),
    ("working_state_set", "plain", put(), ALLOWED),
    ("working_state_set", "longest key", put(key="0" + "a.b_c-" * 10 + "xyz"), ALLOWED),
    ("working_state_set", "key of 65", put(key="a" * 65), WRONG),
    ("working_state_set", "upper case", put(key="Plan"), WRONG),
    ("working_state_set", "leading dot", put(key=".plan"), WRONG),
    ("working_state_set", "trailing newline", put(key="plan\n"), WRONG),
    ("working_state_set", "empty key", put(key=""), WRONG),
    ("working_state_set", "foreign letters", put(key="pl\u0430n"), WRONG),
    ("working_state_set", "value of 400", put(value="固" * 400), ALLOWED),
    ("working_state_set", "value of 401", put(value="固" * 401), WRONG),
    ("working_state_set", "two lines", put(value="a\nb"), WRONG),
    ("working_state_set", "line separator", put(value="a\u2028b"), WRONG),
    ("working_state_set", "trailing line", put(value="a\n"), WRONG),
    ("working_state_set", "blank value", put(value=" "), WRONG),
    ("working_state_set", "reason of 200", put(reason="r" * 200), ALLOWED),
    ("working_state_set", "reason of 201", put(reason="r" * 201), WRONG),
    ("working_state_set", "blank reason", put(reason=""), WRONG),
    ("working_state_set", "no reason", fixed(key="plan", value="v"), WRONG),
    ("working_state_set", "ttl 1", put(ttl_hours=1), ALLOWED),
    ("working_state_set", "ttl 720", put(ttl_hours="720"), ALLOWED),
    ("working_state_set", "ttl 0", put(ttl_hours=0), WRONG),
    ("working_state_set", "ttl 721", put(ttl_hours=721), WRONG),
    ("working_state_set", "expected", after(expected_value="step one"), ALLOWED),
    ("working_state_set", "not expected", after(expected_value="step two"), refused(CHANGED)),
    ("working_state_set", "expected of none", put(expected_value="step one"), refused(CHANGED)),
    ("working_state_set", "expected none", put(expected_value=""), ALLOWED),
    ("working_state_set", "expected none of one", after(expected_value=""), refused(CHANGED)),
    ("working_state_set", "key 32", filled(31, "new"), {"owner": OK, "colleague": OK}),
    ("working_state_set", "key 33", filled(32, "new"), {"owner": FULL, "colleague": FULL, "stranger": FULL}),
    ("working_state_set", "32 keys and an old one", filled(32, "k7"), {"owner": OK}),
    ("working_state_clear", "unset key", fixed(key="gone", reason="r"), ALLOWED),
    ("working_state_clear", "reason of 201", fixed(key="gone", reason="r" * 201), WRONG),
    ("working_state_clear", "no reason", fixed(key="gone"), WRONG),
    ("working_state_clear", "bad key", fixed(key="Gone", reason="r"), WRONG),
    ("working_state_handoff", "plain", note(), ALLOWED),
    ("working_state_handoff", "plain and long", note(note="固" * 30_000), ALLOWED),
    ("working_state_handoff", "blank", note(note=" "), WRONG),
    ("working_state_handoff", "no note", fixed(), WRONG),
    ("working_state_handoff", "continue", note(status="continue", next_steps="ship it"), ALLOWED),
    ("working_state_handoff", "continue with evidence", note(status="continue", next_steps="s", evidence="e"), ALLOWED),
    ("working_state_handoff", "continue without steps", note(status="continue"), WRONG),
    ("working_state_handoff", "continue with blank steps", note(status="continue", next_steps=" "), WRONG),
    ("working_state_handoff", "continue and blocked", note(status="continue", next_steps="s", blocker="b"), WRONG),
    ("working_state_handoff", "complete", note(status="complete", evidence="commit 1a2b"), ALLOWED),
    ("working_state_handoff", "complete without evidence", note(status="complete"), WRONG),
    ("working_state_handoff", "complete and blocked", note(status="complete", evidence="e", blocker="b"), WRONG),
    ("working_state_handoff", "complete with steps", note(status="complete", evidence="e", next_steps="s"), WRONG),
    ("working_state_handoff", "blocked", note(status="blocked", blocker="no access to the ledger"), ALLOWED),
    ("working_state_handoff", "blocked with steps", note(status="blocked", blocker="no key", next_steps="s"), ALLOWED),
    ("working_state_handoff", "blocked by nothing", note(status="blocked"), WRONG),
    ("working_state_handoff", "blocked by something", note(status="blocked", blocker="Unknown."), WRONG),
    ("working_state_handoff", "unknown status", note(status="done"), WRONG),
    ("working_state_handoff", "steps without status", note(next_steps="s"), WRONG),
    ("working_state_handoff", "evidence without status", note(evidence="e"), WRONG),
    ("working_state_handoff", "blocker without status", note(blocker="b"), WRONG),
    ("working_state_handoff", "blank fields are absent", note(status="", next_steps="", blocker=""), ALLOWED),
    ("working_state_handoff", "16384 bytes", note(note="", status="complete", evidence="e" * 16_384), ALLOWED),
    ("working_state_handoff", "16385 bytes", note(status="complete", evidence="e" * 16_384), refused(LARGE)),
]  # fmt: skip


@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize(("tool", "arguments", "expected"), cases(TABLE))
def test_who_may_do_what(
    people: Company, transport: Transport, tool: str, arguments: Arguments, expected: dict[str, str]
) -> None:
    given = arguments(people)
    for person, code in expected.items():
        before, told = rows_of(*TABLES), len(audit_of(tool))
        outcome = transport(people, person, tool, given)
        assert (person, outcome.code) == (person, code), outcome.body
        assert outcome.status in (0, STATUS[code])
        (row,) = audit_of(tool)[told:]
        if code == OK:
            assert row[0] == OK
            continue
        assert rows_of(*TABLES) == before
        assert row == ("invalid" if code in (INVALID, LARGE) else "denied", code, NAMES.get(person, person))


@pytest.mark.parametrize("name", ["get", "set", "clear", "handoff"])
def test_declarations(name: str) -> None:
    tool = registry.TOOLS[f"working_state_{name}"]
    assert tool.process_agent
    assert tool.scope == ("memory:read" if name == "get" else "memory:write")
    assert tool.read_only is (name == "get")
    assert tool.idempotent
    assert not tool.destructive


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_M03_the_limit_counts_bytes_and_refuses_whole(people: Company, transport: Transport) -> None:
    first = {"note": "done", "status": "complete", "evidence": "固" * 5_000}
    assert transport(people, "owner", "working_state_handoff", first).body["bytes"] == 15_004
    read = transport(people, "owner", "working_state_get", {}).body["handoff"]
    assert (read["note"], read["status"], read["evidence"]) == ("done", "complete", "固" * 5_000)
    before = rows_of(*TABLES)
    outcome = transport(people, "owner", "working_state_handoff", {**first, "evidence": "固" * 6_000})
    assert outcome.code == LARGE
    assert rows_of(*TABLES) == before
    assert transport(people, "owner", "working_state_get", {}).body["handoff"] == read


def test_M03_a_description_is_measured_in_bytes() -> None:
    for words, fits in (("固" * 66 + "ab", True), ("固" * 67, False)):

        def described(call: Call, *, x: Annotated[Text, Field(description=words)]) -> dict[str, Any]:
            """Reads."""
            return {}

        if fits:
            assert registry.build(described, "described", "test", "admin", {}).schema
        else:
            with pytest.raises(registry.BadTool, match="201 bytes"):
                registry.build(described, "described", "test", "admin", {})


@pytest.mark.parametrize(
    ("stored", "limit"),
    [(100, 100), (20_000, 20_000), ("100", 16_384), (True, 16_384), (0, 16_384), (-1, 16_384), (10**9, 32_768)],
)
def test_the_limit_is_a_setting(people: Company, stored: object, limit: int) -> None:
    PlatformSettings.objects.for_who(people.who("operator")).update(memory={"working_state_handoff_max_bytes": stored})
    arguments = {"note": "", "status": "complete", "evidence": "e" * limit}
    assert via_mcp(people, "owner", "working_state_handoff", arguments).code == OK
    arguments["evidence"] += "e"
    outcome = via_mcp(people, "owner", "working_state_handoff", arguments)
    assert (outcome.code, outcome.body["limit"], outcome.body["bytes"]) == (LARGE, limit, limit + 1)


def test_the_limit_holds_for_plain_notes_too(people: Company) -> None:
    PlatformSettings.objects.for_who(people.who("operator")).update(memory={"working_state_handoff_max_bytes": 300})
    assert via_mcp(people, "owner", "working_state_handoff", {"note": "固" * 100}).code == OK
    assert via_mcp(people, "owner", "working_state_handoff", {"note": "固" * 101}).code == LARGE


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("x" * 1_200, 1_200),
        ("x" * 5_000, 1_200),
        ("固" * 5_000, 1_200),
        ("x" * 1_199 + "e\u0301" * 10, 1_199),
        ("x" * 1_198 + "\U0001f469\u200d\U0001f52c" * 5, 1_198),
        ("\u0301" * 3_000, 1_160),
    ],
)
def test_plain_notes_are_cut_between_characters(people: Company, text: str, kept: int) -> None:
    assert cut(text) == text[:kept]
    body = via_mcp(people, "owner", "working_state_handoff", {"note": text}).body
    assert body["note_characters"] == kept
    assert via_mcp(people, "owner", "working_state_get", {}).body["handoff"]["note"] == text[:kept]


def test_what_one_agent_keeps_no_other_sees(people: Company) -> None:
    setting(people, "owner")
    via_mcp(people, "owner", "working_state_handoff", {"note": "mine"})
    body = via_mcp(people, "colleague", "working_state_get", {}).body
    assert (body["keys"], body["handoff"], body["history"]) == ([], None, [])


def test_two_agents_of_one_name_in_two_workspaces_share_nothing(people: Company) -> None:
    other = company("other")
    setting(other, "owner", value="theirs")
    setting(people, "owner", value="ours")
    assert via_mcp(people, "owner", "working_state_get", {}).body["keys"][0]["value"] == "ours"
    assert via_mcp(other, "owner", "working_state_get", {}).body["keys"][0]["value"] == "theirs"


def test_a_run_key_writes_its_agents_state(people: Company) -> None:
    people.tokens["run"] = key(people.space, Key.Kind.RUN, agent=people.owner)[1]
    setting(people, "run")
    assert via_mcp(people, "owner", "working_state_get", {}).body["keys"][0]["key"] == "plan"


def test_a_changed_state_says_what_stands(people: Company) -> None:
    setting(people)
    outcome = via_mcp(
        people, "owner", "working_state_set", {"key": "plan", "value": "x", "reason": "r", "expected_value": "other"}
    )
    assert outcome.body["current"] == "step one"
    outcome = via_mcp(
        people, "owner", "working_state_set", {"key": "new", "value": "x", "reason": "r", "expected_value": "other"}
    )
    assert outcome.body["current"] is None


def test_history_has_every_change_newest_first(people: Company) -> None:
    setting(people)
    setting(people, value="step two", reason="one is done")
    via_mcp(people, "owner", "working_state_clear", {"key": "plan", "reason": "all done"})
    via_mcp(people, "owner", "working_state_handoff", {"note": "bye", "status": "complete", "evidence": "see T-1"})
    history = via_mcp(people, "owner", "working_state_get", {}).body["history"]
    assert [(row["action"], row["key"], row["value"], row["reason"]) for row in history] == [
        ("handoff", None, "bye", "complete"),
        ("clear", "plan", "", "all done"),
        ("set", "plan", "step two", "one is done"),
        ("set", "plan", "step one", "begun"),
    ]
    assert len(via_mcp(people, "owner", "working_state_get", {"history_limit": 2}).body["history"]) == 2


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("working_state_set", {"key": "plan", "value": "v", "reason": "r"}),
        ("working_state_clear", {"key": "plan", "reason": "r"}),
        ("working_state_handoff", {"note": "n", "status": "continue", "next_steps": "s"}),
    ],
)
def test_the_same_call_again_changes_nothing(people: Company, tool: str, arguments: dict[str, Any]) -> None:
    setting(people)
    first = via_mcp(people, "owner", tool, arguments)
    before = rows_of(*TABLES)
    again = via_mcp(people, "owner", tool, arguments)
    assert again.code == OK
    assert rows_of(*TABLES) == before
    assert {**again.body, "cleared": None} == {**first.body, "cleared": None}


def test_an_expired_key_is_marked_holds_no_place_and_expects_nothing(people: Company) -> None:
    start = clock.now()
    with time_machine.travel(start, tick=False):
        for n in range(31):
            setting(people, key=f"k{n}")
        setting(people, key="short", ttl_hours=2)
        assert setting(people, key="one-more")["error"] == FULL
    with time_machine.travel(start + timedelta(hours=2), tick=False):
        shown = {row["key"]: row["expired"] for row in via_mcp(people, "owner", "working_state_get", {}).body["keys"]}
        assert shown["short"] is True
        assert shown["k0"] is False
        assert setting(people, key="short", expected_value="step one")["error"] == CHANGED
        assert setting(people, key="one-more")["key"] == "one-more"
        left = {row["key"] for row in via_mcp(people, "owner", "working_state_get", {}).body["keys"]}
        assert len(left) == 32
        assert "short" not in left


def test_an_expired_key_can_be_set_again(people: Company) -> None:
    start = clock.now()
    with time_machine.travel(start, tick=False):
        setting(people, ttl_hours=1)
    with time_machine.travel(start + timedelta(hours=1), tick=False):
        again = setting(people, value="step two", expected_value="")
    assert (again["value"], again["expired"], again["expires_at"]) == ("step two", False, None)
    assert StateKey.objects.system().count() == 1


def test_the_largest_state_is_read_within_the_limit_and_says_what_is_missing(people: Company) -> None:
    via_mcp(people, "owner", "working_state_handoff", {"note": "", "status": "complete", "evidence": '"' * 16_384})
    for n in range(32):
        setting(people, key=f"k{n:02}", value='"' * 400, reason='"' * 200)
    body = via_mcp(people, "owner", "working_state_get", {"history_limit": 100}).body
    assert body["handoff"]["evidence"] == '"' * 16_384
    assert body["truncated"] is True
    assert len(body["keys"]) + body["left_out"]["keys"] == 32
    assert len(canonical(body)) <= MOST_CHARACTERS
    via_mcp(people, "owner", "working_state_handoff", {"note": "short"})
    body = via_mcp(people, "owner", "working_state_get", {"history_limit": 1}).body
    assert len(body["keys"]) == 32
    assert body["truncated"] is False


SECRETS = {"github": "ghp_" + "a1B2" * 9, "ours": "ddc_live_" + "0f" * 16, "url": "postgres://u:hunter22@db/x"}


@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize("name", SECRETS)
def test_T51_no_secret_reaches_the_record(people: Company, transport: Transport, name: str) -> None:
    secret = SECRETS[name]
    calls = [
        ("working_state_set", {"key": "plan", "value": f"use {secret} ok", "reason": "r"}),
        ("working_state_set", {"key": "BAD", "value": secret, "reason": secret}),
        ("working_state_set", {"key": "plan", "value": "v", "reason": "r", secret: secret}),
        ("create_issue", {"title": "Rotate", "description": f"it was {secret}"}),
        ("no_such_tool", {"password": "hunter22", "note": secret}),
    ]
    for tool, arguments in calls:
        transport(people, "owner", tool, arguments)
    rows = list(AuditRow.objects.values_list("arguments", "details", "reason"))
    assert len(rows) == len(calls)
    kept = secret.removeprefix("postgres://u:").removesuffix("@db/x")
    assert kept[-12:] not in str(rows)
    assert "Rotate" in str(rows)
