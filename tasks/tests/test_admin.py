"""The board in the admin: tasks move by actions, with the words that the page asks for, and not by a form."""

from typing import Any

import pytest

from agents.tests.admin_house import House, house
from tasks.models import Activity, Task
from tasks.tests.board import card

pytestmark = pytest.mark.django_db


@pytest.fixture(name="home_of")
def build_house() -> House:
    return house()


def act(client: Any, action: str, *rows: Task, **answers: str) -> Any:
    form = {"action": action, "_selected_action": [row.pk for row in rows], "confirmed": "yes", **answers}
    return client.post("/admin/tasks/task/", form, follow=True)


@pytest.mark.parametrize(
    ("action", "before", "after"),
    [
        ("accept", "review", "done"),
        ("reject", "review", "revising"),
        ("retry", "failed", "todo"),
        ("cancel", "in_progress", "cancelled"),
    ],
)
def test_an_action_moves_the_task(home_of: House, action: str, before: str, after: str) -> None:
    task = card(home_of.acme.space, status=before, assigned_to=home_of.acme.owner)
    page = act(home_of.client("operator"), action, task, reason="needs figures", note="needs figures")
    assert page.status_code == 200
    task.refresh_from_db()
    assert task.status == after, [str(message) for message in page.context["messages"]]
    line = Activity.objects.system().filter(task=task).first()
    assert line.actor == "operator"


def test_a_move_that_the_board_refuses_is_told_and_does_nothing(home_of: House) -> None:
    done, going = card(home_of.acme.space, status="done"), card(home_of.acme.space, status="in_progress")
    page = act(home_of.client("operator"), "cancel", done, going)
    said = [(message.level_tag, str(message)) for message in page.context["messages"]]
    assert sorted(level for level, _ in said) == ["error", "success"]
    done.refresh_from_db()
    going.refresh_from_db()
    assert (done.status, going.status) == ("done", "cancelled")


def test_a_rejection_says_why(home_of: House) -> None:
    task = card(home_of.acme.space, status="review")
    page = act(home_of.client("operator"), "reject", task)
    assert b"This field is required" in page.content
    task.refresh_from_db()
    assert task.status == "review"


@pytest.mark.parametrize("name", ["viewer", "stranger"])
def test_others_move_nothing(home_of: House, name: str) -> None:
    task = card(home_of.acme.space, status="review")
    for action in ("accept", "reject", "retry", "cancel"):
        act(home_of.client(name), action, task, reason="because", note="because")
    task.refresh_from_db()
    assert task.status == "review"
    assert not Activity.objects.system().filter(task=task).exists()


def test_the_page_is_no_form(home_of: House) -> None:
    task = card(home_of.acme.space, title="Reconcile", description="<b>all</b>")
    client = home_of.client("admin")
    page = client.get(f"/admin/tasks/task/{task.pk}/change/").content.decode()
    assert "Reconcile" in page
    assert "&lt;b&gt;all&lt;/b&gt;" in page
    assert client.post(f"/admin/tasks/task/{task.pk}/change/", {"status": "done"}).status_code == 403
    assert client.get("/admin/tasks/task/?q=Reconcile&status__exact=todo").status_code == 200
    task.refresh_from_db()
    assert task.status == "todo"
