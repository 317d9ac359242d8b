"""Every text of a refusal as it was agreed: a change shows here and in `snapshots/refusals.txt`, or not at all."""

import inspect
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from mcp import refusals, registry
from mcp.refusals import Refusal

SNAPSHOT = Path(__file__).parent / "snapshots" / "refusals.txt"
# Arguments of every function of the module whose answer a caller reads.
SAMPLES: dict[str, list[tuple[object, ...]]] = {
    "stopped": [("TOOL", "the fleet"), ("TOOL", "the department research"), ("TOOL", "the agent owner")],
    "agent_not_active": [("TOOL", "paused")],
    "external_not_available": [("TOOL",)],
    "insufficient_scope": [("TOOL", "wiki:write")],
    "process_agent_tool": [("TOOL",)],
    "human_only": [("TOOL",)],
    "denied_tools": [("TOOL", "memory_*"), ("TOOL", "it's")],
    "allowed_tools": [("TOOL",)],
    "switch_off": [("TOOL", switch) for switch in sorted(registry.SWITCHES)],
    "capability_grant_missing": [("TOOL",), ("TOOL", "schedule_task")],
    "grant_revoked": [("TOOL",)],
    "confirm_missing": [()],
    "permission_denied": [("TOOL", flag) for flag in sorted(registry.PERMISSIONS)],
    "injection_suspected": [("TOOL", 60)],
    "redaction_token": [("TOOL",)],
    "rate_limited": [("TOOL", 7)],
    "unknown_tool": [("TOOL",), ("T" * 70,)],
    "missing_parameter": [("NAME",)],
    "invalid_parameter": [("NAME", "must be an integer")],
    "removed_tool": [(name,) for name in sorted(refusals.REMOVED_TOOLS)],
}


def lines() -> Iterator[str]:
    """One line an answer: code, audit class, gate, text."""
    for name, samples in SAMPLES.items():
        for sample in samples:
            answer = getattr(refusals, name)(*sample)
            if isinstance(answer, Refusal):
                yield f"{answer.code} {answer.error!r} {answer.gate} | {answer.text}"
            else:
                yield f"{name} | {answer}"


def test_every_text_is_the_agreed_one() -> None:
    assert list(lines()) == SNAPSHOT.read_text(encoding="utf-8").splitlines()


def test_no_function_of_the_module_is_left_out() -> None:
    functions = inspect.getmembers(refusals, inspect.isfunction)
    assert {name for name, function in functions if function.__module__ == refusals.__name__} == set(SAMPLES)


def test_texts_stand_in_this_module_alone() -> None:
    """Whoever refuses like a gate takes the words from here."""
    texts = {path: path.read_text(encoding="utf-8") for path in Path(refusals.__file__).parent.rglob("*.py")}
    takers = [path for path, text in texts.items() if re.search(r"from mcp\.refusals import .*\bRefusal\b", text)]
    assert takers and not [path.name for path in takers if "tests" not in path.parts and "Refusal(" in texts[path]]


@pytest.mark.parametrize("name", sorted(refusals.REMOVED_TOOLS))
def test_eight_names_were_removed_and_name_their_replacement(name: str) -> None:
    assert len(refusals.REMOVED_TOOLS) == 8
    assert refusals.removed_tool(name).startswith(name)
    assert refusals.REMOVED_TOOLS[name].split(" ")[0] in refusals.removed_tool(name)


def test_a_text_is_one_line_of_bearable_length() -> None:
    for line in lines():
        assert "\n" not in line and len(line) < 260, line
