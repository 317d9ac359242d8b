"""Changes of fields: what is frozen, what is reserved, and that nothing is half applied."""

from typing import Any

import pytest

from agents.principals import who_for_key
from mcp.errors import InvalidArguments, Refused
from tasks.actions.update import update_task
from tasks.models import Activity, Task
from tasks.tests.board import OK, card, snapshot, via_mcp
from tests.build import Company, company

pytestmark = pytest.mark.django_db
INVALID, FROZEN, RESERVED = "invalid_arguments", "goal_contract_frozen", "reserved_tag_change"


@pytest.fixture
def people() -> Company:
    """owner and colleague related, stranger not, operator."""
    return company()


def change(people: Company, person: str, task: Task, **fields: Any) -> str:
    return via_mcp(people, person, "tasks_update", {"task_id": task.id, **fields}).code


@pytest.mark.parametrize(
    ("fields", "agent", "person"),
    [
        ({"title": "New"}, FROZEN, OK),
        ({"description": "New"}, FROZEN, OK),
        ({"acceptance_criteria": "None"}, FROZEN, FROZEN),
        ({"priority": "high"}, OK, OK),
        ({"priority": "high", "title": "New"}, FROZEN, OK),
    ],
)
@pytest.mark.parametrize("who", ["owner", "colleague", "stranger", "operator"])
def test_a_goals_contract_is_frozen(people: Company, who: str, fields: dict[str, Any], agent: str, person: str) -> None:
    task = card(people.space, assigned_to=people.owner, goal_mode=True, status="pending", acceptance_criteria="All")
    before = snapshot()
    expected = {"operator": person, "stranger": "delegation_denied"}.get(who, agent)
    assert change(people, who, task, **fields) == expected
    assert (snapshot() == before) == (expected != OK)


def test_a_plain_tasks_criteria_stay_too(people: Company) -> None:
    task = card(people.space, assigned_to=people.owner)
    assert change(people, "owner", task, title="New") == OK
    assert change(people, "owner", task, acceptance_criteria="x") == FROZEN


@pytest.mark.parametrize(
    ("tags", "expected"),
    [
        ("a, grant:x, outcome:y, grant:x", OK),
        ("grant:x,outcome:y,grant:x,b,my-grant:z,auto-research-2,Grant:z", OK),
        ("outcome:y, grant:x, grant:x", RESERVED),
        ("grant:x, outcome:y", RESERVED),
        ("grant:x, outcome:y, grant:x, grant:z", RESERVED),
        ("grant:x, outcome:y, grant:x, auto-research", RESERVED),
        ("", RESERVED),
    ],
)
@pytest.mark.parametrize("who", ["owner", "colleague", "stranger", "operator"])
def test_reserved_tags_keep_their_order_and_number(people: Company, who: str, tags: str, expected: str) -> None:
    task = card(people.space, assigned_to=people.owner, tags=["grant:x", "a", "outcome:y", "grant:x"])
    before = snapshot()
    wanted = {"operator": OK, "stranger": "delegation_denied"}.get(who, expected)
    assert change(people, who, task, title="New", tags=tags) == wanted
    assert (snapshot() == before) == (wanted != OK)


def test_the_last_of_many_fields_can_refuse_the_whole_call(people: Company) -> None:
    task = card(people.space, assigned_to=people.owner)
    before = snapshot()
    assert change(people, "owner", task, title="New", priority="low", depends_on=["T-9"]) == INVALID
    assert change(people, "owner", task, title="New", assigned_to="stranger") == "delegation_denied"
    assert snapshot() == before


def test_a_change_has_one_line_and_a_repeat_none(people: Company) -> None:
    task = card(people.space, assigned_to=people.owner)
    for _ in range(2):
        assert change(people, "owner", task, title="New", tags="a", priority="high") == OK
    row = Activity.objects.system().get()
    assert (row.event_type, row.metadata) == ("task_updated", {"fields": ["priority", "tags", "title"]})
    task.refresh_from_db()
    assert (task.title, task.tags, task.priority, task.version) == ("New", ["a"], "high", 2)


@pytest.mark.parametrize(("length", "code"), [(0, INVALID), (1, OK), (200, OK), (201, INVALID)])
def test_titles_keep_their_limits(people: Company, length: int, code: str) -> None:
    assert change(people, "owner", card(people.space, assigned_to=people.owner), title="x" * length) == code


