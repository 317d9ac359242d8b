"""Definitions and lists as bytes: made once, shared, the id as it came."""

import json

import pytest

from mcp import registry, render
from mcp.policy import Who
from tests.tools import peek

WHO = Who(kind="operator", workspace="w", name="operator", scopes=frozenset({"admin"}), role="admin")


@pytest.mark.parametrize("number", [0, "0", 1.5, 2**60, 'a\u2028"b', None])
def test_the_id_is_spliced_in_as_it_came(number: object) -> None:
    frame = json.loads(render.view(WHO).frame(number))  # type: ignore[arg-type]
    assert (frame["id"], type(frame["id"])) == (number, type(number))


def test_the_same_rights_share_one_text() -> None:
    other = Who(kind="operator", workspace="v", name="other", scopes=frozenset({"admin"}), role="operator")
    assert render.view(WHO) is render.view(other)
    assert render.view(WHO).listing is render.view(other).listing


def test_a_tool_that_comes_and_goes_is_seen_at_once_and_named_in_the_fingerprint() -> None:
    before = render.view(WHO).fingerprint
    with registry.temporarily(peek()):
        assert "peek" in [tool.name for tool in render.visible(WHO)]
        assert render.view(WHO).fingerprint != before
    assert render.view(WHO).fingerprint == before
    with registry.temporarily(peek(idempotent=True)):
        shown = next(tool for tool in json.loads(render.view(WHO).listing)["tools"] if tool["name"] == "peek")
        assert shown["annotations"]["idempotentHint"] is True


def test_an_empty_set_has_a_fingerprint() -> None:
    assert render.View(()).fingerprint and render.View(()).listing == '{"tools":[]}'


def test_a_result_longer_than_usual_is_announced() -> None:
    meta = json.loads(render.definition(peek(max_chars=60_000)))["_meta"]
    assert meta["anthropic/maxResultSizeChars"] == 60_000
    assert "anthropic/maxResultSizeChars" not in json.loads(render.definition(peek()))["_meta"]
