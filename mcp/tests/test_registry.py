"""Declarations that would break a client later do not start; the real tools agree with the catalogue."""

from collections.abc import Callable
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field

from mcp import registry, scopes
from mcp.context import Call
from mcp.params import Bool, Int, JsonObject, Text, TextList
from mcp.registry import BadTool, Tool
from tests.testtools import FLAGS, catalogue, probe, probes, stand_ins

Words = Annotated[Text, Field(description="Any words.")]


def good(call: Call, *, text: Words) -> dict[str, Any]:
    """Does what a test needs."""
    return {"text": text}


def build(function: Callable[..., Any] = good, name: str = "good", scope: str = "admin", **flags: Any) -> Tool:
    return registry.build(function, name, "tests", scope, flags)


def silent(call: Call, *, text: Words) -> None: ...


def long(call: Call) -> None:
    """固固固固固固固固固固固固固固固固固固固固固固固固固固固固固固固固固固固固固固固固固固固固固固固固固固固固固固固固固固固固固固固固固固固"""


def undocumented(call: Call, *, text: Text) -> None:
    """Has a parameter that says nothing."""


def positional(call: Call, text: Words) -> None:
    """Takes its parameter by place."""


def bare(call: Call, *, text) -> None:  # type: ignore[no-untyped-def]
    """Has a parameter without a type."""


def callless(*, text: Words) -> None:
    """Does not take the call."""


class Shape(BaseModel):
    """Nested."""

    a: int


def nested(call: Call, *, shape: Annotated[Shape, Field(description="A shape.")]) -> None:
    """Takes a nested model."""


def either(call: Call, *, shape: Annotated[int | str, Field(description="Two types.")]) -> None:
    """Takes one of two types."""


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (silent, "good: has no description"),
        (long, "good: description has 201 bytes, 200 is the most"),
        (undocumented, "good.text: has no description"),
        (positional, "good.text: parameters are keyword-only and annotated"),
        (bare, "good.text: parameters are keyword-only and annotated"),
        (callless, "good: the first parameter is the call"),
    ],
)
def test_a_bad_function_does_not_register(function: Callable[..., Any], words: str) -> None:
    with pytest.raises(BadTool) as caught:
        build(function)
    assert str(caught.value) == words


@pytest.mark.parametrize("function", [nested, either])
def test_a_schema_that_clients_cannot_read_does_not_register(function: Callable[..., Any]) -> None:
    with pytest.raises(TypeError):
        build(function)


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        ({"scope": "memory:reed"}, "unknown scope 'memory:reed'"),
        ({"scope": scopes.VIEWER}, "unknown scope 'viewer'"),
        ({"switch": "flying"}, "unknown switch or permission"),
        ({"permission": "can_fly"}, "unknown switch or permission"),
        ({"destroys": True}, "unknown flag destroys"),
        ({"process_agent": True, "human_only": True}, "nobody could call"),
        ({"permission_when": bool}, "permission_when without a permission"),
        ({"name": "Good"}, "names are snake_case ASCII"),
        ({"name": "good-one"}, "names are snake_case ASCII"),
        ({"name": "_good"}, "names are snake_case ASCII"),
        ({"name": "g\u00f6od"}, "names are snake_case ASCII"),
        ({"name": "good\n"}, "names are snake_case ASCII"),
        ({"name": "g" * 41}, "names are snake_case ASCII"),
        ({"name": "schedule_task"}, "is a removed name"),
    ],
)
def test_a_bad_declaration_does_not_register(flags: dict[str, Any], words: str) -> None:
    with pytest.raises(BadTool, match=words):
        build(**flags)


def test_a_name_is_given_once() -> None:
    made = probe("probe_twice")
    with registry.temporarily(made):
        with pytest.raises(BadTool, match="probe_twice: a tool of that name exists"), registry.temporarily(made):
            pass
        with pytest.raises(BadTool, match="a tool of that name exists"):
            registry.tool(family="tests", scope="admin", name="probe_twice")(good)
    assert registry.get("probe_twice") is None


def test_the_decorator_hands_the_function_back() -> None:
    with registry.temporarily():
        assert registry.tool(family="tests", scope="admin")(good) is good
        assert registry.TOOLS["good"].function is good
    assert registry.get("good") is None


def test_the_order_of_every_list_is_the_name() -> None:
    with registry.temporarily(*probes()):
        names = [tool.name for tool in registry.every()]
    assert names == sorted(names) and len(names) == len(set(names))


def full(
    call: Call,
    *,
    text: Annotated[Text, Field(description="Words.", min_length=1, max_length=9)],
    number: Annotated[Int, Field(description="A number.", ge=1, le=5)] = 3,
    yes: Annotated[Bool | None, Field(description="Yes or no.")] = None,
    names: Annotated[TextList | None, Field(description="Names.")] = None,
    body: Annotated[JsonObject | None, Field(description="Any object.")] = None,
    kind: Annotated[Literal["a", "b"], Field(description="One of two.")] = "a",
) -> None:
    """Takes one parameter of each type."""


def test_the_schema_is_plain() -> None:
    assert build(full, destructive=True).schema == {
        "type": "object",
        "additionalProperties": False,
        "required": ["text", "confirm"],
        "properties": {
            "text": {"type": "string", "description": "Words.", "minLength": 1, "maxLength": 9},
            "number": {"type": "integer", "description": "A number.", "minimum": 1, "maximum": 5, "default": 3},
            "yes": {"type": "boolean", "description": "Yes or no."},
            "names": {"type": "array", "items": {"type": "string"}, "description": "Names."},
            "body": {"type": "object", "description": "Any object."},
            "kind": {"type": "string", "enum": ["a", "b"], "description": "One of two.", "default": "a"},
            "confirm": {
                "type": "boolean",
                "description": "Must be true, after a person agreed; anything else is refused.",
            },
        },
    }


def test_the_four_hints_are_always_there() -> None:
    assert build().annotations == {
        "readOnlyHint": False, "destructiveHint": False, "idempotentHint": False, "openWorldHint": False,
    }  # fmt: skip
    assert set(build(read_only=True, open_world=True).annotations.values()) == {True, False}


@pytest.mark.parametrize("name", sorted(registry.TOOLS))
def test_a_real_tool_is_as_the_catalogue_says(name: str) -> None:
    made = registry.TOOLS[name]
    flags = ",".join(word for word, flag in FLAGS.items() if getattr(made, flag)) or "-"
    line = next(line for line in catalogue() if line[0] == name)
    assert (name, made.family, made.scope, made.switch or "-", made.permission or "-") == line[:5]
    assert set(flags.split(",")) == set(line[5].split(","))


def test_the_catalogue_has_257_tools_and_a_stand_in_for_each_that_is_missing() -> None:
    names = [line[0] for line in catalogue()]
    assert len(names) == len(set(names)) == 257
    assert {tool.name for tool in stand_ins()} | set(registry.TOOLS) == set(names)
    assert sum("destroys" in line[5] for line in catalogue()) == 14
    assert sum("agent" in line[5].split(",") for line in catalogue()) == 17


def test_every_exemption_of_the_description_budget_is_needed() -> None:
    for (name, parameter), cap in registry.PARAM_CAP_EXEMPTIONS.items():
        text = registry.TOOLS[name].schema["properties"][parameter]["description"]
        assert registry.DESCRIPTION_BYTES < len(text.encode()) <= cap
