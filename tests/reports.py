"""Reports cross from the test processes as UTF-8: a lone surrogate in a log or an assertion must not end the run."""

from collections.abc import Generator
from typing import Any

import pytest


def encodable(value: Any) -> Any:
    """The same value with every lone surrogate escaped."""
    if isinstance(value, str):
        return value if value.isascii() else value.encode("utf-8", "backslashreplace").decode("utf-8")
    if isinstance(value, dict):
        return {encodable(key): encodable(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(encodable(item) for item in value)
    return value


@pytest.hookimpl(wrapper=True)
def pytest_report_to_serializable() -> Generator[None, Any, Any]:
    """Runs in the test process, on what it sends."""
    return encodable((yield))
