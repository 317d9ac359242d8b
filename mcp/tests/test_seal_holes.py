"""Whatever the order of commits, each committed row is found once, and a hole costs a bounded look."""

from random import Random

import pytest

from mcp import holes
from mcp.holes import MOST, SPAN, WINDOW, after, alive, covers, dump, load, merged


@pytest.mark.parametrize("seed", range(50))
def test_rows_that_commit_in_any_order_are_found_once(seed: int) -> None:
    random = Random(seed)
    pending = list(range(1, 200))
    rolled_back = set(random.sample(pending, 20))
    high, kept, visible, sealed = 0, list[holes.Hole](), set[int](), list[int]()
    while pending or visible - set(sealed):
        window = pending[: random.randrange(1, 40)]
        done = random.sample(window, random.randrange(len(window) + 1))
        pending = [row_id for row_id in pending if row_id not in done]
        visible |= set(done) - rolled_back
        found = sorted(row_id for row_id in visible if row_id > high or covers(kept, row_id))[: random.randrange(1, 30)]
        sealed += found
        kept = after(load(dump(kept)), high, found, 1000)
        high = max([high, *found])
        assert not any(covers(kept, row_id) for row_id in sealed), "a sealed id stays in a hole"
    assert sorted(sealed) == sorted(set(range(1, 200)) - rolled_back) and len(sealed) == len(set(sealed))
    assert {row_id for row_id in rolled_back if row_id < high} == {
        row_id for low, top, _ in kept for row_id in range(low, top + 1)
    }


def test_a_hole_closes_after_the_window() -> None:
    kept = after([], 0, [1, 4], 1000)
    assert kept == [(2, 3, 1000)]
    assert alive(kept, 1000 + WINDOW - 1) == kept and alive(kept, 1000 + WINDOW) == []
    assert after(kept, 4, [5], 1000 + WINDOW) == []


def test_holes_are_few() -> None:
    many = [(number, number, 5) for number in range(0, 6 * MOST, 3)]
    less = merged(list(many))
    assert len(less) == MOST and all(covers(less, low) for low, _, _ in many)


def test_holes_are_short_and_the_oldest_go_first() -> None:
    kept = merged([(1, SPAN, 7), (SPAN + 5, SPAN + 6, 3), (SPAN + 9, SPAN + 9, 9)])
    assert kept == [(2, SPAN, 7), (SPAN + 9, SPAN + 9, 9)]
    assert merged([(1, SPAN + 50, 7)]) == [(51, SPAN + 50, 7)], "the ids next to the sealed ones stay"


@pytest.mark.parametrize("text", ["", "[", "5", "[5]", '[["a", "b", "c"]]', "[[1, 2]]", "null"])
def test_a_damaged_text_has_no_holes(text: str) -> None:
    assert load(text) == []
