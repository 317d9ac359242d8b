"""Many callers at one barrier, on SQLite and on PostgreSQL: one winner, and nothing half done."""

from collections import Counter
from functools import partial

import pytest

from agents.actions.grants import mint
from agents.models import Capabilities, Grant
from agents.principals import forget
from tasks.actions.claim import claim_task
from tasks.actions.parents import MOST_CHILDREN
from tasks.actions.sweep import reclaim
from tasks.models import Activity, Task
from tasks.tests.board import OK, Outcome, card, race, via_mcp
from tests.build import Company, agent, company, key

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.engines]


@pytest.fixture
def people() -> Company:
    """owner and colleague related, stranger not, operator; nothing is remembered of the last test's database."""
    forget()
    return company()


def crowd(people: Company, size: int) -> list[str]:
    """Names of `size` agents of five departments, each with a key."""
    names = [f"racer-{place}" for place in range(size)]
    for place, name in enumerate(names):
        made = agent(people.space, name, department=f"d{place % 5}")
        people.tokens[name] = key(people.space, "agent", agent=made)[1]
    return names


def claim_by_all(people: Company, names: list[str], task: Task) -> list[Outcome]:
    return race([partial(via_mcp, people, name, "tasks_claim", {"task_id": task.id}) for name in names])


def check_round(people: Company, names: list[str], task: Task) -> str:
    """One success, losers that name the winner, one row of claim, a repeat that changes nothing; the winner."""
    outcomes = claim_by_all(people, names, task)
    codes = Counter(outcome.code for outcome in outcomes)
    assert codes == {OK: 1, "already_claimed": len(names) - 1}, outcomes
    winner = names[[outcome.code for outcome in outcomes].index(OK)]
    assert {outcome.body["holder"] for outcome in outcomes if outcome.code != OK} == {winner}
    assert via_mcp(people, winner, "tasks_claim", {"task_id": task.id}).body["claimed_by"] == winner
    rows = Activity.objects.system().filter(task=task, event_type="task_claimed").values_list("actor", flat=True)
    assert list(rows) == [winner]
    stored = Task.objects.system().get(pk=task.pk)
    assert (stored.holder, stored.claimed_by.name, stored.status) == (winner, winner, "in_progress")
    return winner


@pytest.mark.parametrize("status", ["todo", "pending"])
def test_K01_one_winner(people: Company, status: str) -> None:
    names = crowd(people, 8)
    winners = [check_round(people, names, card(people.space, status=status)) for _ in range(50)]
    assert len(winners) == 50


def test_T20_fifty_agents_claim_one_task(people: Company) -> None:
    names = crowd(people, 50)
    for _ in range(4):
        check_round(people, names, card(people.space))


@pytest.mark.long
def test_T20_fifty_agents_claim_one_task_two_hundred_times(people: Company) -> None:
    names = crowd(people, 50)
    for _ in range(200):
        check_round(people, names, card(people.space))


def test_the_compare_and_set_alone_has_one_winner(people: Company) -> None:
    """Without the choke point's transaction around it."""
    names = crowd(people, 8)
    for _ in range(20):
        task = card(people.space, status="pending")
        results = race([partial(claim_task, task.id, by=people.who(name)) for name in names])
        assert sum(isinstance(result, Task) for result in results) == 1, results


def test_a_lapsed_lease_has_one_new_holder(people: Company) -> None:
    names = crowd(people, 8)
    for _ in range(10):
        task = card(people.space, status="pending")
        check_round(people, names, task)
        Task.objects.system().filter(pk=task.pk).update(lease_expires_at="2026-01-01T00:00:00Z")
        outcomes = claim_by_all(people, names, task)
        assert Counter(outcome.code for outcome in outcomes) == {OK: 1, "already_claimed": 7}, outcomes


