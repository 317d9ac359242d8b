"""How work ends, and that its grants end with it."""

from datetime import timedelta
from typing import Any

import pytest

from agents.actions.grants import mint
from agents.models import Capabilities, Grant
from agents.principals import who_for_key
from duduclaw.lib import clock
from mcp.errors import InvalidArguments, Refused
from tasks.actions import finish
from tasks.models import Activity, Task
from tasks.tests.board import OK, card, snapshot, via_mcp
from tests.build import Company, company

pytestmark = pytest.mark.django_db
UNFINISHED = ["todo", "pending", "in_progress", "blocked", "review", "revising", "needs_human"]
FINISHED = ["done", "failed", "cancelled", "stopped"]


@pytest.fixture
def people() -> Company:
    """owner and colleague related, stranger not, operator."""
    return company()


def now_of(task: Task) -> Task:
    return Task.objects.system().get(pk=task.pk)


def leased(people: Company, **over: Any) -> Task:
    """A durable task that owner holds under a living lease."""
    columns = {
        "assigned_to": people.owner,
        "claimed_by": people.owner,
        "status": "in_progress",
        "durable": True,
        "lease_expires_at": clock.now() + timedelta(seconds=300),
    }
    return card(people.space, **{**columns, **over})


@pytest.mark.parametrize(("tool", "rest"), [("tasks_complete", {}), ("tasks_block", {"reason": "stuck"})])
@pytest.mark.parametrize(
    ("person", "code"),
    [
        ("owner", OK),
        ("colleague", "already_claimed"),
        ("stranger", "delegation_denied"),
        ("operator", "already_claimed"),
    ],
)
def test_while_a_lease_lives_only_its_holder_ends_the_work(
    people: Company, tool: str, rest: dict[str, str], person: str, code: str
) -> None:
    task = leased(people)
    before = snapshot()
    assert via_mcp(people, person, tool, {"task_id": task.id, **rest}).code == code
    assert (snapshot() == before) == (code != OK)


@pytest.mark.parametrize("person", ["owner", "colleague", "operator"])
def test_without_a_living_lease_the_related_may(people: Company, person: str) -> None:
    task = leased(people, lease_expires_at=clock.now() - timedelta(seconds=1))
    assert via_mcp(people, person, "tasks_complete", {"task_id": task.id}).code == OK


def test_completion_keeps_the_summary_and_clears_the_lease(people: Company) -> None:
    task = leased(people)
    body = via_mcp(people, "owner", "tasks_complete", {"task_id": task.id, "summary": "Wrote it"}).body
    assert (body["status"], body["summary"], body["lease_expires_at"]) == ("done", "Wrote it", None)
    done = now_of(task)
    assert done.finished_at is not None
    row = Activity.objects.system().get()
    assert (row.event_type, row.summary) == ("task_completed", "Wrote it")


def test_completion_in_goal_mode_goes_to_review(people: Company) -> None:
    task = leased(people, goal_mode=True)
    for _ in range(2):
        body = via_mcp(people, "owner", "tasks_complete", {"task_id": task.id, "summary": "Done"}).body
        assert (body["status"], body["lease_expires_at"]) == ("review", None)
    assert now_of(task).finished_at is None
    assert Activity.objects.system().count() == 1


def test_a_repeat_never_overwrites(people: Company) -> None:
    task = card(people.space, assigned_to=people.owner)
    via_mcp(people, "owner", "tasks_complete", {"task_id": task.id, "summary": "first"})
    before = snapshot()
    for person in ("owner", "colleague", "operator"):
        assert via_mcp(people, person, "tasks_complete", {"task_id": task.id, "summary": "second"}).code == OK
    assert snapshot() == before


@pytest.mark.parametrize("status", ["cancelled", "failed", "stopped", "needs_human"])
@pytest.mark.parametrize("person", ["owner", "operator"])
def test_what_has_ended_otherwise_is_not_completed(people: Company, person: str, status: str) -> None:
    task = card(people.space, assigned_to=people.owner, status=status)
    assert via_mcp(people, person, "tasks_complete", {"task_id": task.id}).code == "wrong_status"
    assert now_of(task).status == status


@pytest.mark.parametrize("status", ["done", "cancelled", "failed", "stopped", "needs_human", "review"])
def test_what_does_not_run_is_not_blocked(people: Company, status: str) -> None:
    task = card(people.space, assigned_to=people.owner, status=status)
    assert via_mcp(people, "owner", "tasks_block", {"task_id": task.id, "reason": "x"}).code == "wrong_status"


@pytest.mark.parametrize("status", ["todo", "pending", "in_progress", "revising"])
def test_a_block_stands_on_the_card_and_its_holder_may_still_complete(people: Company, status: str) -> None:
    task = leased(people, status=status)
    for _ in range(2):
        body = via_mcp(people, "owner", "tasks_block", {"task_id": task.id, "reason": "no access"}).body
        assert (body["status"], body["blocked_reason"], body["lease_expires_at"]) == ("blocked", "no access", None)
    assert Activity.objects.system().count() == 1
    assert via_mcp(people, "owner", "tasks_claim", {"task_id": task.id}).code == "wrong_status"
    assert via_mcp(people, "owner", "tasks_complete", {"task_id": task.id}).code == OK
    assert now_of(task).blocked_reason == ""


