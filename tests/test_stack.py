"""The servers that other tests talk to: seeded, separate, on both engines."""

from collections.abc import Callable

import httpx
import pytest

from tests.stack import Stack

ENGINES = ["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)]


@pytest.mark.parametrize("engine", ENGINES)
def test_a_stack_serves_the_first_run_company(stack: Callable[[str], Stack], engine: str) -> None:
    server = stack(engine)
    assert httpx.get(f"{server.url}/readyz").json()["checks"] == {"database": "ok", "first_run": "ok"}
    assert set(server.keys) == {"operator", "lead", "analyst", "external"}
    assert stack(engine) is server


@pytest.mark.parametrize("engine", ENGINES)
def test_two_stacks_share_nothing(new_stack: Callable[..., Stack], engine: str) -> None:
    one, other = new_stack(engine), new_stack(engine)
    one.manage("shell", "--no-imports", "-c", "from tasks.models import Task; Task.objects.system().delete()")
    count = "from tasks.models import Task; print(Task.objects.system().count())"
    assert one.manage("shell", "--no-imports", "-c", count).stdout.strip() == "0"
    assert other.manage("shell", "--no-imports", "-c", count).stdout.strip() == "4"


def test_a_second_web_process_serves_the_same_database(new_stack: Callable[..., Stack]) -> None:
    server = new_stack("sqlite")
    second = server.start_web()
    assert second.url != server.url
    assert httpx.get(f"{second.url}/readyz").status_code == 200


def test_health_names_a_dead_valkey_and_does_not_hang(new_stack: Callable[..., Stack]) -> None:
    server = new_stack("sqlite")
    assert httpx.get(f"{server.url}/healthz").json()["checks"]["scheduler"] == "no sign of life yet"
    server.stop_valkey()
    answer = httpx.get(f"{server.url}/healthz")
    assert (answer.status_code, answer.json()) == (503, {"status": "failing", "checks": {"valkey": "no answer"}})
    assert httpx.get(f"{server.url}/readyz").status_code == 200
    assert 'duduclaw_up{part="valkey"} 0.0' in httpx.get(f"{server.url}/metrics").text
