"""The record in an export's directory, read line by line."""

import json
from collections.abc import Iterator
from heapq import merge
from pathlib import Path
from typing import Any

from mcp import anchors, audit
from mcp.anchors import Anchor
from mcp.chain import Block, same
from mcp.export import BLOCKS, FILES, MANIFEST, STREAMS, Choice, digest, line_of, manifest_mac
from mcp.record import Entry, Stored

UID = audit.COLUMNS.index("uid")


class NotAnExport(Exception):
    """The directory lacks a file or its manifest cannot be read; the text says which."""


class Directory:
    """An export as `export.to_directory` wrote it. A line that cannot be read counts as missing."""

    def __init__(self, directory: Path, key: bytes, anchor_file: Path | None = None) -> None:
        self._directory, self._key = directory, key
        self._anchors = anchor_file or directory / anchors.NAME
        try:
            self._manifest = json.loads((directory / MANIFEST).read_text(encoding="utf-8"))
            choice = Choice(*(str(self._manifest[name]) for name in ("since", "until", "workspace")))
            self._last = int(self._manifest["last"])
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise NotAnExport(f"{directory / MANIFEST}: not the manifest of an export ({error})") from error
        missing = [name for name in FILES if not (directory / name).is_file()]
        if missing:
            raise NotAnExport(f"{directory}: {', '.join(missing)} is missing")
        self.whole = choice.whole
        self._entries = merge(*(self._read(name) for name in STREAMS.values()), key=lambda entry: entry.seq)
        self._next = next(self._entries, None)

    def blocks(self) -> Iterator[Block]:
        """In the order of the file."""
        for line in lines(self._directory / BLOCKS):
            block = as_block(line)
            if block is not None:
                yield block

    def entries(self, first: int, last: int) -> Iterator[Entry]:
        """What stands next in the files, up to `last`; each line is read once."""
        while self._next is not None and self._next.seq <= last:
            yield self._next
            self._next = next(self._entries, None)

    def stray(self) -> int | None:
        """What is left in the files when every block was read."""
        return self._next.seq if self._next else None

    def loose(self) -> Iterator[tuple[int, Stored]]:
        """Only sealed rows are exported."""
        return iter(())

    def anchors(self) -> Iterator[Anchor]:
        """Those that the export's end allows to look for."""
        return (anchor for anchor in anchors.read(self._anchors) if anchor.last <= self._last)

    def envelope(self) -> str:
        """The manifest's MAC, and each file against it."""
        body = {name: value for name, value in self._manifest.items() if name != "mac"}
        if not same(manifest_mac(self._key, body), str(self._manifest.get("mac", ""))):
            return "the manifest was changed: its MAC is wrong"
        changed = [name for name in FILES if digest(self._directory / name) != body["sha256"].get(name)]
        return f"{', '.join(changed)} is not as it was exported: a line was removed or changed" if changed else ""

    def _read(self, name: str) -> Iterator[Entry]:
        for line in lines(self._directory / name):
            entry = as_entry(line)
            if entry is not None:
                yield entry


def lines(path: Path) -> Iterator[Any]:
    """The JSON of each line; None for what is none."""
    with path.open(encoding="utf-8", errors="replace") as file:
        for line in file:
            try:
                yield json.loads(line)
            except (ValueError, RecursionError):
                yield None


def as_entry(line: Any) -> Entry | None:
    """A line of a stream. One that shows something else than what it stores has no MAC that fits."""
    try:
        stored = Stored(tuple(str(line["stored"][column]) for column in audit.COLUMNS), str(line["mac"]))
        entry = Entry(int(line["seq"]), stored.values[UID], str(line["seal"]), stored)
        honest = line == json.loads(json.dumps(line_of(entry, stored)))
    except (KeyError, TypeError, ValueError):
        return None
    return entry if honest else Entry(entry.seq, entry.row_uid, entry.mac, Stored(stored.values, ""))


def as_block(line: Any) -> Block | None:
    """A line of the file of blocks."""
    try:
        block = Block(**line)
    except TypeError:
        return None
    numbers = (block.first, block.last, block.count, block.high)
    texts = (block.root, block.previous, block.sealed_at, block.holes, block.mac)
    right = all(type(number) is int for number in numbers) and all(isinstance(text, str) for text in texts)
    return block if right else None
