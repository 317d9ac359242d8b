"""Token buckets with an injected clock. Pure; safe to share between threads."""

import math
import threading
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass

TOLERANCE = 1e-6  # of a token: what floating point loses over a wait
CAPACITY = 10_000


@dataclass(frozen=True, slots=True)
class Bucket:
    """`rate_per_minute` tokens flow in, at most `burst` stand ready (0: as many as a minute's). Rate 0 is off."""

    rate_per_minute: float
    burst: float = 0

    def __post_init__(self) -> None:
        if self.rate_per_minute < 0 or self.burst < 0:
            raise ValueError("a rate and a burst are 0 or more")

    @property
    def size(self) -> float:
        """Tokens of a full bucket, at least one."""
        return max(self.burst or self.rate_per_minute, 1.0)


class Limiter:
    """One bucket for each (key, kind). Past `capacity` keys the one that was longest unused is forgotten."""

    def __init__(self, buckets: Mapping[str, Bucket], capacity: int = CAPACITY) -> None:
        self.buckets = dict(buckets)
        self._capacity = capacity
        self._levels: OrderedDict[tuple[str, str], tuple[float, float]] = OrderedDict()
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._levels)

    def check(self, key: str, kind: str, now: float, bucket: Bucket | None = None) -> int | None:
        """Take a token at `now` (seconds). None when there was one, else the whole seconds to wait, at least 1.

        `bucket` stands in for the limiter's own of that kind, where the settings of the caller decide.
        """
        bucket = bucket or self.buckets[kind]
        if not bucket.rate_per_minute:
            return None
        flow = bucket.rate_per_minute / 60
        with self._lock:
            level, seen = self._levels.pop((key, kind), (bucket.size, now))
            level = min(bucket.size, level + max(0.0, now - seen) * flow)
            granted = level + TOLERANCE >= 1
            self._levels[key, kind] = (max(0.0, level - 1) if granted else level, max(seen, now))
            if len(self._levels) > self._capacity:
                self._levels.popitem(last=False)
        return None if granted else max(1, math.ceil((1 - level) / flow))