def test_a_new_assignee_is_told_and_the_claim_stays(people: Company) -> None:
    task = card(people.space, assigned_to=people.owner, claimed_by=people.owner, status="in_progress")
    assert change(people, "owner", task, assigned_to="colleague") == OK
    task.refresh_from_db()
    assert (task.assigned_to, task.claimed_by) == (people.colleague, people.owner)
    assert Activity.objects.system().filter(event_type="task_assigned").count() == 1


def test_what_a_person_holds_is_not_taken_by_its_creator(people: Company) -> None:
    task = card(people.space, creator=people.owner, holder="operator", status="in_progress")
    assert change(people, "owner", task, assigned_to="owner") == "already_claimed"
    free = card(people.space, creator=people.owner)
    assert change(people, "owner", free, assigned_to="owner") == OK


def test_dependencies_make_no_circle(people: Company) -> None:
    first, second, third = (card(people.space, assigned_to=people.owner) for _ in range(3))
    assert change(people, "owner", first, depends_on=["T-2"]) == OK
    assert change(people, "owner", second, depends_on=["T-3"]) == OK
    before = snapshot()
    for refs in (["T-3"], ["T-1"], ["T-2"]):
        assert change(people, "owner", third, depends_on=refs) == "dependency_cycle"
    assert snapshot() == before
    assert change(people, "owner", second, depends_on=[]) == OK
    assert change(people, "owner", third, depends_on=["T-1", "T-2"]) == OK
    assert third.depends_on.count() == 2


@pytest.mark.parametrize("person", ["owner", "operator"])
def test_K04_a_parent_cannot_be_changed_by_a_tool(people: Company, person: str) -> None:
    parent = card(people.space, assigned_to=people.owner)
    child = card(people.space, assigned_to=people.owner, parent=parent)
    before = snapshot()
    for above in (child, parent):
        outcome = via_mcp(people, person, "tasks_update", {"task_id": parent.id, "parent_task_id": above.id})
        assert (outcome.code, outcome.body["parameter"]) == (INVALID, "parent_task_id")
    assert snapshot() == before


def test_K04_people_move_tasks_but_make_no_circle(people: Company) -> None:
    operator = who_for_key(people.tokens["operator"])
    parent, other = card(people.space), card(people.space)
    child = card(people.space, parent=parent)
    for above in (parent, child):
        with pytest.raises(Refused) as refusal:
            update_task(parent, by=operator, parent_task_id=above.id)
        assert refusal.value.code == "parent_cycle"
    assert update_task(child, by=operator, parent_task_id="T-2").parent == other
    assert update_task(child, by=operator, parent_task_id=None).parent is None
    with pytest.raises(InvalidArguments):
        update_task(child, by=who_for_key(people.tokens["owner"]), parent_task_id="T-2")


def test_a_stale_version_changes_nothing(people: Company) -> None:
    operator, task = who_for_key(people.tokens["operator"]), card(people.space)
    assert update_task(task, by=operator, version=1, title="New").version == 2
    before = snapshot()
    with pytest.raises(Refused) as refusal:
        update_task(task, by=operator, version=1, title="Newer")
    assert (refusal.value.code, refusal.value.extra) == ("stale", {"version": 2})
    assert snapshot() == before


@pytest.mark.parametrize("fields", [{"status": "done"}, {"id": "x"}, {"title": 1}, {"depends_on": "T-1"}, {"tags": 3}])
def test_people_change_the_listed_fields_in_their_types(people: Company, fields: dict[str, Any]) -> None:
    task = card(people.space)
    with pytest.raises(InvalidArguments) as fault:
        update_task(task, by=who_for_key(people.tokens["operator"]), **fields)
    assert fault.value.parameter in fields


def test_a_person_may_take_the_assignee_away(people: Company) -> None:
    task = card(people.space, assigned_to=people.owner)
    assert update_task(task, by=who_for_key(people.tokens["operator"]), assigned_to=None).assigned_to is None


@pytest.mark.parametrize("person", ["owner", "operator"])
@pytest.mark.parametrize("fields", [{"title": "x"}, {"description": "x"}, {"tags": "x"}, {"assigned_to": "colleague"}])
def test_a_runs_root_task_is_the_platforms(people: Company, person: str, fields: dict[str, Any]) -> None:
    task = card(people.space, assigned_to=people.owner, occurrence=True)
    assert change(people, person, task, **fields) == "system_managed"
    assert change(people, person, task, priority="high") == OK
