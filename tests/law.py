"""The law as one check: what a principal is listed is what it can call, and a refusal is its gate's own.

A transport is a parameter: anything with `names()` and `call(name, arguments) -> frame`.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Protocol

from mcp import policy, render
from mcp.calls import CallRequest, call, pending
from mcp.policy import Who
from mcp.registry import Tool
from tests.oracle import Facts, first_closed

Frame = dict[str, Any]
GATES = ("G1", "G2", "G3", "G4", "G5", "G6", "G7", "G8", "G9")
# What a call with valid arguments never hears; that an object does not exist it may.
FAULTS = ("Unknown tool", "Missing required parameter")
# Arguments that a schema allows and a test must not use: they would stop everybody.
HARMLESS: dict[str, Frame] = {"emergency_stop": {"scope": "nobody"}}


class Line(Protocol):
    """A client of some transport."""

    def names(self) -> set[str]: ...
    def call(self, name: str, arguments: Frame) -> Frame: ...


@dataclass
class Direct:
    """No transport: the list and the choke point themselves."""

    principal: Callable[[], Who]

    def names(self) -> set[str]:
        """The names of the view."""
        return {tool.name for tool in render.view(self.principal()).tools}

    def call(self, name: str, arguments: Frame) -> Frame:
        """The answer as a frame; what would wait ends as pending."""
        request = CallRequest(self.principal, name, arguments)
        answer = call(request)
        if answer.parked is not None:
            answer = pending(request, answer.parked)
        if answer.error is not None:
            code, message, data = answer.error
            return {"error": {"code": code, "message": message, "data": data}}
        return {"result": {"isError": answer.is_error, "structuredContent": answer.structured}}


def valid(tool: Tool) -> Frame:
    """Arguments that the tool's schema allows: every required parameter, and what keeps the call harmless."""
    schema = tool.schema
    needed = {name: sample(schema["properties"][name]) for name in schema.get("required", ())}
    return {**needed, **HARMLESS.get(tool.name, {})}


def sample(body: Frame) -> Any:
    """The smallest value of a property."""
    if "enum" in body:
        return body["enum"][0]
    return {
        "string": "x" * max(1, body.get("minLength", 1)),
        "integer": body.get("minimum", 1),
        "boolean": True,
        "array": ["x"] * body.get("minItems", 0),
        "object": {},
    }[body["type"]]


def own_refusal(gate: str, tool: Tool, who: Who) -> Frame:
    """The error that the gate itself gives, asked alone."""
    refusal = next(each for each in policy.GATES if each.id == gate).closed(tool, who)
    assert refusal is not None, f"{gate} is open for {tool.name}"
    return {"code": refusal.code, "message": refusal.text, "data": refusal.data(tool.name)}


@dataclass
class Law:
    """Checks principals over a line, and counts the calls that were answered."""

    answered: int = 0
    gates: set[str] = field(default_factory=set)  # those that refused a call so far

    def check(self, line: Line, facts: Facts, who: Who, tools: Iterable[Tool], every: Iterable[Tool]) -> None:
        """The list against the oracle for all tools, a call against both for each of `tools`."""
        listed = line.names()
        assert listed == {tool.name for tool in every if first_closed(tool, facts) is None}
        for tool in tools:
            self.judge(line.call(tool.name, valid(tool)), tool, tool.name in listed, first_closed(tool, facts), who)

    def judge(self, frame: Frame, tool: Tool, listed: bool, gate: str | None, who: Who) -> None:
        """One answer."""
        self.answered += 1
        error = frame.get("error", {})
        refused = error.get("data", {}).get("gate") in GATES
        assert listed == (not refused), (tool.name, frame)
        if gate is None:
            assert error.get("code") not in (-32601, -32603), (tool.name, frame)
            assert not error.get("message", "").startswith(FAULTS), (tool.name, frame)
            return
        assert error == own_refusal(gate, tool, who), tool.name
        self.gates.add(gate)
