"""Checks of single values, and the merge of a change into what is stored. Pure; every fault names its field."""

from collections.abc import Callable, Mapping
from typing import Any

from mcp.errors import InvalidArguments

Check = Callable[[str, Any, Any], Any]
"""(where, value, stored) -> the value to store. Raises `InvalidArguments`."""
Schema = Mapping[str, Any]
"""Field -> `Check`, or the schema of a nested object."""


def fault(where: str, words: str) -> InvalidArguments:
    """The error of one field."""
    return InvalidArguments(f"{where}: {words}", where)


def refuse_unknown(where: str, given: Mapping[str, Any], known: Mapping[str, Any] | frozenset[str]) -> None:
    """Raise naming every field that is none."""
    unknown = [f"{where}.{key}" if where else key for key in given if key not in known]
    if unknown:
        shown = ", ".join(key[:80] for key in sorted(unknown)[:10])
        raise InvalidArguments(f"unknown field: {shown}", unknown[0][:80])


def merge(where: str, schema: Schema, stored: Any, given: Any) -> dict[str, Any]:
    """`stored` with the given keys replaced; objects merge, lists are whole."""
    if not isinstance(given, dict):
        raise fault(where, "must be an object")
    refuse_unknown(where, given, schema)
    merged = dict(stored) if isinstance(stored, dict) else {}
    for key, value in given.items():
        rule, place = schema[key], f"{where}.{key}" if where else key
        before = merged.get(key)
        merged[key] = merge(place, rule, before, value) if isinstance(rule, Mapping) else rule(place, value, before)
    return merged


def boolean(where: str, value: Any, stored: Any = None) -> bool:
    """Strictly true or false."""
    if not isinstance(value, bool):
        raise fault(where, "must be true or false")
    return value


def flag(where: str, value: Any, stored: Any = None) -> bool | None:
    """True, false, or null for a key that is not set."""
    return None if value is None else boolean(where, value)


def whole(lowest: int, highest: int) -> Check:
    """An integer of a range."""

    def check(where: str, value: Any, stored: Any = None) -> int:
        if type(value) is not int or not lowest <= value <= highest:
            raise fault(where, f"must be an integer from {lowest} to {highest}")
        return value

    return check


def line(longest: int, *, blank: bool = True) -> Check:
    """One line of text without outer blanks."""

    def check(where: str, value: Any, stored: Any = None) -> str:
        if not isinstance(value, str) or len(value) > longest or value != value.strip():
            raise fault(where, f"must be a string of at most {longest} characters without outer blanks")
        if not value and not blank:
            raise fault(where, "must not be blank")
        if any(character < " " or character == "\x7f" for character in value):
            raise fault(where, "must be one line without control characters")
        return value

    return check


def choice(*allowed: str) -> Check:
    """One of some words."""

    def check(where: str, value: Any, stored: Any = None) -> str:
        if not isinstance(value, str) or value not in allowed:
            raise fault(where, f"must be one of {', '.join(allowed)}")
        return value

    return check


def entries(most: int, longest: int) -> Check:
    """A list of strings without outer blanks. What is stored already may stay as it is."""

    def check(where: str, value: Any, stored: Any = None) -> list[str]:
        if not isinstance(value, list) or len(value) > most:
            raise fault(where, f"must be a list of at most {most} strings")
        kept = [entry for entry in stored if isinstance(entry, str)] if isinstance(stored, list) else []
        for entry in value:
            if not isinstance(entry, str):
                raise fault(where, "every entry must be a string")
            if entry not in kept and (not 0 < len(entry) <= longest or entry != entry.strip()):
                raise fault(where, f"entry {entry[:60]!r} must have 1 to {longest} characters without outer blanks")
        return list(value)

    return check
