"""The formulas of the record: what each MAC covers. Pure, so that an export is verified without Django's database.

A row's MAC covers its stored text; a seal's binds a row to its number; a block's root covers the seals in
order, and its MAC the block with the MAC of the one before. Every MAC is HMAC-SHA256 in hex.
"""

import hashlib
import hmac
import json
from collections.abc import Iterable
from dataclasses import dataclass

GENESIS = "0" * 64  # what the first block names as the one before it


def key_of(secret: str) -> bytes:
    """The audit's key, from the secret that the platform keeps in a file."""
    return hashlib.sha256(b"audit:" + secret.encode()).digest()


def sign(key: bytes, kind: str, values: Iterable[str | int | bool]) -> str:
    """The MAC of values of one kind; kinds never collide."""
    return hmac.digest(key, json.dumps([kind, *values]).encode(), "sha256").hex()


def same(left: str, right: str) -> bool:
    """Constant-time comparison of two MACs."""
    return hmac.compare_digest(left.encode(), right.encode())


def seal_mac(key: bytes, seq: int, row_uid: str, row_mac: str) -> str:
    """The MAC that binds a row to its place."""
    return sign(key, "seal", (seq, row_uid, row_mac))


class Root:
    """The hash over seals in order, fed one at a time."""

    def __init__(self) -> None:
        self._hash = hashlib.sha256()

    def add(self, mac: str) -> None:
        """The next seal."""
        self._hash.update(mac.encode())

    def hexdigest(self) -> str:
        """The root of what was added."""
        return self._hash.hexdigest()


def root(macs: Iterable[str]) -> str:
    """The root over seals in order."""
    made = Root()
    for mac in macs:
        made.add(mac)
    return made.hexdigest()


@dataclass(frozen=True, slots=True)
class Block:
    """Numbers `first` to `last`, or, as a tombstone, what retention cut of them."""

    first: int
    last: int
    count: int
    root: str
    previous: str
    tombstone: bool
    sealed_at: str
    high: int
    holes: str
    mac: str = ""

    def signed(self, key: bytes) -> str:
        """The MAC that this block must carry."""
        values = (self.first, self.last, self.count, self.root, self.previous, bool(self.tombstone))
        return sign(key, "block", (*values, self.sealed_at, self.high, self.holes))

    @property
    def link(self) -> str:
        """What the next block names as the one before it."""
        return self.root if self.tombstone else self.mac
