"""Rounds and trees: which task a new one hangs under, how wide and deep a tree grows, and what a stop closes."""

from typing import Any

import pytest

from tasks.actions.parents import DEEPEST, MOST_CHILDREN
from tasks.models import Task
from tasks.tests.board import OK, card, snapshot, via_mcp
from tests.build import Company, company, key

pytestmark = pytest.mark.django_db
AGENTS = ("owner", "colleague", "stranger")


@pytest.fixture
def people() -> Company:
    """owner and colleague related, stranger not, operator."""
    return company()


def create(people: Company, person: str, round_task: str | None = None, **arguments: Any) -> Any:
    return via_mcp(people, person, "tasks_create", {"title": "Part", **arguments}, round_task=round_task)


@pytest.mark.parametrize("person", [*AGENTS, "operator"])
@pytest.mark.parametrize("sent", ["", " ", "T 1", "T-1\n", "a" * 65, "é", "T-1;"])
def test_a_malformed_round_refuses_the_creation(people: Company, person: str, sent: str) -> None:
    assert create(people, person, sent).code == "round_invalid"
    assert Task.objects.system().count() == 0


@pytest.mark.parametrize("person", [*AGENTS, "operator"])
def test_a_round_that_cannot_be_read_refuses_the_creation(people: Company, person: str) -> None:
    elsewhere = card(company("other").space)
    for sent in ("T-99", elsewhere.id, "01890000-0000-7000-8000-000000000000"):
        assert create(people, person, sent).code == "round_unreadable"


def run(people: Company) -> tuple[Task, Task, Task]:
    """An occurrence of owner, a task below it, and one outside."""
    root = card(people.space, assigned_to=people.owner, claimed_by=people.owner, status="in_progress", occurrence=True)
    below = card(people.space, assigned_to=people.owner, parent=root)
    return root, below, card(people.space, assigned_to=people.owner)


def test_in_a_round_of_a_run_the_rounds_task_is_the_default_and_the_limit(people: Company) -> None:
    root, below, outside = run(people)
    for current in (root, below):
        assert create(people, "owner", current.id).body["parent_task_id"] == current.id
    assert create(people, "owner", f"T-{root.number}").body["parent_task_id"] == root.id
    assert create(people, "owner", root.id, parent_task_id=below.id).body["parent_task_id"] == below.id
    before = snapshot()
    assert create(people, "owner", root.id, parent_task_id=outside.id).code == "outside_round"
    assert create(people, "owner", below.id, parent_task_id=root.id).code == "outside_round"
    assert snapshot() == before


def test_in_a_round_a_given_parent_still_needs_a_relationship(people: Company) -> None:
    root, _, _ = run(people)
    strange = card(people.space, assigned_to=people.stranger, parent=root)
    assert create(people, "owner", root.id, parent_task_id=strange.id).code == "delegation_denied"


def test_a_goal_hangs_under_the_round_as_well(people: Company) -> None:
    root, _, outside = run(people)
    assert create(people, "owner", root.id, kind="goal", parent_task_id=outside.id).code == "outside_round"
    assert create(people, "owner", root.id, kind="goal").code == "not_configured"


@pytest.mark.parametrize("person", ["colleague", "stranger"])
def test_the_round_of_another_is_none(people: Company, person: str) -> None:
    root, _, _ = run(people)
    assert create(people, person, root.id).body["parent_task_id"] is None


def test_an_ordinary_round_gives_no_default(people: Company) -> None:
    ordinary = card(people.space, assigned_to=people.owner, goal_mode=True)
    assert create(people, "owner", ordinary.id).body["parent_task_id"] is None
    other = card(people.space, assigned_to=people.owner)
    assert create(people, "owner", ordinary.id, parent_task_id=other.id).body["parent_task_id"] == other.id


def test_an_operator_keeps_the_parent_it_asked_for(people: Company) -> None:
    root, _, outside = run(people)
    assert create(people, "operator", root.id).body["parent_task_id"] is None
    assert create(people, "operator", root.id, parent_task_id=outside.id).body["parent_task_id"] == outside.id


def test_a_run_key_is_bound_to_its_round(people: Company) -> None:
    root, _, outside = run(people)
    people.tokens["run"] = key(people.space, "run", agent=people.owner, task_id=root.id)[1]
    people.tokens["loose"] = key(people.space, "run", agent=people.owner)[1]
    for sent in (None, root.id, f"T-{root.number}"):
        assert create(people, "run", sent).body["parent_task_id"] == root.id
    assert create(people, "run", outside.id).code == "round_mismatch"
    assert create(people, "loose", root.id).code == "round_mismatch"
    assert create(people, "loose").body["parent_task_id"] is None
    Task.objects.system().filter(parent=root).update(parent=None)
    Task.objects.system().filter(pk=root.pk).delete()
    assert create(people, "run").code == "round_unreadable"


def test_K04_two_hundred_unfinished_children_are_the_most(people: Company) -> None:
    parent = card(people.space, assigned_to=people.owner)
    for _ in range(MOST_CHILDREN - 1):
        card(people.space, assigned_to=people.owner, parent=parent)
    assert create(people, "owner", parent_task_id=parent.id).code == OK
    before = snapshot()
    for person in ("owner", "colleague"):
        refused = create(people, person, parent_task_id=parent.id)
        assert (refused.code, refused.body["limit"]) == ("too_many_children", 200)
        assert "200" in refused.body["detail"]
    assert snapshot() == before
    assert create(people, "owner", parent_task_id=parent.id, schedule="0 9 * * *").code == "not_configured"
    assert create(people, "operator", parent_task_id=parent.id).code == OK
    for ended, code in ((1, "too_many_children"), (2, OK)):
        child = Task.objects.system().filter(parent=parent).open().order_by("number").first()
        assert via_mcp(people, "owner", "tasks_complete", {"task_id": child.id}).code == OK, ended
        assert create(people, "owner", parent_task_id=parent.id).code == code


def nest(people: Company, depth: int) -> Task:
    """The lowest of a chain of `depth` tasks."""
    task = card(people.space, assigned_to=people.owner)
    for _ in range(depth - 1):
        task = card(people.space, assigned_to=people.owner, parent=task)
    return task


@pytest.mark.parametrize("person", ["owner", "colleague", "operator"])
def test_sixty_four_deep_is_the_most(people: Company, person: str) -> None:
    last = nest(people, DEEPEST - 1)
    lowest = create(people, person, parent_task_id=last.id, assigned_to="owner")
    assert lowest.code == OK
    before = snapshot()
    assert create(people, "owner", parent_task_id=lowest.body["id"]).code == "too_deep"
    assert create(people, "operator", parent_task_id=lowest.body["id"]).code == "too_deep"
    assert snapshot() == before


@pytest.mark.parametrize("person", ["owner", "colleague", "operator"])
def test_nothing_grows_or_moves_under_a_stopped_root(people: Company, person: str) -> None:
    root = card(people.space, assigned_to=people.owner, status="stopped")
    middle = card(people.space, assigned_to=people.owner, status="done", parent=root)
    leaf = card(people.space, assigned_to=people.owner, parent=middle, status="pending")
    before = snapshot()
    for parent in (root, middle, leaf):
        assert create(people, person, parent_task_id=parent.id).code == "stopped_root"
    for tool, rest in (("tasks_claim", {}), ("tasks_complete", {}), ("tasks_block", {"reason": "x"})):
        assert via_mcp(people, person, tool, {"task_id": leaf.id, **rest}).code == "stopped_root"
    assert snapshot() == before
