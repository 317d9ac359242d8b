"""How an entry of a tool list names tools: exact, or a trailing `*`, on one server. Entries match as stored. Pure."""

from functools import lru_cache
from typing import NamedTuple

SERVER = "duduclaw"
NOWHERE = 1 << 30  # behind every entry

Entries = tuple[str, ...]


class Patterns(NamedTuple):
    """The entries of a list that can match at all, with their places in it."""

    exact: dict[str, int]
    prefixes: tuple[tuple[str, int], ...]


@lru_cache(maxsize=4096)
def read(entries: Entries) -> Patterns:
    """A list as it is asked: once read, a name costs one look-up and its prefixes."""
    exact: dict[str, int] = {}
    prefixes: list[tuple[str, int]] = []
    for place, entry in enumerate(entries):
        pattern = pattern_of(entry)
        if pattern.endswith("*") and pattern.count("*") == 1:
            prefixes.append((pattern[:-1], place))
        elif pattern:
            exact.setdefault(pattern, place)
    return Patterns(exact, tuple(prefixes))


def pattern_of(entry: str) -> str:
    """The name pattern of an entry for this server, "" when it names nothing here. A note in brackets is dropped."""
    entry = entry.split("(", 1)[0]
    server, pattern = (SERVER, entry) if entry == "*" else split(entry)
    return pattern if server == SERVER else ""


def split(entry: str) -> tuple[str, str]:
    """(server, name pattern): `mcp__s__n`, `mcp__s` (all of it) or a bare name of this server."""
    if not entry.startswith("mcp__"):
        return SERVER, entry
    server, separator, name = entry.removeprefix("mcp__").partition("__")
    return server, name if separator else "*"


def bare(tool: str) -> str:
    """The name without this server's qualifier: `mcp__duduclaw__x` -> `x`; others stay as they are."""
    server, name = split(tool)
    return name if tool.startswith("mcp__") and server == SERVER else tool


def first(entries: Entries, tool: str) -> str | None:
    """The first entry that names the platform tool `tool` (a bare name), or None."""
    if not entries:
        return None
    patterns = read(entries)
    by_prefix = next((place for prefix, place in patterns.prefixes if tool.startswith(prefix)), NOWHERE)
    place = min(patterns.exact.get(tool, NOWHERE), by_prefix)
    return None if place == NOWHERE else entries[place]


def names(entry: str, tool: str) -> bool:
    """Whether one list entry names `tool`."""
    return first((entry,), tool) is not None