def test_a_takeover_and_the_sweep_do_not_both_happen(people: Company) -> None:
    for _ in range(10):
        task = card(people.space, status="pending")
        via_mcp(people, "stranger", "tasks_claim", {"task_id": task.id})
        Task.objects.system().filter(pk=task.pk).update(lease_expires_at="2026-01-01T00:00:00Z")
        lease = Task.objects.system().get(pk=task.pk).lease_expires_at
        race(
            [
                partial(via_mcp, people, "owner", "tasks_claim", {"task_id": task.id}),
                partial(reclaim, task.id, lease),
                partial(via_mcp, people, "colleague", "tasks_claim", {"task_id": task.id}),
            ]
        )
        stored = Task.objects.system().get(pk=task.pk)
        assert stored.holder in ("owner", "colleague", "")
        assert (stored.status == "in_progress") == bool(stored.holder)
        assert stored.retries <= 1


def test_a_completion_and_a_takeover_do_not_both_happen(people: Company) -> None:
    for _ in range(10):
        task = card(people.space, status="pending")
        via_mcp(people, "stranger", "tasks_claim", {"task_id": task.id})
        Task.objects.system().filter(pk=task.pk).update(lease_expires_at="2026-01-01T00:00:00Z")
        done, taken = race(
            [
                partial(via_mcp, people, "stranger", "tasks_complete", {"task_id": task.id}),
                partial(via_mcp, people, "owner", "tasks_claim", {"task_id": task.id}),
            ]
        )
        stored = Task.objects.system().get(pk=task.pk)
        assert (done.code, taken.code) in ((OK, "delegation_denied"), (OK, "stale"), ("claim_lost", OK))
        assert (stored.status, stored.holder) == (("done", "stranger") if done.code == OK else ("in_progress", "owner"))


def test_K04_the_last_place_under_a_parent_goes_to_one(people: Company) -> None:
    parent = card(people.space, assigned_to=people.owner)
    for _ in range(MOST_CHILDREN - 1):
        card(people.space, assigned_to=people.owner, parent=parent)
    arguments = {"title": "Last", "parent_task_id": parent.id}
    outcomes = race([partial(via_mcp, people, "owner", "tasks_create", arguments) for _ in range(8)])
    assert Counter(outcome.code for outcome in outcomes) == {OK: 1, "too_many_children": 7}


def test_two_dependencies_at_once_make_no_circle(people: Company) -> None:
    for _ in range(10):
        first, second = (card(people.space, assigned_to=people.owner) for _ in range(2))
        outcomes = race(
            [
                partial(via_mcp, people, "owner", "tasks_update", {"task_id": first.id, "depends_on": [second.id]}),
                partial(via_mcp, people, "owner", "tasks_update", {"task_id": second.id, "depends_on": [first.id]}),
            ]
        )
        assert Counter(outcome.code for outcome in outcomes) == {OK: 1, "dependency_cycle": 1}


def test_numbers_given_at_once_have_no_gaps_and_no_twins(people: Company) -> None:
    names = crowd(people, 8)
    outcomes = race([partial(via_mcp, people, name, "tasks_create", {"title": name}) for name in names])
    assert sorted(outcome.body["number"] for outcome in outcomes) == [f"T-{n}" for n in range(1, 9)]


def test_an_end_and_a_granted_call_on_the_same_task_do_not_block_each_other(people: Company) -> None:
    Capabilities.objects.filter(agent=people.colleague).update(scoped_tools=["tasks_update"])
    for _ in range(20):
        task = card(people.space, assigned_to=people.colleague)
        mint(people.colleague, "tasks_update", task_id=task.id, source="operator", by=people.who("operator"))
        done, changed = race(
            [
                partial(via_mcp, people, "owner", "tasks_complete", {"task_id": task.id}),
                partial(via_mcp, people, "colleague", "tasks_update", {"task_id": task.id, "title": "New"}),
            ]
        )
        assert done.code == OK
        assert changed.code in (OK, "grant_revoked", "capability_grant_missing")
        assert not Grant.objects.system().filter(task_id=task.id, revoked_at=None).exists()
