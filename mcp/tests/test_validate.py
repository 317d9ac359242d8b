"""Arguments as they come from models: what is taken, what is refused, and how a refusal names the parameter."""

import json
from typing import Annotated, Any, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import Field

from mcp import registry, validate
from mcp.context import Call
from mcp.errors import InvalidArguments
from mcp.params import Bool, Int, JsonObject, Text, TextList


def taker(
    call: Call,
    *,
    task_id: Annotated[Text, Field(description="An id.")],
    limit: Annotated[Int | None, Field(description="A number.", ge=-9, le=200)] = None,
    big: Annotated[Int | None, Field(description="Any number.")] = None,
    yes: Annotated[Bool | None, Field(description="Yes or no.")] = None,
    names: Annotated[TextList | None, Field(description="Names.")] = None,
    body: Annotated[JsonObject | None, Field(description="Any object.")] = None,
    kind: Annotated[Literal["a", "b"] | None, Field(description="One of two.")] = None,
) -> None:
    """Takes one parameter of each type."""


TAKER = registry.build(taker, "taker", "tests", "admin", {})


def clean(**given: Any) -> dict[str, Any]:
    """The handler's arguments beside the required one."""
    found = validate.arguments(TAKER, {"task_id": "T-1", **given})
    del found["task_id"]
    return found


def fault(**given: Any) -> InvalidArguments:
    with pytest.raises(InvalidArguments) as caught:
        clean(**given)
    return caught.value


@pytest.mark.parametrize(
    ("sent", "arrives"),
    [("5", 5), (3.0, 3), (json.loads("1e2"), 100), (0, 0), ("-7", -7), (-0.0, 0), ("007", 7), (200, 200)],
)
def test_P08_digits_and_whole_numbers_are_taken(sent: Any, arrives: int) -> None:
    found = clean(limit=sent)["limit"]
    assert (found, type(found)) == (arrives, int)


@pytest.mark.parametrize(
    "sent",
    [True, False, "5abc", " 5 ", "1e3", "\uff11\uff12", 3.5, "", "5.0", "+5", "--5", "0x5", "1_0", "\u0665", "5\n"],
)
def test_P08_everything_else_is_refused_by_name(sent: Any) -> None:
    found = fault(limit=sent)
    assert (found.parameter, found.message) == ("limit", "Invalid parameter limit: must be an integer")


@pytest.mark.parametrize("sent", [[], {}, [5], float("nan"), float("inf"), "9" * 19])
def test_what_is_no_number_at_all_is_refused(sent: Any) -> None:
    assert fault(limit=sent).message == "Invalid parameter limit: must be an integer"


@pytest.mark.parametrize("text", ["00713", " 5 ", "true", "1e3", "\uff11", "", "[1]", "{}", "null"])
def test_P08_strings_are_never_touched(text: str) -> None:
    assert validate.arguments(TAKER, {"task_id": text}) == {"task_id": text}


@pytest.mark.parametrize("sent", [713, 7.0, True, ["x"], {"a": 1}])
def test_P08_a_string_is_a_string(sent: Any) -> None:
    with pytest.raises(InvalidArguments, match="Invalid parameter task_id: must be a string"):
        validate.arguments(TAKER, {"task_id": sent})


@pytest.mark.parametrize(("sent", "arrives"), [(True, True), (False, False), ("true", True), ("false", False)])
def test_booleans_and_their_words(sent: Any, arrives: bool) -> None:
    assert clean(yes=sent) == {"yes": arrives}


@pytest.mark.parametrize("sent", ["True", "yes", "1", 1, 0, 1.0, "", " true", [True], "\uff54rue"])
def test_other_words_for_yes_are_refused(sent: Any) -> None:
    assert fault(yes=sent).message == "Invalid parameter yes: must be true or false"