def test_a_task_that_waits_is_not_completed(people: Company) -> None:
    first = card(people.space)
    task = card(people.space, assigned_to=people.owner, status="pending")
    task.depends_on.add(first)
    assert via_mcp(people, "owner", "tasks_complete", {"task_id": task.id}).code == "dependencies_unmet"
    assert now_of(task).status == "pending"


# verb -> (its statuses, where it leads)
VERBS: dict[str, tuple[list[str], str]] = {
    "cancel": (UNFINISHED, "cancelled"),
    "accept": (["review", "needs_human"], "done"),
    "reject": (["review"], "revising"),
    "retry": (["needs_human", "blocked", "failed", "cancelled"], "todo"),
    "escalate": (["pending", "in_progress", "review", "revising", "blocked"], "needs_human"),
}
WORDS = {"reject": {"feedback": "Sources?"}, "escalate": {"reason": "Budget"}}


def decide(people: Company, person: str, verb: str, task: Task) -> Task:
    action = getattr(finish, f"{verb}_task")
    result: Task = action(task, by=who_for_key(people.tokens[person]), **WORDS.get(verb, {}))
    return result


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("status", UNFINISHED + FINISHED)
def test_what_people_may_do_from_where(people: Company, verb: str, status: str) -> None:
    task = card(people.space, assigned_to=people.owner, status=status)
    starts, to = VERBS[verb]
    before = snapshot()
    if status in starts:
        assert decide(people, "operator", verb, task).status == to
        assert now_of(task).status == to
        assert Activity.objects.system().filter(task=task, actor="operator").count() == 1
    else:
        with pytest.raises(Refused) as refusal:
            decide(people, "operator", verb, task)
        assert refusal.value.code == "wrong_status"
        assert snapshot() == before


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("person", ["owner", "colleague", "stranger"])
def test_agents_decide_nothing(people: Company, verb: str, person: str) -> None:
    task = card(people.space, assigned_to=people.owner, status="review")
    before = snapshot()
    with pytest.raises(Refused) as refusal:
        decide(people, person, verb, task)
    assert refusal.value.code == "human_only"
    assert snapshot() == before


def test_a_rejection_frees_the_task_and_shows_why(people: Company) -> None:
    task = leased(people, goal_mode=True, status="review")
    decide(people, "operator", "reject", task)
    again = via_mcp(people, "owner", "tasks_claim", {"task_id": task.id}).body
    assert (again["status"], again["claimed_by"], again["blocked_reason"]) == ("in_progress", "owner", "Sources?")
    with pytest.raises(InvalidArguments):
        finish.reject_task(task, by=who_for_key(people.tokens["operator"]), feedback=" ")


def test_a_retry_opens_a_durable_task_again(people: Company) -> None:
    task = leased(people, status="failed", retries=3, pooled=True)
    decide(people, "operator", "retry", task)
    again = now_of(task)
    assert (again.status, again.holder, again.assigned_to, again.retries) == ("pending", "", None, 3)
    assert again.finished_at is None


def test_a_finished_goal_is_followed_up_and_a_plain_task_is_not(people: Company) -> None:
    assert decide(people, "operator", "retry", card(people.space, goal_mode=True, status="done")).status == "pending"
    with pytest.raises(Refused):
        decide(people, "operator", "retry", card(people.space, status="done"))


@pytest.mark.parametrize(
    ("end", "lives"),
    [
        ("complete", False),
        ("review", True),
        ("reject", True),
        ("block", True),
        ("cancel", False),
        ("accept", False),
        ("escalate", False),
    ],
)
def test_grants_end_where_the_task_ends(people: Company, end: str, lives: bool) -> None:
    status = "review" if end in ("reject", "accept") else "in_progress"
    task = leased(people, status=status, goal_mode=end in ("review", "reject", "accept"))
    operator = who_for_key(people.tokens["operator"])
    mint(people.owner, "tasks_list", task_id=task.id, source=Grant.Source.OPERATOR, by=operator)
    other = mint(people.owner, "activity_list", source=Grant.Source.OPERATOR, by=operator)
    if end in ("complete", "review"):
        via_mcp(people, "owner", "tasks_complete", {"task_id": task.id})
    elif end == "block":
        via_mcp(people, "owner", "tasks_block", {"task_id": task.id, "reason": "x"})
    else:
        decide(people, "operator", end, task)
    grant = Grant.objects.system().get(task_id=task.id)
    assert (grant.revoked_at is None) == lives
    assert grant.revoke_reason == ("" if lives else "task_phase_end")
    other.refresh_from_db()
    assert other.revoked_at is None


def test_the_call_that_ends_the_task_may_stand_on_its_grant(people: Company) -> None:
    Capabilities.objects.filter(agent=people.owner).update(scoped_tools=["tasks_complete"])
    task = card(people.space, tags=["grant:tasks_complete"])
    assert via_mcp(people, "owner", "tasks_complete", {"task_id": task.id}).code == "capability_grant_missing"
    via_mcp(people, "owner", "tasks_claim", {"task_id": task.id})
    assert via_mcp(people, "owner", "tasks_complete", {"task_id": task.id}).code == OK
    assert now_of(task).status == "done"
    assert not Grant.objects.system().filter(revoked_at=None).exists()
