"""T19: what a person allowed runs once, for this agent and these arguments, in time. `confirm` is no approval."""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta

import pytest
import time_machine

from agents.actions import approvals
from agents.models import Approval, Capabilities
from mcp import registry
from mcp.calls import Answer, CallRequest, call
from mcp.errors import Refused
from tests.build import Company, company
from tests.tools import send_message, sent

NOW = datetime(2026, 3, 2, 9, tzinfo=UTC)
A = {"to": "#ops", "text": "A"}

pytestmark = pytest.mark.django_db


@pytest.fixture
def people() -> Iterator[Company]:
    """Whoever sends or purges must ask first; purge is destructive too."""
    purge = send_message("purge", destructive=True)
    with registry.temporarily(send_message(), purge), time_machine.travel(NOW, tick=False):
        made = company()
        Capabilities.objects.update(approval_required_tools=["send_message", "purge"])
        yield made


def ask(people: Company, who: str, arguments: Mapping[str, object], tool: str = "send_message") -> Answer:
    return call(CallRequest(lambda: people.who(who), tool, dict(arguments)))


def approve(people: Company, answer: Answer) -> Approval:
    assert answer.parked is not None
    row = Approval.objects.system().get(pk=answer.parked.id)
    return approvals.decide(row, by=people.who("operator"), decision="approve")


def test_T19_an_approval_lets_exactly_one_call_through(people: Company) -> None:
    approve(people, ask(people, "owner", A))
    assert ask(people, "owner", A).outcome == "ok"
    assert ask(people, "owner", A).outcome == "parked"
    assert sent() == ["A"]


@pytest.mark.parametrize(
    ("who", "tool", "arguments"),
    [
        ("owner", "send_message", {"to": "#ops", "text": "B"}),
        ("owner", "send_message", {"to": "#all", "text": "A"}),
        ("owner", "purge", {**A, "confirm": True}),
        ("colleague", "send_message", A),
        ("stranger", "send_message", A),
    ],
)
def test_T19_another_call_waits_for_an_answer_of_its_own(
    people: Company, who: str, tool: str, arguments: dict[str, object]
) -> None:
    approve(people, ask(people, "owner", A))
    assert ask(people, who, arguments, tool).outcome == "parked"
    assert sent() == []


def test_T19_an_approval_that_was_not_used_in_time_is_none(people: Company) -> None:
    approve(people, ask(people, "owner", A))
    with time_machine.travel(NOW + approvals.USABLE + timedelta(seconds=1), tick=False):
        assert ask(people, "owner", A).outcome == "parked"
    assert sent() == []


def test_T19_confirm_is_a_hint_and_replaces_no_person(people: Company) -> None:
    assert ask(people, "owner", {**A, "confirm": True}, "purge").outcome == "parked"
    assert sent() == []


@pytest.mark.parametrize("confirm", [None, False, "true", 1, "yes", [True]])
def test_T19_only_json_true_confirms(people: Company, confirm: object) -> None:
    answer = ask(people, "owner", {**A, "confirm": confirm}, "purge")
    assert answer.error is not None and answer.error[:2] == (
        -32602,
        "confirm: true required for destructive operations",
    )


def test_T19_an_agent_answers_no_question_its_own_or_another_s(people: Company) -> None:
    waiting = ask(people, "owner", A)
    assert waiting.parked is not None
    for name in ("owner", "colleague", "stranger"):
        decision = {"approval_id": waiting.parked.id, "decision": "approve"}
        assert ask(people, name, decision, "tool_approve").code == "human_only"
    row = Approval.objects.system().get(pk=waiting.parked.id)
    with pytest.raises(Refused) as caught:
        approvals.decide(row, by=people.who("owner"), decision="approve")
    assert (caught.value.code, sent()) == ("own_request", [])
