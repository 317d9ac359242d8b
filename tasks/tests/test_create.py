"""Creation: the order of the checks, each limit from both sides, and what is written."""

from typing import Any

import pytest

from mcp.errors import InvalidArguments
from tasks.actions.create import Draft, create_task
from tasks.models import Activity, Task
from tasks.tests.board import OK, audit_of, card, snapshot, via_mcp
from tests.build import Company, company

pytestmark = pytest.mark.django_db
PEOPLE = ("owner", "colleague", "stranger", "operator")
INVALID = "invalid_arguments"
# A call with every fault at once. Mending them one by one must show the faults in exactly this order.
FAULTY = {
    "kind": "goal",
    "schedule": "every monday",
    "title": " ",
    "assigned_to": "ghost",
    "tags": "outcome:x",
    "parent_task_id": "T-99",
}
MENDS: list[tuple[dict[str, Any], str, str]] = [
    ({}, INVALID, "schedule"),
    ({"schedule": "0 9 * * 1"}, INVALID, "title"),
    ({"title": "Plan"}, INVALID, "schedule"),
    ({"schedule": ""}, INVALID, "assigned_to"),
    ({"assigned_to": "stranger"}, "delegation_denied", ""),
    ({"assigned_to": "colleague"}, "reserved_tag_change", ""),
    ({"tags": "x"}, INVALID, "parent_task_id"),
    ({"parent_task_id": "T-1"}, "delegation_denied", ""),
    ({"parent_task_id": "T-2"}, "not_configured", ""),
    ({"kind": "task"}, OK, ""),
]


@pytest.fixture
def people() -> Company:
    """owner and colleague related, stranger not, operator."""
    return company()


def create(people: Company, person: str, **arguments: Any) -> Any:
    return via_mcp(people, person, "tasks_create", {"title": "Plan", **arguments})


def test_faults_are_reported_in_one_fixed_order(people: Company) -> None:
    card(people.space, assigned_to=people.stranger)
    card(people.space, assigned_to=people.owner)
    arguments, before = dict(FAULTY), snapshot()
    for mend, code, parameter in MENDS:
        arguments |= mend
        outcome = via_mcp(people, "owner", "tasks_create", arguments)
        assert (outcome.code, outcome.body.get("parameter", "")) == (code, parameter), (mend, outcome.body)
        assert (snapshot() == before) == (code != OK)
    rows = audit_of("tasks_create")
    assert len(rows) == len(MENDS)
    assert [row["outcome"] for row in rows[-2:]] == ["error", "ok"]


def test_the_round_comes_after_the_tags_and_before_the_branch(people: Company) -> None:
    arguments = {"title": "Plan", "kind": "goal", "tags": "grant:x"}
    assert via_mcp(people, "owner", "tasks_create", arguments, round_task=" ").code == "reserved_tag_change"
    arguments["tags"] = ""
    assert via_mcp(people, "owner", "tasks_create", arguments, round_task=" ").code == "round_invalid"
    assert via_mcp(people, "owner", "tasks_create", arguments).code == "not_configured"


@pytest.mark.parametrize("person", PEOPLE)
@pytest.mark.parametrize(("length", "code"), [(1, OK), (200, OK), (201, INVALID), (0, INVALID)])
def test_titles_have_one_to_two_hundred_characters(people: Company, person: str, length: int, code: str) -> None:
    assert create(people, person, title="ü" * length).code == code
    assert Task.objects.system().count() == (code == OK)


@pytest.mark.parametrize("person", PEOPLE)
@pytest.mark.parametrize(
    ("arguments", "names"),
    [
        ({"kind": "goal"}, "goal loop"),
        ({"kind": "discovery"}, "discovery engine"),
        ({"schedule": "0 9 * * 1-5"}, "runner"),
        ({"schedule": "2026-03-02T10:00:00Z", "notify_channel": "slack", "notify_chat_id": "c"}, "runner"),
    ],
)
def test_what_has_no_backend_says_what_is_missing(
    people: Company, person: str, arguments: dict[str, Any], names: str
) -> None:
    outcome = create(people, person, **arguments)
    assert outcome.code == "not_configured"
    assert names in outcome.body["detail"]
    assert (audit_of("tasks_create")[0]["outcome"], Task.objects.system().count()) == ("error", 0)