def test_a_number_that_no_column_takes_is_refused() -> None:
    assert clean(big=2**63 - 1) == {"big": 2**63 - 1}
    assert fault(big=2**63).message == "Invalid parameter big: is out of range"
    assert fault(limit=201).message == "Invalid parameter limit: should be less than or equal to 200"


@pytest.mark.parametrize(
    ("sent", "arrives"),
    [(["a", "b"], ["a", "b"]), ('["a", "b"]', ["a", "b"]), ("a, b,,", ["a", "b"]), ([], []), ("", []), ("[]", [])],
)
def test_lists_and_their_texts(sent: Any, arrives: list[str]) -> None:
    assert clean(names=sent) == {"names": arrives}


@pytest.mark.parametrize("sent", [[1], "[1]", {"a": 1}, 5, "[a", '["a",]', ["a"] * 501, '["a", NaN]'])
def test_what_is_no_list_of_strings_is_refused(sent: Any) -> None:
    assert fault(names=sent).parameter == "names"


@pytest.mark.parametrize("sent", [{}, {"a": {"b": [1]}}, '{"a": {"b": [1]}}'])
def test_objects_and_their_texts(sent: Any) -> None:
    assert clean(body=sent) == {"body": json.loads(sent) if isinstance(sent, str) else sent}


@pytest.mark.parametrize(
    "sent", ["[]", "x", 5, [], '{"a": NaN}', '{"a":1,"a":2}', '{"a": 1e999}', "{" * 70, '{"\\ud800":1}']
)
def test_what_is_no_object_is_refused(sent: Any) -> None:
    assert fault(body=sent).message == "Invalid parameter body: must be an object"


@pytest.mark.parametrize("deep", ["[" * 100_000, '{"a":' * 100_000, "[" * 65 + "]" * 65])
def test_T08_deep_texts_inside_an_argument_are_refused(deep: str) -> None:
    for parameter in ("names", "body"):
        assert fault(**{parameter: deep}).parameter == parameter


def test_a_missing_parameter_has_the_exact_text_of_the_guide() -> None:
    with pytest.raises(InvalidArguments) as caught:
        validate.arguments(TAKER, {"limit": "x", "other": 1})
    assert (caught.value.message, caught.value.parameter) == ("Missing required parameter: task_id", "task_id")
    with pytest.raises(InvalidArguments, match="Missing required parameter: task_id"):
        validate.arguments(TAKER, {"task_id": None})


def test_null_is_absent_and_defaults_are_the_functions() -> None:
    assert clean(limit=None, yes=None, names=None) == {}


def test_a_parameter_that_does_not_exist_is_named_inertly() -> None:
    assert fault(Limit=1).message == "Invalid parameter Limit: is no parameter of this tool"
    found = fault(**{"a\n\u202e" + "x" * 200: 1})
    assert found.message.startswith("Invalid parameter a\\n\\u202exxx")
    assert found.message.isascii() and len(found.message) < 150


def test_a_choice_names_what_may_be_said() -> None:
    assert fault(kind="c").message == "Invalid parameter kind: should be 'a' or 'b'"


def test_confirm_never_reaches_the_handler() -> None:
    tool = registry.build(taker, "taker", "tests", "admin", {"destructive": True})
    assert validate.arguments(tool, {"task_id": "T-1", "confirm": True}) == {"task_id": "T-1"}


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=5,
)
NAMES = st.sampled_from(["task_id", "limit", "big", "yes", "names", "body", "kind", "other"])


@given(sent=st.dictionaries(NAMES, JSON))
@settings(max_examples=300, deadline=None)
def test_any_arguments_are_cleaned_or_refused_by_name(sent: dict[str, Any]) -> None:
    try:
        found = validate.arguments(TAKER, sent)
    except InvalidArguments as refused:
        assert refused.parameter and refused.message.isascii()
        return
    assert set(found) == {name for name, value in sent.items() if value is not None}
    assert found["task_id"] == sent["task_id"]
    assert type(found.get("limit", 0)) is int and type(found.get("yes", True)) is bool
