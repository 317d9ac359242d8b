"""Pages that every client reads whole: cut at 45,000 characters, with an own cursor and a mark. Pure."""

import base64
import binascii
import json
from collections.abc import Callable, Sequence
from typing import Any

from duduclaw.lib.canonical import canonical
from mcp.errors import InvalidArguments

MOST_CHARACTERS = 45_000
ENVELOPE = 1_000  # for the cursor, the marks and the names around the items


def fit(
    items: Sequence[dict[str, Any]], limit: int, room: int = MOST_CHARACTERS - ENVELOPE, least: int = 1
) -> list[dict[str, Any]]:
    """The first items, at most `limit`, whose JSON together stays within `room` characters; `least` always fit."""
    kept: list[dict[str, Any]] = []
    for item in items[:limit]:
        room -= len(canonical(item)) + 1
        if room < 0 and len(kept) >= least:
            break
        kept.append(item)
    return kept


def page(
    name: str,
    items: Sequence[dict[str, Any]],
    limit: int,
    cursor: Callable[[dict[str, Any]], str],
    *,
    room: int = MOST_CHARACTERS - ENVELOPE,
    least: int = 1,
) -> dict[str, Any]:
    """`{name, "count", "next_cursor", "truncated"}`; pass one item more than `limit` to say that there is more.

    `truncated` is true when the size, not the limit, ended the page. Without an item there is no cursor.
    """
    kept = fit(items, limit, room, least)
    more = len(items) > len(kept)
    return {
        name: kept,
        "count": len(kept),
        "next_cursor": cursor(kept[-1]) if more and kept else None,
        "truncated": len(kept) < min(len(items), limit),
    }


def encode_cursor(kind: str, *parts: str | int) -> str:
    """An opaque place in a list of `kind`."""
    return base64.urlsafe_b64encode(json.dumps([kind, *parts]).encode()).decode().rstrip("=")


def decode_cursor(kind: str, text: str, *types: type) -> list[Any]:
    """The parts of a cursor of that kind. Raises `InvalidArguments` naming `cursor`."""
    fault = InvalidArguments("Invalid parameter cursor: is no cursor of this list", "cursor")
    if len(text) > 400 or not text.isascii():
        raise fault
    try:
        parts = json.loads(base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True))
    except (binascii.Error, ValueError, RecursionError):
        raise fault from None
    if not isinstance(parts, list) or [type(part) for part in parts] != [str, *types] or parts[0] != kind:
        raise fault
    return parts[1:]
