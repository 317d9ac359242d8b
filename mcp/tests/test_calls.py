"""The choke point: one row a call whatever comes of it, effect and row together, the right proved again around it."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from agents.actions import keys
from agents.models import Agent, Approval, Capabilities, FleetStop, Key
from agents.principals import BadKey
from duduclaw.lib import clock
from mcp import registry
from mcp.calls import Answer, CallRequest, call, cancel, pending
from mcp.errors import GateRefused, InvalidArguments, Refused
from mcp.models import AuditRow
from mcp.policy import Who
from mcp.refusals import REMOVED_TOOLS, permission_denied, removed_tool
from tests.build import Company, company, key
from tests.testtools import HOOKS, effects, leave, probe

pytestmark = [pytest.mark.django_db, pytest.mark.engines]


@pytest.fixture
def people() -> Company:
    made = company()
    made.tokens["client"] = key(made.space, "external", client_id="client", scopes_held=["wiki:write"])[1]
    return made


@pytest.fixture(autouse=True)
def tools() -> Iterator[None]:
    """Probes, and none of them does anything else when the test is over."""
    made = (
        probe("probe_write"), probe("probe_read", read_only=True), probe("probe_slow", slow=True),
        probe("probe_slow_read", slow=True, read_only=True),
    )  # fmt: skip
    with registry.temporarily(*made):
        yield
    HOOKS.clear()


def send(people: Company, person: str, name: str, arguments: dict[str, Any] | None = None, **request: Any) -> Answer:
    return call(CallRequest(lambda: people.who(person), name, arguments or {}, **request))


def rows() -> list[tuple[str, str, str]]:
    """(tool, outcome, reason) of every call on record."""
    found = AuditRow.objects.filter(stream="tool_calls").order_by("id")
    return list(found.values_list("tool", "outcome", "reason"))


def on_second_proof(people: Company, person: str, change: Callable[[], Any]) -> Callable[[], Who]:
    """A principal whose rights change after the gates were passed, before the effect."""
    proofs: list[Who] = []

    def prove() -> Who:
        if len(proofs) == 1:
            change()
        proofs.append(people.who(person))
        return proofs[-1]

    return prove


def test_a_success_is_one_row_with_its_effect(people: Company) -> None:
    answer = send(people, "owner", "probe_write", {"text": "words"}, request_id="r1", transport="ws")
    assert answer.structured == {"tool": "probe_write", "text": "words", "number": None}
    assert json.loads(answer.content[0]["text"]) == answer.structured and not answer.is_error
    row = AuditRow.objects.get()
    assert (row.tool, row.outcome, row.reason, row.agent) == ("probe_write", "ok", "", "owner")
    assert (row.request_id, row.transport, json.loads(row.arguments)) == ("r1", "ws", {"text": "words"})
    assert (json.loads(row.scopes_provided), row.key, row.workspace) == (
        ["admin"], people.who("owner").key, people.space.id,
    )  # fmt: skip
    assert effects() == ["probe_write"]


@pytest.mark.parametrize(
    ("raised", "outcome", "reason", "code"),
    [
        (Refused("already_claimed", "taken", target="T-1"), "denied", "already_claimed", "already_claimed"),
        (Refused("not_configured", "set it up", outcome="error"), "error", "not_configured", "not_configured"),
        (Refused("delegation_denied", "no", reason="owner_unknown"), "denied", "owner_unknown", "delegation_denied"),
        (
            InvalidArguments("Invalid parameter text: is odd", "text"),
            "invalid",
            "invalid_arguments",
            "invalid_arguments",
        ),
        (InvalidArguments("the two do not go together"), "invalid", "invalid_arguments", "invalid_arguments"),
        (GateRefused(permission_denied("probe_write", "x")), "denied", "permission_denied", "permission_denied"),
        (RuntimeError("secret words"), "error", "internal", "internal"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else "",
)
@pytest.mark.parametrize("name", ["probe_write", "probe_read", "probe_slow"])
def test_whatever_a_handler_raises_is_one_row_and_no_effect(
    people: Company, name: str, raised: Exception, outcome: str, reason: str, code: str
) -> None:
    def fail(call: Any) -> None:
        if name == "probe_write":
            leave(call)
        raise raised

    HOOKS[name] = fail
    answer = send(people, "owner", name)
    assert (answer.outcome, answer.code) == (outcome, code)
    assert rows() == [(name, outcome, reason)]
    assert effects() == []
    assert "secret words" not in repr(answer)
    if isinstance(raised, Refused):
        assert answer.is_error and answer.structured is not None and answer.structured["error"] == code
    else:
        assert answer.error is not None


def test_a_refusal_of_the_handler_names_its_target(people: Company) -> None:
    def fail(call: Any) -> None:
        raise Refused("already_claimed", "taken", target="T-1", holder="colleague")

    HOOKS["probe_write"] = fail
    answer = send(people, "owner", "probe_write")
    assert answer.structured == {"error": "already_claimed", "detail": "taken", "holder": "colleague"}
    assert json.loads(AuditRow.objects.get().details)["target"] == "T-1"


# ---- the eight removed names


@pytest.mark.parametrize("name", sorted(REMOVED_TOOLS))
@pytest.mark.parametrize("person", ["owner", "operator", "client"])
def test_a_removed_name_answers_with_its_replacement(people: Company, name: str, person: str) -> None:
    Capabilities.objects.filter(agent=people.owner).update(denied_tools=["*"])
    answer = send(people, person, name, {"confirm": "junk"})
    assert answer.is_error and answer.error is None
    assert answer.structured == {"error": "removed_tool", "detail": removed_tool(name)}
    assert rows() == [(name, "denied", "removed_tool")]


def test_a_removed_name_meets_the_gates_of_what_stands_still(people: Company) -> None:
    Agent.objects.filter(pk=people.owner.pk).update(status="paused")
    answer = send(people, "owner", "schedule_task")
    assert answer.error is not None and answer.error[2] == {
        "error": "agent_not_active", "gate": "G2", "tool": "schedule_task",
    }  # fmt: skip
    FleetStop.objects.create(
        workspace=people.space, scope="all", reason="test", stopped_by="operator", stopped_at=clock.now()
    )
    for person in ("owner", "client"):
        answer = send(people, person, "schedule_task")
        assert answer.error is not None and answer.error[2]["gate"] == "G1"
    assert send(people, "operator", "schedule_task").code == "removed_tool"


# ---- proved again


def test_W01_a_key_revoked_between_check_and_effect_does_nothing(people: Company) -> None:
    row = Key.objects.system().get(agent=people.owner)
    prove = on_second_proof(people, "owner", lambda: keys.revoke_key(row, by=people.who("operator")))
    with pytest.raises(BadKey) as caught:
        call(CallRequest(prove, "probe_write"))
    assert caught.value.reason == "revoked"
    assert rows() == [("probe_write", "denied", "key_revoked")]
    assert effects() == []


def test_a_list_that_closes_between_check_and_effect_refuses(people: Company) -> None:
    lists = Capabilities.objects.filter(agent=people.owner)
    prove = on_second_proof(people, "owner", lambda: lists.update(denied_tools=["probe_*"]))
    answer = call(CallRequest(prove, "probe_write"))
    assert (answer.outcome, answer.code) == ("denied", "denied_tools")
    assert rows() == [("probe_write", "denied", "denied_tools")] and effects() == []


def test_the_handler_sees_the_principal_as_it_stands(people: Company) -> None:
    seen: list[str] = []
    HOOKS["probe_write"] = lambda call: seen.append(call.who.department)
    prove = on_second_proof(people, "owner", lambda: Agent.objects.filter(pk=people.owner.pk).update(department="new"))
    assert call(CallRequest(prove, "probe_write")).outcome == "ok"
    assert seen == ["new"]


# ---- cancelled


class Switch:
    """A cancellation that a test throws."""

    def __init__(self) -> None:
        self.thrown = False

    def throw(self, call: Any = None) -> None:
        self.thrown = True

    def __call__(self) -> bool:
        return self.thrown


@pytest.mark.parametrize(
    ("name", "outcome", "reason", "stands"),
    [
        ("probe_write", "cancelled", "cancelled", []),
        ("probe_read", "cancelled", "cancelled", []),
        ("probe_slow_read", "cancelled", "cancelled", []),
        ("probe_slow", "ok", "cancelled_after_effect", ["probe_slow"]),
    ],
)
def test_P04_a_call_taken_back_while_it_runs_has_one_row(
    people: Company, name: str, outcome: str, reason: str, stands: list[str]
) -> None:
    switch = Switch()
    HOOKS[name] = switch.throw
    assert send(people, "owner", name, cancelled=switch).outcome == outcome
    assert rows() == [(name, outcome, reason)]
    assert effects() == stands


def test_P04_a_call_taken_back_before_it_starts_does_nothing(people: Company) -> None:
    switch = Switch()
    switch.throw()
    ran: list[Any] = []
    HOOKS["probe_write"] = ran.append
    assert send(people, "owner", "probe_write", cancelled=switch).outcome == "cancelled"
    assert rows() == [("probe_write", "cancelled", "cancelled")] and ran == []


# ---- what waits


def test_a_waiting_call_has_no_row_until_it_ends(people: Company) -> None:
    Capabilities.objects.filter(agent=people.owner).update(approval_required_tools=["probe_write"])
    request = CallRequest(lambda: people.who("owner"), "probe_write")
    parked = call(request).parked
    assert parked is not None and rows() == []
    answer = pending(request, parked)
    assert answer.is_error and answer.structured is not None
    assert (answer.code, answer.structured["approval_id"]) == ("approval_pending", parked.id)
    cancel(request)
    assert rows() == [("probe_write", "denied", "approval_pending"), ("probe_write", "cancelled", "cancelled")]


def test_a_wait_that_ends_after_its_key_is_written_down_all_the_same(people: Company) -> None:
    Capabilities.objects.filter(agent=people.owner).update(approval_required_tools=["probe_write"])
    request = CallRequest(lambda: people.who("owner"), "probe_write")
    parked = call(request).parked
    assert parked is not None
    keys.revoke_key(Key.objects.system().get(agent=people.owner), by=people.who("operator"))
    assert pending(request, parked).code == "approval_pending"
    assert AuditRow.objects.get(tool="probe_write").agent == "owner"


def test_an_approval_is_used_up_with_the_effect_and_only_then(people: Company) -> None:
    Capabilities.objects.filter(agent=people.owner).update(approval_required_tools=["probe_write"])
    parked = send(people, "owner", "probe_write").parked
    assert parked is not None
    Approval.objects.filter(pk=parked.id).update(status="approved")

    def fail(call: Any) -> None:
        raise Refused("stale", "changed meanwhile")

    HOOKS["probe_write"] = fail
    assert send(people, "owner", "probe_write").code == "stale"
    assert Approval.objects.system().get().consumed_at is None
    del HOOKS["probe_write"]
    assert send(people, "owner", "probe_write").outcome == "ok"
    assert Approval.objects.system().get().consumed_at is not None
    assert effects() == ["probe_write"]


# ---- effects outside the database


def test_an_effect_outside_is_announced_before_it_happens(people: Company) -> None:
    before: list[list[str]] = []
    HOOKS["probe_slow"] = lambda call: before.append(list(AuditRow.objects.values_list("reason", flat=True)))
    assert send(people, "owner", "probe_slow", request_id="r9").outcome == "ok"
    assert before == [["effect_intended"]]
    intent = json.loads(AuditRow.objects.get(stream="security").details)
    assert (intent["tool"], intent["request_id"]) == ("probe_slow", "r9")
    assert rows() == [("probe_slow", "ok", "")]


def test_a_failed_effect_outside_leaves_its_intent_and_one_row(people: Company) -> None:
    def fail(call: Any) -> None:
        raise RuntimeError

    HOOKS["probe_slow"] = fail
    assert send(people, "owner", "probe_slow").outcome == "error"
    assert AuditRow.objects.filter(stream="security").count() == 1
    assert rows() == [("probe_slow", "error", "internal")]


# ---- results


def test_a_result_over_the_limit_is_cut_and_says_so(people: Company) -> None:
    HOOKS["probe_read"] = lambda call: {"items": ['quoted "words"\n'] * 10_000}
    answer = send(people, "owner", "probe_read")
    assert answer.structured is not None and answer.structured["truncated"] is True
    assert answer.structured["total_characters"] > 45_000
    text = answer.content[0]["text"]
    assert json.loads(text) == answer.structured and 30_000 < len(text) <= 45_000


def test_names_in_the_record_are_cut(people: Company) -> None:
    assert send(people, "owner", "x" * 500).code == "unknown_tool"
    assert AuditRow.objects.get().tool == "x" * 64