@pytest.mark.parametrize(
    ("arguments", "parameter"),
    [
        ({"kind": "epic"}, "kind"),
        ({"schedule": "soon"}, "schedule"),
        ({"schedule": "2026-03-02T10:00:00"}, "schedule"),
        ({"kind": "goal", "schedule": "0 9 * * *"}, "schedule"),
        ({"schedule": "2026-03-02T10:00:00Z"}, "notify_channel"),
        ({"schedule": "2026-03-02T10:00:00Z", "notify_channel": "slack"}, "notify_chat_id"),
        ({"depends_on": ["T-7"]}, "depends_on"),
        ({"depends_on": "nothing such"}, "depends_on"),
        ({"goal_id": "g"}, "goal_id"),
        ({"assigned_to": "no one!"}, "assigned_to"),
        ({"assigned_to": ""}, "assigned_to"),
        ({"outcome": {"text": ""}}, "outcome"),
        ({"plan_first": True}, "plan_first"),
        ({"discovery": {"approved_root_id": "x"}}, "discovery"),
        ({"cron_timezone": "Europe/Berlin"}, "cron_timezone"),
        ({"claimed_by": "owner"}, "claimed_by"),
        ({"tags": ",".join(str(n) for n in range(101))}, "tags"),
    ],
)
@pytest.mark.parametrize("person", ["owner", "operator"])
def test_arguments_that_mean_nothing_are_named(
    people: Company, person: str, arguments: dict[str, Any], parameter: str
) -> None:
    outcome = create(people, person, **arguments)
    assert (outcome.code, outcome.body["parameter"]) == (INVALID, parameter)
    assert Task.objects.system().count() == 0


@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        ({}, "todo"),
        ({"durable": True}, "pending"),
        ({"goal_mode": True}, "pending"),
        ({"depends_on": ["T-1"]}, "pending"),
        ({"depends_on": []}, "todo"),
    ],
)
def test_where_a_task_starts(people: Company, arguments: dict[str, Any], status: str) -> None:
    card(people.space)
    assert create(people, "owner", **arguments).body["status"] == status


@pytest.mark.parametrize(("asked", "kept"), [("urgent", "urgent"), ("low", "low"), ("asap", "medium"), ("", "medium")])
def test_an_unknown_priority_is_medium(people: Company, asked: str, kept: str) -> None:
    assert create(people, "owner", priority=asked).body["priority"] == kept


@pytest.mark.parametrize(("asked", "kept"), [(-1, 0), (0, 0), (100, 100), (101, 100), ("7", 7)])
def test_retries_are_clamped(people: Company, asked: Any, kept: int) -> None:
    create(people, "owner", max_retries=asked)
    assert Task.objects.system().get().max_retries == kept


def test_dependencies_are_taken_by_number_and_by_id_once_each(people: Company) -> None:
    first, second = card(people.space), card(people.space)
    body = create(people, "owner", depends_on=f'["{second.id}", "T-1", "t-01", "{first.id}"]').body
    assert body["depends_on"] == [first.id, second.id]
    other = company("other")
    assert create(other, "owner", depends_on=[first.id]).code == INVALID


def test_the_caller_gets_it_and_a_person_gives_it_to_nobody(people: Company) -> None:
    assert create(people, "owner").body["assigned_to"] == "owner"
    assert create(people, "operator").body["assigned_to"] is None
    task = Task.objects.system().get(number=1)
    assert (task.created_by, task.creator) == ("owner", people.owner)


def test_a_removed_agent_is_given_nothing(people: Company) -> None:
    people.colleague.status = "removed"
    people.colleague.save()
    assert create(people, "operator", assigned_to="colleague").code == INVALID


def test_the_feed_tells_of_creation_and_assignment(people: Company) -> None:
    create(people, "owner")
    create(people, "owner", assigned_to="colleague")
    lines = Activity.objects.system().order_by("created_at", "id").values_list("task__number", "event_type")
    assert list(lines) == [(1, "task_created"), (2, "task_created"), (2, "task_assigned")]


def test_a_goals_criteria_default_to_its_description(people: Company) -> None:
    assert create(people, "owner", goal_mode=True, description="Ship").body["acceptance_criteria"] == "Ship"
    body = create(people, "owner", goal_mode=True, description="Ship", acceptance_criteria="It runs").body
    assert body["acceptance_criteria"] == "It runs"


def test_numbers_have_no_gaps_in_a_workspace(people: Company) -> None:
    other = company("other")
    assert create(people, "owner").body["number"] == "T-1"
    assert create(people, "owner", title="").code == INVALID
    assert create(people, "owner", parent_task_id="T-1", assigned_to="stranger").code == "delegation_denied"
    assert create(people, "owner").body["number"] == "T-2"
    assert create(other, "owner").body["number"] == "T-1"


def test_scheduling_is_a_permission_and_plain_creation_is_not(people: Company) -> None:
    people.owner.permissions.can_schedule_tasks = False
    people.owner.permissions.save()
    assert create(people, "owner", schedule="0 9 * * *").code == "permission_denied"
    assert create(people, "owner", schedule="  ").code == OK
    assert create(people, "owner").code == OK


def test_an_unknown_kind_is_refused_below_the_schema_too(people: Company) -> None:
    with pytest.raises(InvalidArguments):
        create_task(Draft(title="Plan", kind="epic"), by=people.who("owner"))


def test_discovery_needs_its_own_scope_beside_admin(people: Company) -> None:
    assert create(people, "owner", kind="discovery").code == "not_configured"
