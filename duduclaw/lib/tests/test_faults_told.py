"""A failed call's trace for the log, without the secrets of its arguments."""

import json
from typing import Any

import pytest

from duduclaw.lib.faults import hidden, told
from duduclaw.lib.redact import mask


def raised(text: str) -> ValueError:
    """An exception with a trace."""
    try:
        raise ValueError(text)
    except ValueError as fault:
        return fault


ARGUMENTS: list[tuple[Any, str]] = [
    ({"password": "correct horse"}, "correct horse"),
    ({"password": ["battery one", "staple two"]}, "battery"),
    ({"secret": {"value": "line\nbreak \u00e9"}}, "break"),
    ({"list": [{"apiKey": "abcd"}]}, "abcd"),
    ({"pin": 1, "token": 987654}, "987654"),
    ({"a": "ghp_abcdefghij", "b": "klmnopqrstuvwxyz0123456789"}, "klmnop"),
]


@pytest.mark.parametrize(("arguments", "secret"), ARGUMENTS)
@pytest.mark.parametrize("show", [repr, json.dumps, str])
def test_T51_an_echoed_secret_is_taken_out(arguments: Any, secret: str, show: Any) -> None:
    text = told(raised(f"cannot use {show(arguments)}"), arguments)
    assert secret not in text
    assert "ValueError: cannot use" in text and "test_faults_told.py" in text


def test_ordinary_text_stays() -> None:
    arguments = {"note": "ok", "limit": 5, "none": None, "list": ["a", "b"]}
    assert list(hidden(arguments, mask(arguments))) == []
    assert told(raised(f"cannot use {arguments}"), arguments).rstrip().endswith(f"ValueError: cannot use {arguments}")


def test_a_short_secret_does_not_hide_the_text() -> None:
    assert "no such column" in told(raised("no such column"), {"password": "no"})
