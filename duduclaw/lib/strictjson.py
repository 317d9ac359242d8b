"""JSON as it must arrive: one meaning a text. Pure.

Refused, each by name: bytes that are no UTF-8, a byte order mark, duplicate keys, NaN and infinities (1e999
too), integers of more than 4,300 digits, more than 64 levels, lone surrogates and NUL characters.
"""

import json
import math
import re
from collections import Counter
from itertools import accumulate
from typing import Any

MAX_DEPTH = 64
MAX_DIGITS = 4_300
BOM = b"\xef\xbb\xbf"
# A string without its end still matches, so that no start is tried twice.
STRING = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"?', re.DOTALL)
NOT_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))
STEP = {ord("["): 1, ord("{"): 1, ord("]"): -1, ord("}"): -1}


class BadJSON(ValueError):
    """A text that is refused; the message says why."""


def loads(data: bytes) -> Any:
    """The value that the bytes spell. Raises `ValueError` saying what is wrong."""
    if data.startswith(BOM):
        raise BadJSON("a byte order mark is not allowed")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise BadJSON(f"not UTF-8 at byte {error.start}") from None
    refuse_deep(data)
    try:
        value = DECODER.decode(text)
    except json.JSONDecodeError as error:
        raise BadJSON(f"not JSON: {error.msg} at character {error.pos}") from None
    if "\\u" in text:
        refuse_unstorable(value)
    return value


def refuse_deep(data: bytes) -> None:
    """Count brackets outside strings; most texts have too few for that to matter."""
    if data.count(b"[") + data.count(b"{") <= MAX_DEPTH:
        return
    brackets = STRING.sub(b"", data).translate(None, NOT_BRACKETS)
    if max(accumulate(map(STEP.__getitem__, brackets)), default=0) > MAX_DEPTH:
        raise BadJSON(f"nested deeper than {MAX_DEPTH} levels")


def refuse_unstorable(value: Any) -> None:
    """Only an escape can spell a lone surrogate or a NUL; no database column takes them."""
    waiting = [value]
    while waiting:
        item = waiting.pop()
        if isinstance(item, dict):
            waiting += [*item, *item.values()]
        elif isinstance(item, list):
            waiting += item
        elif isinstance(item, str):
            refuse_text(item)


def refuse_text(text: str) -> None:
    """Raise when the text cannot be stored as it is."""
    if "\x00" in text:
        raise BadJSON("a NUL character is not allowed")
    if not text.isascii() and any("\ud800" <= character <= "\udfff" for character in text):
        raise BadJSON("a lone surrogate is not allowed")


def without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """The object of these members, each named once."""
    made = dict(pairs)
    if len(made) != len(pairs):
        twice = Counter(key for key, _ in pairs).most_common(1)[0][0]
        raise BadJSON(f"duplicate key {twice[:60]!a}")
    return made


def finite(digits: str) -> float:
    """A number with a fraction or exponent that a double can hold."""
    number = float(digits)
    if math.isinf(number):
        raise BadJSON("a number is out of range")
    return number


def whole(digits: str) -> int:
    """An integer of bearable length."""
    if len(digits) > MAX_DIGITS:
        raise BadJSON(f"an integer has more than {MAX_DIGITS} digits")
    return int(digits)


def constant(name: str) -> Any:
    """NaN and the infinities are no JSON."""
    raise BadJSON(f"{name} is not allowed")


DECODER = json.JSONDecoder(
    object_pairs_hook=without_duplicates, parse_float=finite, parse_int=whole, parse_constant=constant
)
