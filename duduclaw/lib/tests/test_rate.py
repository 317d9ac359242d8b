"""Token buckets: what flows in, what stands ready, what is refused and for how long."""

import threading

import pytest

from duduclaw.lib.rate import Bucket, Limiter


def taken(limiter: Limiter, key: str, kind: str, now: float, tries: int) -> int:
    return sum(limiter.check(key, kind, now) is None for _ in range(tries))


def test_a_minutes_worth_stands_ready_and_no_more() -> None:
    limiter = Limiter({"write": Bucket(20)})
    assert taken(limiter, "a", "write", 0.0, 50) == 20


def test_burst_is_what_stands_ready() -> None:
    limiter = Limiter({"read": Bucket(60_000, burst=2_000)})
    assert taken(limiter, "a", "read", 0.0, 3_000) == 2_000
    assert taken(limiter, "a", "read", 0.5, 3_000) == 500


@pytest.mark.parametrize("rate", [1, 7, 20, 60, 100, 6_000])
def test_waiting_the_seconds_named_is_enough(rate: int) -> None:
    limiter = Limiter({"x": Bucket(rate, burst=1)})
    now = 1_000_000.37
    for _ in range(50):
        assert limiter.check("a", "x", now) is None
        wait = limiter.check("a", "x", now)
        assert wait is not None
        assert wait >= 1
        now += wait


def test_a_refusal_takes_nothing() -> None:
    limiter = Limiter({"x": Bucket(60, burst=1)})
    assert limiter.check("a", "x", 0.0) is None
    assert [limiter.check("a", "x", 0.9) for _ in range(5)] == [1] * 5
    assert limiter.check("a", "x", 1.0) is None


def test_keys_and_kinds_do_not_share() -> None:
    limiter = Limiter({"read": Bucket(1), "write": Bucket(1)})
    assert [limiter.check(key, kind, 0.0) for key in "ab" for kind in ("read", "write")] == [None] * 4
    assert limiter.check("a", "read", 0.0) == 60


def test_rate_zero_is_off_and_remembers_nothing() -> None:
    limiter = Limiter({"x": Bucket(0)})
    assert taken(limiter, "a", "x", 0.0, 10_000) == 10_000
    assert len(limiter) == 0


def test_memory_is_bounded_and_the_longest_unused_goes_first() -> None:
    limiter = Limiter({"x": Bucket(1)}, capacity=100)
    for n in range(100):
        limiter.check(str(n), "x", float(n) / 1000)
    assert limiter.check("0", "x", 0.2) is not None
    for n in range(100, 150):
        limiter.check(str(n), "x", 0.3)
    assert len(limiter) == 100
    assert limiter.check("0", "x", 0.3) is not None
    assert limiter.check("1", "x", 0.3) is None


def test_a_clock_that_goes_back_gives_nothing() -> None:
    limiter = Limiter({"x": Bucket(60, burst=1)})
    assert limiter.check("a", "x", 100.0) is None
    assert limiter.check("a", "x", 50.0) == 1
    assert limiter.check("a", "x", 100.5) == 1


def test_threads_share_one_bucket() -> None:
    limiter = Limiter({"x": Bucket(500)})
    counts: list[int] = []
    threads = [threading.Thread(target=lambda: counts.append(taken(limiter, "a", "x", 0.0, 200))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(counts) == 500


@pytest.mark.parametrize("numbers", [(-1, 0), (1, -1)])
def test_negative_numbers_are_refused(numbers: tuple[int, int]) -> None:
    with pytest.raises(ValueError, match="0 or more"):
        Bucket(*numbers)
