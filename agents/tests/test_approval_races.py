"""Several at once: one decides, one uses, one asks."""

from functools import partial

import pytest

from agents.actions import approvals, policy
from agents.models import Agent, Approval, Grant
from agents.tests.asking import ask_for, asking_company, decide, question
from mcp import registry
from mcp.calls import Answer, CallRequest, call
from mcp.errors import Refused
from tasks.tests.board import card, race
from tests.build import Company, agent, key
from tests.testtools import effects, probe

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.engines]


@pytest.fixture
def people() -> Company:
    """The owner must ask for probe_ask, and its probe_scoped needs a grant."""
    return asking_company()


def test_of_deciders_at_once_one_wins(people: Company) -> None:
    deciders = [("operator", "approve"), ("manager", "approve"), ("operator", "deny"), ("manager", "deny")]
    for place in range(8):
        task = card(people.space, assigned_to=people.owner)
        ask_for(people, task_id=task.id, reason=f"round {place}")
        results = race(
            partial(approvals.decide, question(), by=people.who(by), decision=decision) for by, decision in deciders
        )
        won = [result for result in results if isinstance(result, Approval)]
        lost = [result.code for result in results if isinstance(result, Refused)]
        assert len(won) == 1 and lost == ["already_decided"] * 3, results
        assert Grant.objects.system().filter(task_id=task.id).count() == (question().status == "approved")


def test_V04_of_calls_at_once_one_uses_the_approval(people: Company) -> None:
    with registry.temporarily(probe("probe_ask")):
        for place in range(8):
            assert send(people, place).parked is not None
            decide(people)
            answers = race(partial(send, people, place) for _ in range(4))
            assert sum(answer.outcome == "ok" for answer in answers) == 1, answers
            assert all(answer.parked or answer.code in ("", "approval_used") for answer in answers)
            assert len(effects()) == place + 1
            decide_all(people)


def send(people: Company, place: int) -> Answer:
    """The approval-listed tool, which is registered."""
    return call(CallRequest(lambda: people.who("owner"), "probe_ask", {"text": f"round {place}"}))


def decide_all(people: Company) -> None:
    """Deny what the losers asked, so that the next round starts clean."""
    for row in Approval.objects.system().filter(status="pending"):
        approvals.decide(row, by=people.who("operator"), decision="deny")


def test_the_same_call_at_once_asks_one_question(people: Company) -> None:
    with registry.temporarily(probe("probe_ask")):
        for place in range(8):
            answers = race(partial(send, people, place) for _ in range(4))
            assert len({answer.parked.id for answer in answers if answer.parked}) == 1
    assert Approval.objects.system().count() == 8


def test_a_denial_in_the_policy_and_an_approval_at_once(people: Company) -> None:
    """Either the question fell, or the grant was minted and is beaten by the list; never a half."""
    for place in range(8):
        made = agent(people.space, f"racer-{place}", scoped_tools=["probe_scoped"])
        people.tokens[made.name] = key(people.space, "agent", agent=made)[1]
        ask_for(people, made.name)
        row = question()
        changes = {"capabilities": {"denied_tools": ["probe_scoped"]}}
        race(
            [
                partial(approvals.decide, row, by=people.who("manager"), decision="approve"),
                partial(policy.update_agent, made, by=people.who("operator"), changes=changes),
            ]
        )
        row.refresh_from_db()
        assert row.status in ("void", "approved")
        assert Grant.objects.system().filter(agent=made).count() == (row.status == "approved")
        with registry.temporarily(probe("probe_scoped")):
            assert call(CallRequest(partial(people.who, made.name), "probe_scoped")).code == "denied_tools"
    assert Agent.objects.system().filter(name__startswith="racer-").count() == 8
