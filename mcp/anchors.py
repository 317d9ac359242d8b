"""The anchor file: the last block's MAC, kept outside the database, so that a cut tail is missed.

One JSON object a line, `{"last", "mac", "sealed_at"}`, appended and synced after each block. Copy the file to
another machine: it proves as much as the place where it is kept is safe.
"""

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from django.conf import settings

NAME = "audit-anchors.jsonl"
TAIL = 4096  # bytes; more than the longest line


@dataclass(frozen=True, slots=True)
class Anchor:
    """A block as it was sealed: its last number and its MAC."""

    last: int
    mac: str
    sealed_at: str = ""


class BadAnchor(ValueError):
    """A line that is no anchor; the text names it."""


def path() -> Path:
    """Where the file is."""
    return Path(settings.HOME) / NAME


def read(source: Path, until: int | None = None) -> Iterator[Anchor]:
    """The anchors of a file in order, of its first `until` bytes; none when there is no file.

    A last line that a crash tore is not an anchor.
    """
    if not source.exists():
        return
    read_so_far = 0
    with source.open("rb") as lines:
        for number, line in enumerate(lines, 1):
            read_so_far += len(line)
            if not line.endswith(b"\n") or (until is not None and read_so_far > until):
                return
            yield parse(line, number)


def parse(line: bytes, number: int) -> Anchor:
    """One line; raises `BadAnchor`."""
    try:
        return Anchor(**json.loads(line))
    except (ValueError, TypeError) as error:
        raise BadAnchor(f"line {number} of the anchor file cannot be read") from error


class Keeper:
    """The file while this process may write it."""

    def __init__(self, descriptor: int) -> None:
        self._file = descriptor

    def newest(self) -> Anchor | None:
        """The last whole line; what a crash tore is removed first."""
        size = os.fstat(self._file).st_size
        tail = os.pread(self._file, TAIL, max(0, size - TAIL))
        whole = tail[: tail.rfind(b"\n") + 1]
        if len(whole) < len(tail):
            os.ftruncate(self._file, size - len(tail) + len(whole))
        lines = whole.splitlines()
        return parse(lines[-1], 0) if lines else None

    def append(self, anchors: list[Anchor]) -> None:
        """Write and sync."""
        text = "".join(json.dumps(asdict(anchor)) + "\n" for anchor in anchors)
        os.write(self._file, text.encode())
        os.fsync(self._file)


@contextmanager
def keeping() -> Iterator[Keeper]:
    """Hold the file, made readable by its owner alone; others wait."""
    target = path()
    fresh = not target.exists()
    descriptor = os.open(target, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        if fresh:
            sync_directory(target.parent)
        yield Keeper(descriptor)
    finally:
        os.close(descriptor)


def sync_directory(directory: Path) -> None:
    """Make a new file's name durable."""
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
