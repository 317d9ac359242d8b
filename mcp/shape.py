"""A handler's value as the wire wants it: the same data as structured content and as text."""

from typing import Any

from duduclaw.lib.canonical import canonical
from mcp.registry import Tool


def text(words: str) -> dict[str, Any]:
    """One text block."""
    return {"type": "text", "text": words}


def result(tool: Tool, value: dict[str, Any]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """(structuredContent, content). What is over the tool's limit is cut and says so; paging is the tool's own."""
    whole = canonical(value)
    if len(whole) > tool.max_chars:
        value, whole = cut(whole, tool.max_chars)
    return value, [text(whole)]


def cut(whole: str, most: int) -> tuple[dict[str, Any], str]:
    """The first part of a text as a value that says so, and its JSON of at most `most` characters."""
    room = most - 200
    while True:
        value = {"truncated": True, "total_characters": len(whole), "text": whole[:room]}
        short = canonical(value)
        if len(short) <= most:
            return value, short
        room -= len(short) - most
