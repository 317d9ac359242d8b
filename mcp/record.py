"""What the verifier reads, wherever it is kept, and what it says of it. Pure."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Protocol

from mcp.anchors import Anchor
from mcp.chain import Block

NOTES = 10  # the most that a report tells


@dataclass(frozen=True, slots=True)
class Stored:
    """A row as it is found: its columns in the order of `audit.COLUMNS`, and its MAC."""

    values: tuple[str, ...]
    mac: str


@dataclass(frozen=True, slots=True)
class Entry:
    """A seal and its row; `row` is None when it is gone."""

    seq: int
    row_uid: str
    mac: str
    row: Stored | None


class Record(Protocol):
    """One record. `whole` is False for an export of some of the rows: then gaps are expected."""

    whole: bool

    def blocks(self) -> Iterator[Block]:
        """Tombstones, then blocks, each in order; blocks below a tombstone may still be there."""

    def entries(self, first: int, last: int) -> Iterator[Entry]:
        """The seals from `first` to `last` in order, with their rows."""

    def stray(self) -> int | None:
        """The first seal above the last block."""

    def loose(self) -> Iterator[tuple[int, Stored]]:
        """Rows without a seal, with their ids."""

    def envelope(self) -> str:
        """What is wrong with the container itself; "" when nothing is."""

    def anchors(self) -> Iterator[Anchor]:
        """The anchor file; raises `BadAnchor`."""


@dataclass(frozen=True, slots=True)
class Damage:
    """The place and kind of a damage, in words."""

    seq: int
    kind: str
    text: str


@dataclass(slots=True)
class Report:
    """What was read, and the first broken place.

    `waiting` rows are new and not sealed yet; numbers up to `cut_to` were cut by retention; `anchored` is the
    last number that the anchor file names.
    """

    rows: int = 0
    blocks: int = 0
    last: int = 0
    cut_to: int = 0
    waiting: int = 0
    anchored: int = 0
    damage: Damage | None = None
    notes: list[str] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        """Whether nothing is broken."""
        return self.damage is None

    def note(self, text: str) -> None:
        """Something to know that is no damage."""
        if len(self.notes) < NOTES:
            self.notes.append(text)
