"""Issues as actions: racing callers, authorship, and what the pages of a list promise."""

from functools import partial
from typing import Any

import pytest

from agents.models import Membership, Role
from agents.principals import who_for_user
from mcp.errors import InvalidArguments, Refused
from mcp.policy import Who
from mcp.results import decode_cursor, encode_cursor, fit, page
from tasks.actions import issues
from tasks.models import Comment, Issue, Wake
from tasks.tests.board import race
from tests.build import Company, company, key

engines = pytest.mark.engines


@engines
@pytest.mark.django_db(transaction=True)
def test_racing_creators_get_numbers_without_gaps() -> None:
    who = company().who("owner")
    made = race([partial(issues.create_issue, by=who, title=f"Issue {n}") for n in range(8)])
    assert sorted(issue.number for issue in made) == list(range(1, 9))


@engines
@pytest.mark.django_db(transaction=True)
def test_racing_assigners_queue_one_wake() -> None:
    people = company()
    for name in ("owner", "colleague"):
        issue = issues.create_issue(by=people.who("owner"), title="A")
        callers = [people.who(person) for person in ("owner", "operator", "stranger", "colleague")]
        answers = race([partial(issues.assign_issue, issue.id, name, by=who) for who in callers])
        assert len({wake.id for _, wake in answers}) == 1
        assert Wake.objects.system().filter(issue=issue).count() == 1


@engines
@pytest.mark.django_db(transaction=True)
def test_racing_updates_all_count() -> None:
    who = company().who("owner")
    issue = issues.create_issue(by=who, title="A")
    race([partial(issues.update_issue, issue.id, by=who, title=f"Title {n}") for n in range(6)])
    assert Issue.objects.for_who(who).get().version == 7


@engines
@pytest.mark.django_db(transaction=True)
def test_a_deleted_issue_gets_no_comment() -> None:
    who = company().who("owner")
    for n in range(5):
        issue = issues.create_issue(by=who, title=f"Issue {n}")
        deleted, answer = race(
            [partial(issues.delete_issue, issue.id, by=who), partial(issues.comment_issue, issue.id, "late", by=who)]
        )
        assert deleted == issue.id
        assert isinstance(answer, Comment | InvalidArguments)
    assert not Comment.objects.system().exists()


@engines
@pytest.mark.django_db
def test_search_is_literal_and_finds_chinese() -> None:
    who = company().who("owner")
    for title in ("100% sure", "100 sure", "a_b", "aXb", "會議記錄", "back\\slash"):
        issues.create_issue(by=who, title=title)

    def found(words: str) -> set[str]:
        return set(Issue.objects.for_who(who).matching(words).values_list("title", flat=True))

    assert found("100%") == {"100% sure"}
    assert found("A_B") == {"a_b"}
    assert found("記錄") == {"會議記錄"}
    assert found("\\") == {"back\\slash"}
    assert found("sure 100") == {"100% sure", "100 sure"}


def person(people: Company, name: str, role: Role, django_user_model: Any) -> Who:
    user = django_user_model.objects.create_user(name)
    Membership.objects.create(workspace=people.space, user=user, role=role)
    who = who_for_user(user)
    assert who is not None
    return who


@pytest.mark.django_db
@pytest.mark.parametrize(("role", "may"), [("viewer", False), ("operator", True), ("manager", True), ("admin", True)])
def test_people_delete_by_role(role: Role, may: bool, django_user_model: Any) -> None:
    people = company()
    issue = issues.create_issue(by=people.who("owner"), title="A")
    comment = issues.comment_issue(issue.id, "B", by=people.who("stranger"))
    who = person(people, "someone", role, django_user_model)
    if may:
        assert issues.delete_comment(comment.id, by=who) == comment.id
        assert issues.delete_issue(issue.id, by=who) == issue.id
        return
    for delete, row in ((issues.delete_comment, comment), (issues.delete_issue, issue)):
        with pytest.raises(Refused, match="not_author"):
            delete(row.id, by=who)


