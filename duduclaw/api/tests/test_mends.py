"""Mends: for every hidden tool of 200 random agents the edits, made over REST, open it, and no part of them does."""

import json
import random
from typing import Any

import pytest
from django.db import transaction
from rest_framework.test import APIClient

from agents.actions import fleet
from agents.actions.system import platform
from agents.models import Agent
from agents.principals import who_for_agent
from duduclaw.api.tests.house import bearer
from mcp import explain, policy, registry
from mcp.context import Call
from mcp.policy import Who
from mcp.registry import SWITCHES, Tool
from tests.build import agent, key, workspace

pytestmark = pytest.mark.django_db
SEED, CHUNKS, CHUNK = 20_260_601, 8, 25  # 200 agents in all
DEPARTMENTS = ("office", "research")
AGENT_SWITCHES = ("os_native", "recording", "system_operator", "codrive", "computer_use", "fork", "static_catalog")


def stand_in(name: str, **flags: Any) -> Tool:
    """A test tool with the gates of one that comes later."""

    def function(call: Call) -> dict[str, Any]:
        """A tool of the tests."""
        return {}

    return registry.build(function, name, "tests", "admin", {"read_only": True, **flags})


STAND_INS = tuple(stand_in(f"{switch}_stand_in", switch=switch) for switch in sorted(SWITCHES))


def entries(chance: random.Random, likely: float) -> list[str]:
    """A short list of tools as people write them."""
    if chance.random() > likely:
        return []
    names = [tool.name for tool in registry.every()]
    kinds = (
        lambda name: name,
        lambda name: f"{name.split('_')[0]}_*",
        lambda name: f"mcp__duduclaw__{name}",
        lambda name: f"mcp__other__{name}",
        lambda name: f"{name}(anything)",
        lambda name: "*" if chance.random() < 0.1 else name,
    )
    return [chance.choice(kinds)(chance.choice(names)) for _ in range(chance.randint(1, 6))]


def allowed(chance: random.Random) -> list[str]:
    """Mostly no list; else most tools by name."""
    if chance.random() > 0.25:
        return []
    names = [tool.name for tool in registry.every()]
    return chance.sample(names, k=chance.randint(len(names) * 2 // 3, len(names) - 1))


def some_agent(chance: random.Random, space: Any, number: int) -> Agent:
    """An agent with random switches, lists and state."""
    switches: dict[str, Any] = {switch: chance.random() < 0.6 for switch in AGENT_SWITCHES}
    made = agent(
        space,
        f"agent-{number}",
        department=chance.choice(DEPARTMENTS),
        allowed_tools=allowed(chance),
        denied_tools=entries(chance, 0.5),
        scoped_tools=entries(chance, 0.5),
        db_sources=["main"] if chance.random() < 0.5 else [],
        **switches,
    )
    made.status = "paused" if chance.random() < 0.1 else "active"
    made.save()
    return made


def some_stops(chance: random.Random, space: Any, one: Agent) -> None:
    """Sometimes one, two or three stops that hold the agent."""
    for scope in ("all", f"department:{one.department}", f"agent:{one.name}"):
        if chance.random() < 0.05:
            fleet.stop(by=platform(space), scope=scope, reason="drill")


class Trial:
    """One agent under edit: what it is after a set of edits made over REST, each set tried once and taken back."""

    def __init__(self, client: APIClient, one: Agent) -> None:
        self.client, self.one = client, one
        self.seen: dict[frozenset[str], Who] = {}

    def after(self, edits: tuple[dict[str, Any], ...]) -> Who:
        """The agent's principal once the edits are made."""
        mark = frozenset(json.dumps(edit, sort_keys=True) for edit in edits)
        if mark not in self.seen:
            with transaction.atomic():
                for edit in edits:
                    done = getattr(self.client, edit["method"].lower())(edit["path"], edit["body"], format="json")
                    assert done.status_code == 200, (edit, done.json())
                self.seen[mark] = who_for_agent(Agent.objects.system().get(pk=self.one.pk))
                transaction.set_rollback(True)
        return self.seen[mark]


def check(trial: Trial, tool: Tool) -> int:
    """Try the mend of one hidden tool; the number of its edits. To leave out more than one edit opens no more."""
    told = explain.explain(trial.one, tool.name)
    edits = tuple(told["mend"])
    if tool.human_only:
        assert edits == ()
        return 0
    assert edits, (tool.name, told)
    assert policy.verdict(tool, trial.after(edits)).state != policy.HIDDEN, (tool.name, edits)
    for left_out in range(len(edits)):
        part = edits[:left_out] + edits[left_out + 1 :]
        assert policy.verdict(tool, trial.after(part)).state == policy.HIDDEN, (tool.name, part)
    return len(edits)


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_mends_open_exactly_and_no_part_of_them_does(chunk: int) -> None:
    chance = random.Random(SEED + chunk)
    space = workspace()
    client = bearer(key(space, "operator", role="admin", client_id="operator")[1])
    tried: list[int] = []
    with registry.temporarily(*STAND_INS):
        for number in range(CHUNK):
            with transaction.atomic():
                one = some_agent(chance, space, number)
                some_stops(chance, space, one)
                one = Agent.objects.system().get(pk=one.pk)
                trial, who = Trial(client, one), who_for_agent(one)
                hidden = [tool for tool in registry.every() if policy.closed(tool, who)]
                tried += [check(trial, tool) for tool in hidden]
                transaction.set_rollback(True)
    assert len(tried) > 5 * CHUNK
    assert {1, 2} <= set(tried)
