"""Row ids that the sealer passed by and that may still commit. Pure.

Ids are given before a commit, so a row can appear below ids that are sealed already. A hole is a range of ids
that were not visible when a higher one was sealed: `[low, high, seen]`, `seen` in seconds since 1970. It is
looked at again in every run for `WINDOW` seconds; after that its transactions count as rolled back.
"""

import json
from collections.abc import Iterable

WINDOW = 3600  # seconds; far above what any transaction that writes a row may take
MOST = 256  # ranges; more are merged, so that they hold sealed ids too, which costs time and loses nothing
SPAN = 2_000  # ids in all ranges together; beyond it the lowest ids of the oldest range are given up

Hole = tuple[int, int, int]


def load(text: str) -> list[Hole]:
    """The holes of a block; none from a damaged text, which the block's MAC gives away."""
    try:
        return [(int(low), int(high), int(seen)) for low, high, seen in json.loads(text)]
    except (ValueError, TypeError):
        return []


def dump(holes: Iterable[Hole]) -> str:
    """The text that a block carries."""
    return json.dumps([list(hole) for hole in holes], separators=(",", ":"))


def alive(holes: Iterable[Hole], now: int) -> list[Hole]:
    """Those that may still fill."""
    return [hole for hole in holes if hole[2] + WINDOW > now]


def after(holes: Iterable[Hole], high: int, ids: Iterable[int], now: int) -> list[Hole]:
    """The holes when rows with these ascending ids were sealed on top of `high`."""
    kept = alive(holes, now)
    for found in ids:
        if found > high:
            kept += [(high + 1, found - 1, now)] if found > high + 1 else []
            high = found
        else:
            kept = [piece for hole in kept for piece in without(hole, found)]
    return merged(sorted(kept))


def without(hole: Hole, found: int) -> list[Hole]:
    """What is left of a hole around an id that appeared in it."""
    low, high, seen = hole
    if not low <= found <= high:
        return [hole]
    return [piece for piece in ((low, found - 1, seen), (found + 1, high, seen)) if piece[0] <= piece[1]]


def merged(holes: list[Hole]) -> list[Hole]:
    """Few and short enough: the nearest neighbours become one, as young as the younger; then the oldest go."""
    while len(holes) > MOST:
        at = min(range(len(holes) - 1), key=lambda index: holes[index + 1][0] - holes[index][1])
        left, right = holes[at], holes[at + 1]
        holes[at : at + 2] = [(left[0], right[1], max(left[2], right[2]))]
    excess = sum(high - low + 1 for low, high, _ in holes) - SPAN
    while excess > 0:
        at = min(range(len(holes)), key=lambda index: holes[index][2])
        low, high, seen = holes[at]
        holes[at : at + 1] = [(low + excess, high, seen)] if low + excess <= high else []
        excess -= high - low + 1
    return holes


def covers(holes: Iterable[Hole], row_id: int) -> bool:
    """Whether a row of that id may still be waiting."""
    return any(low <= row_id <= high for low, high, _ in holes)