@pytest.mark.django_db
def test_a_person_who_wrote_it_deletes_it_whatever_the_role(django_user_model: Any) -> None:
    people = company()
    who = person(people, "someone", Role.OPERATOR, django_user_model)
    issue = issues.create_issue(by=who, title="A")
    Membership.objects.system().update(role=Role.VIEWER)
    again = who_for_user(django_user_model.objects.get())
    assert again is not None
    assert issues.delete_issue(issue.id, by=again) == issue.id


@pytest.mark.django_db
def test_authorship_belongs_to_the_agent_not_to_the_key_or_the_name() -> None:
    people = company()
    issue = issues.create_issue(by=people.who("owner"), title="A")
    people.tokens["run"] = key(people.space, "run", agent=people.owner)[1]
    assert issues.author_ref(people.who("run")) == Issue.objects.system().get().author_ref
    people.tokens["twin"] = key(people.space, "external", client_id="owner", scopes_held=["issues:write"])[1]
    with pytest.raises(Refused, match="not_author"):
        issues.delete_issue(issue.id, by=people.who("twin"))
    assert issues.delete_issue(issue.id, by=people.who("run")) == issue.id


@pytest.mark.django_db
def test_an_issue_of_the_platform_has_no_author() -> None:
    people = company()
    issue = issues.create_issue(by=people.who("owner"), title="A")
    Issue.objects.system().update(author_ref="")
    with pytest.raises(Refused, match="not_author"):
        issues.delete_issue(issue.id, by=people.who("owner"))


@pytest.mark.django_db
def test_people_of_the_workspace_can_be_assignees(django_user_model: Any) -> None:
    people, other = company(), company("other")
    person(people, "here", Role.VIEWER, django_user_model)
    person(other, "there", Role.VIEWER, django_user_model)
    issue = issues.create_issue(by=people.who("owner"), title="A", assignee="here")
    assert (issue.assignee, issue.agent) == ("here", None)
    with pytest.raises(InvalidArguments, match="assignee"):
        issues.create_issue(by=people.who("owner"), title="A", assignee="there")


@pytest.mark.django_db
@pytest.mark.parametrize("status", ["terminated", "removed"])
def test_a_gone_agent_is_given_nothing(status: str) -> None:
    people = company()
    people.colleague.status = status
    people.colleague.save()
    issue = issues.create_issue(by=people.who("owner"), title="A")
    with pytest.raises(InvalidArguments, match="agent_id"):
        issues.assign_issue(issue.id, "colleague", by=people.who("owner"))


def rows(count: int, size: int) -> list[dict[str, Any]]:
    return [{"n": n, "text": "x" * size} for n in range(count)]


def place(row: dict[str, Any]) -> str:
    return encode_cursor("rows", row["n"])


@pytest.mark.parametrize(
    ("count", "size", "limit", "kept"), [(0, 1, 5, 0), (5, 1, 5, 5), (6, 1, 5, 5), (9, 20_000, 9, 2)]
)
def test_fit_keeps_what_has_room(count: int, size: int, limit: int, kept: int) -> None:
    assert fit(rows(count, size), limit) == rows(kept, size)


def test_one_item_always_fits_unless_none_may() -> None:
    assert len(fit(rows(2, 90_000), 5)) == 1
    assert fit(rows(2, 90_000), 5, least=0) == []


def test_a_page_says_how_it_ended() -> None:
    whole = page("rows", rows(3, 1), 3, place)
    assert (whole["count"], whole["next_cursor"], whole["truncated"]) == (3, None, False)
    more = page("rows", rows(4, 1), 3, place)
    assert (more["count"], more["truncated"]) == (3, False)
    assert decode_cursor("rows", more["next_cursor"], int) == [2]
    large = page("rows", rows(4, 20_000), 4, place)
    assert (large["count"], large["truncated"]) == (2, True)
    assert decode_cursor("rows", large["next_cursor"], int) == [1]


@pytest.mark.parametrize(
    "text", ["", "x", "é", encode_cursor("other", 1), encode_cursor("rows", "1"), encode_cursor("rows")]
)
def test_a_cursor_of_another_kind_or_shape_is_refused(text: str) -> None:
    with pytest.raises(InvalidArguments) as caught:
        decode_cursor("rows", text, int)
    assert caught.value.parameter == "cursor"
