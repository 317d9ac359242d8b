"""The walk of `demo`, as an operator runs it: twice, on both engines, and against a server that is not there."""

import json
from collections.abc import Callable

import pytest

from tests.stack import Stack

STEPS = [
    ("writer", "tools/list", "ok"),
    ("writer", "tasks_list", "ok"),
    ("writer", "create_issue", "capability_grant_missing"),
    ("writer", "capability_request", "waits"),
    ("operator", "approve", "ok"),
    ("writer", "capability_request", "ok"),
    ("writer", "tools/list", "ok"),
    ("writer", "create_issue", "ok"),
    ("audit", "tasks_list", "ok"),
    ("audit", "create_issue", "denied"),
    ("audit", "capability_request", "ok"),
    ("audit", "create_issue", "ok"),
]


@pytest.mark.parametrize("engine", ["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def test_the_walk_goes_as_promised_each_time(new_stack: Callable[..., Stack], engine: str) -> None:
    server = new_stack(engine)
    for _ in range(2):
        said = server.manage("demo", "--json", "--url", server.url).stdout
        assert [(step["who"], step["does"], step["outcome"]) for step in json.loads(said)] == STEPS


def test_people_read_a_line_a_step(stack: Callable[[str], Stack]) -> None:
    server = stack("sqlite")
    lines = server.manage("demo", "--url", server.url).stdout.splitlines()
    assert len(lines) == len(STEPS)
    assert max(map(len, lines)) < 160


def test_a_server_that_is_not_there_is_named_with_its_mend(stack: Callable[[str], Stack]) -> None:
    done = stack("sqlite").manage("demo", "--url", "http://127.0.0.1:1", check=False)
    assert done.returncode == 1
    assert "make run" in done.stderr
