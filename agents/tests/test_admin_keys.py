"""Keys in the admin: step-up first, the text once on one page, kept nowhere."""

import logging
from datetime import timedelta
from typing import Any

import pytest
import time_machine
from django.db import connection
from django.test import Client

from agents.actions.keys import create_key
from agents.models import Key
from agents.principals import who_for_key
from agents.tests.admin_house import House, house, step_up
from duduclaw.lib import clock

pytestmark = pytest.mark.django_db
ADD = "/admin/agents/key/add/"


@pytest.fixture(name="home_of")
def build_house() -> House:
    return house()


def ask_for(client: Client, **over: Any) -> Any:
    """Open the form and send it."""
    page = client.get(ADD)
    once = page.context["adminform"].form["once"].value()
    return client.post(ADD, {"kind": "external", "label": "reports", "scopes": ["memory:read"], "once": once, **over})


def text_of(answer: Any) -> str:
    return str(answer.context["text"])


def whole_database() -> str:
    """Every value of every table as text."""
    with connection.cursor() as cursor:
        found = []
        for table in connection.introspection.table_names(cursor):
            cursor.execute(f'SELECT * FROM "{table}"')
            found.append(repr(cursor.fetchall()))
    return "\n".join(found)


def test_the_key_is_shown_once_and_kept_nowhere(home_of: House, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    client = home_of.client("admin", stepped_up=True)
    answer = ask_for(client)
    text = text_of(answer)
    assert answer.content.decode().count(text) == 1
    assert "no-store" in answer.headers["Cache-Control"]
    assert who_for_key(text).scopes == frozenset({"memory:read"})
    secret = text.removeprefix(Key.objects.system().get(label="reports").prefix)
    assert len(secret) == 24
    for page in (client.get("/admin/"), client.get("/admin/agents/key/"), client.get(ADD)):
        assert secret not in page.content.decode()
    assert secret not in whole_database()
    assert secret not in repr(dict(client.session))
    assert secret not in repr([record.__dict__ for record in caplog.records])


def test_sending_the_form_again_makes_no_second_key(home_of: House) -> None:
    client = home_of.client("admin", stepped_up=True)
    page = client.get(ADD)
    form = {"kind": "external", "label": "reports", "once": page.context["adminform"].form["once"].value()}
    assert client.post(ADD, form).status_code == 200
    again = client.post(ADD, form, follow=True)
    assert b"has made its key already" in again.content
    assert Key.objects.system().filter(label="reports").count() == 1
    assert client.post(ADD, {"kind": "external", "label": "reports"}).status_code == 302
    assert Key.objects.system().filter(label="reports").count() == 1


def test_step_up_comes_first(home_of: House) -> None:
    client = home_of.client("admin")
    assert client.get(ADD).headers["Location"] == "/admin/step-up/?next=%2Fadmin%2Fagents%2Fkey%2Fadd%2F"
    assert client.post(ADD, {"kind": "external", "label": "reports"}).status_code == 302
    assert not Key.objects.system().filter(label="reports").exists()
    assert step_up(client, "wrong").status_code == 200
    assert client.get(ADD).status_code == 302
    answer = client.post("/admin/step-up/", {"password": "a long enough password", "next": ADD})
    assert answer.headers["Location"] == ADD
    assert client.get(ADD).status_code == 200


def test_step_up_grows_old(home_of: House) -> None:
    client = home_of.client("admin", stepped_up=True)
    for minutes, status in ((14, 200), (16, 302)):
        with time_machine.travel(clock.now() + timedelta(minutes=minutes), tick=False):
            assert client.get(ADD).status_code == status


def test_step_up_belongs_to_one_person(home_of: House) -> None:
    client = home_of.client("admin", stepped_up=True)
    mark = client.session["step_up"]
    other = home_of.client("manager")
    session = other.session
    session["step_up"] = mark
    session.save()
    approve = "/admin/agents/approval/decide/?decision=approve&ids=x"
    assert other.get(approve).status_code == 302
    session["step_up"] = mark[:-1] + ("A" if mark[-1] != "A" else "B")
    session.save()
    session = client.session
    session["step_up"] = "nonsense"
    session.save()
    assert client.get(ADD).status_code == 302


def test_five_wrong_passwords_end_the_session(home_of: House) -> None:
    client = home_of.client("admin")
    for _ in range(4):
        assert step_up(client, "wrong").status_code == 200
    assert step_up(client, "wrong").headers["Location"] == "/admin/login/"
    assert client.get("/admin/").status_code == 302
    assert step_up(client).status_code == 302
    assert "step_up" not in client.session


@pytest.mark.parametrize(
    "there", ["https://example.org/", "//example.org", "javascript:alert(1)", "\\\\example.org", ""]
)
def test_step_up_leads_nowhere_else(home_of: House, there: str) -> None:
    answer = home_of.client("admin").post("/admin/step-up/", {"password": "a long enough password", "next": there})
    assert answer.headers["Location"] == "/admin/"


@pytest.mark.parametrize(
    ("over", "says"),
    [
        ({"kind": "agent"}, "agent and run keys name an agent"),
        ({"kind": "run"}, "valid choice"),
        ({"scopes": ["admin"]}, "external keys hold"),
        ({"scopes": ["nonsense"]}, "valid choice"),
        ({"expires_at_0": "2020-01-01", "expires_at_1": "00:00"}, "at most 365 days"),
        ({"expires_at_0": "2099-01-01", "expires_at_1": "00:00"}, "at most 365 days"),
    ],
)
def test_a_faulty_key_is_named_and_not_made(home_of: House, over: dict[str, Any], says: str) -> None:
    answer = ask_for(home_of.client("admin", stepped_up=True), **over)
    assert answer.status_code == 200
    assert says in answer.content.decode()
    assert "ddc_test_" not in answer.content.decode()
    assert not Key.objects.system().filter(label="reports").exists()


def test_an_agents_key_and_an_operators(home_of: House) -> None:
    client = home_of.client("admin", stepped_up=True)
    made = who_for_key(text_of(ask_for(client, kind="agent", agent=home_of.acme.owner.pk, scopes=[])))
    assert (made.kind, made.name, made.scopes) == ("agent", "owner", frozenset({"admin"}))
    made = who_for_key(text_of(ask_for(client, kind="operator", role="manager", client_id="robot", scopes=[])))
    assert (made.kind, made.role, made.name) == ("operator", "manager", "robot")


def test_a_key_page_shows_no_digest(home_of: House) -> None:
    key = Key.objects.system().filter(workspace=home_of.acme.space).first()
    page = home_of.client("admin").get(f"/admin/agents/key/{key.pk}/change/").content.decode()
    assert key.prefix in page
    assert key.digest not in page


def test_a_key_near_its_end_is_named(home_of: House) -> None:
    soon = clock.now() + timedelta(days=3, hours=2, minutes=1)
    create_key(by=home_of.acme.who("operator"), kind="external", label="soon", expires_at=soon)
    client = home_of.client("viewer")
    assert b"ends in 3 d 2 h" in client.get("/admin/agents/key/").content
    assert b"of soon" in client.get("/admin/").content
