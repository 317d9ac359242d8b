"""An export of the record: both streams as JSONL, with all that a verifier needs who has the key and no database.

Each line shows a row in the field names of the original's logs and of REST, and carries the row as it is
stored, its number, its MAC and its seal. The verifier builds the line again from what is stored, so a line
says nothing else than what was signed. The manifest's MAC covers every file.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TextIO

from django.conf import settings

from mcp import anchors, audit, audit_reads
from mcp.chain import sign
from mcp.record import Entry, Stored
from mcp.stored import Database

STREAMS = {audit.CALLS: "tool_calls.jsonl", audit.SECURITY: "security_audit.jsonl"}
BLOCKS, MANIFEST = "audit_blocks.jsonl", "manifest.json"
FILES = (*STREAMS.values(), BLOCKS, anchors.NAME)


@dataclass(frozen=True, slots=True)
class Choice:
    """Which rows: stamps, the end exclusive, and a workspace's id; blank asks for all."""

    since: str = ""
    until: str = ""
    workspace: str = ""

    @property
    def whole(self) -> bool:
        """Whether nothing is left out."""
        return self == Choice()

    def wants(self, row: Stored) -> bool:
        """Whether the row is asked for."""
        columns = dict(zip(audit.COLUMNS, row.values, strict=True))
        stamp = columns["timestamp"]
        inside = self.since <= stamp and (not self.until or stamp < self.until)
        return inside and self.workspace in ("", columns["workspace"])


def lines(choice: Choice) -> Iterator[str]:
    """The lines of both streams in the sealed order."""
    for _, line in numbered(Database(), choice):
        yield line


def numbered(record: Database, choice: Choice) -> Iterator[tuple[str, str]]:
    """Each chosen row's stream and line. What is damaged is left out: the verifier misses it."""
    for block in record.blocks():
        for entry in () if block.tombstone else record.entries(block.first, block.last):
            if entry.row is not None and choice.wants(entry.row):
                stream = entry.row.values[audit.COLUMNS.index("stream")]
                yield stream, dumped(line_of(entry, entry.row))


def line_of(entry: Entry, row: Stored) -> dict[str, Any]:
    """One line of a stream's file."""
    columns = dict(zip(audit.COLUMNS, row.values, strict=True))
    shown = audit_reads.typed(columns)
    names = call_names(shown, columns) if columns["stream"] == audit.CALLS else event_names(shown)
    return {"seq": entry.seq, **names, **shown, "stored": columns, "mac": row.mac, "seal": entry.mac}


def call_names(shown: Mapping[str, Any], columns: Mapping[str, str]) -> dict[str, Any]:
    """The original's names of a call; a success has no `error_class`."""
    details = shown["details"] if isinstance(shown["details"], dict) else {}
    named = {
        "tool_name": shown["tool"],
        "agent_id": shown["agent"],
        "params_summary": columns["arguments"],
        "success": shown["outcome"] == audit.OK,
    }
    if shown["outcome"] != audit.OK:
        named["error_class"] = details.get("error_class", shown["reason"])
    return {**named, **({"target": details["target"]} if "target" in details else {})}


def event_names(shown: Mapping[str, Any]) -> dict[str, Any]:
    """The original's names of an event; `details` stands among what is shown."""
    details = shown["details"] if isinstance(shown["details"], dict) else {}
    return {"event_type": shown["reason"], "agent_id": shown["agent"], "severity": details.get("severity", "info")}


def to_directory(target: Path, choice: Choice) -> dict[str, int]:
    """Write the files, readable by their owner alone, and return how many lines each has.

    Raises `FileExistsError` when the directory holds anything.
    """
    target.mkdir(mode=0o700, parents=True, exist_ok=True)
    if any(target.iterdir()):
        raise FileExistsError(f"{target} is not empty")
    record = Database()
    counts = write_streams(target, record, choice)
    counts[BLOCKS] = write_lines(target / BLOCKS, map(asdict, record.blocks()))
    counts[anchors.NAME] = write_lines(target / anchors.NAME, map(asdict, record.anchors()))
    manifest = {
        "format": 1,
        **asdict(choice),
        "last": record.last,
        "lines": counts,
        "sha256": {name: digest(target / name) for name in FILES},
    }
    write_lines(target / MANIFEST, [{**manifest, "mac": manifest_mac(settings.AUDIT_KEY, manifest)}])
    return counts


def write_streams(target: Path, record: Database, choice: Choice) -> dict[str, int]:
    """Both streams in one reading; a row that names no stream stands among the calls."""
    counts = dict.fromkeys(STREAMS.values(), 0)
    with fresh(target / STREAMS[audit.CALLS]) as calls, fresh(target / STREAMS[audit.SECURITY]) as events:
        for stream, line in numbered(record, choice):
            (events if stream == audit.SECURITY else calls).write(line + "\n")
            counts[STREAMS.get(stream, STREAMS[audit.CALLS])] += 1
    return counts


def write_lines(path: Path, values: Iterable[Mapping[str, Any]]) -> int:
    """A new file with one JSON object a line; how many there are."""
    count = 0
    with fresh(path) as file:
        for value in values:
            file.write(dumped(value) + "\n")
            count += 1
    return count


def fresh(path: Path) -> TextIO:
    """A new file for its owner alone."""
    path.touch(mode=0o600, exist_ok=False)
    return path.open("w", encoding="utf-8")


def manifest_mac(key: bytes, manifest: Mapping[str, Any]) -> str:
    """The MAC over the manifest's canonical form."""
    return sign(key, "manifest", (json.dumps(manifest, sort_keys=True),))


def digest(path: Path) -> str:
    """SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def dumped(value: Mapping[str, Any]) -> str:
    """One line of JSON."""
    return json.dumps(value, ensure_ascii=False)
