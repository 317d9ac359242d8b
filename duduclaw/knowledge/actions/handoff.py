"""The note to an agent's next wake: plain and cut, or structured and whole."""

import unicodedata
from dataclasses import asdict, dataclass

from django.db import transaction

from agents.models import PlatformSettings
from duduclaw.knowledge.actions.working_state import lock, remember
from duduclaw.knowledge.models import Handoff
from duduclaw.lib import clock
from mcp.errors import InvalidArguments, Refused
from mcp.policy import Who
from mcp.texts import check_choice, check_text

STATUSES = ["continue", "complete", "blocked"]
PLAIN_CHARACTERS = 1_200
DEFAULT_MAX_BYTES, HIGHEST_MAX_BYTES = 16_384, 32_768  # past this a read could not give it back whole
SHOWN_IN_HISTORY = 200
NEEDS = {"continue": "next_steps", "complete": "evidence", "blocked": "blocker"}
FORBIDS = {"continue": ("blocker",), "complete": ("blocker", "next_steps"), "blocked": ()}
NOT_CONCRETE = frozenset(
    "blocked blocker unknown none no nothing n/a na nil null tbd todo ? yes true error problem issue stuck "
    "無 不明 未知 なし 問題 问题".split()
)
JOINERS = "\u200d\ufe0e\ufe0f"


@dataclass(frozen=True, slots=True)
class Note:
    """A note as given; a blank field counts as absent."""

    note: str
    status: str = ""
    next_steps: str = ""
    evidence: str = ""
    blocker: str = ""

    @property
    def structured(self) -> bool:
        """Whether validation is on."""
        return any(text.strip() for text in (self.status, self.next_steps, self.evidence, self.blocker))

    @property
    def size(self) -> int:
        """Bytes of UTF-8 of the four texts."""
        return sum(len(text.encode()) for text in (self.note, self.next_steps, self.evidence, self.blocker))


def leave_handoff(given: Note, *, by: Who) -> Handoff:
    """Overwrite the caller's note. Raises `InvalidArguments` or `handoff_too_large`; then nothing is written."""
    for name in Note.__dataclass_fields__:
        check_text(name, getattr(given, name), len(getattr(given, name)), blank=name != "note" or given.structured)
    if given.structured:
        check_structure(given)
    note = given if given.structured else Note(cut(given.note))
    with transaction.atomic():
        lock(by)
        check_size(note, by)
        return store(note, by)


def check_structure(note: Note) -> None:
    """A status, what it needs, and nothing that contradicts it."""
    if not note.status.strip():
        raise InvalidArguments("Missing required parameter: status", "status")
    check_choice("status", note.status, STATUSES)
    for name in FORBIDS[note.status]:
        if getattr(note, name).strip():
            raise InvalidArguments(f"Invalid parameter {name}: has no place in status {note.status}", name)
    needed = NEEDS[note.status]
    if not getattr(note, needed).strip():
        raise InvalidArguments(f"Missing required parameter: {needed}", needed)
    if note.status == "blocked" and note.blocker.strip().rstrip(".!。").casefold() in NOT_CONCRETE:
        raise InvalidArguments("Invalid parameter blocker: must say what is in the way", "blocker")


def cut(text: str) -> str:
    """At most 1,200 characters, without parting a letter from its marks."""
    end = PLAIN_CHARACTERS
    while len(text) > end > PLAIN_CHARACTERS - 40 and hangs_together(text[end - 1], text[end]):
        end -= 1
    return text[:end]


def hangs_together(left: str, right: str) -> bool:
    """Whether the second character continues the first."""
    return unicodedata.category(right).startswith("M") or right in JOINERS or left == "\u200d"


def check_size(note: Note, by: Who) -> None:
    """The platform's limit in bytes; above it the whole call is refused."""
    limit = max_bytes(by)
    if note.size > limit:
        raise Refused(
            "handoff_too_large",
            f"the note has {note.size} bytes in UTF-8, {limit} is the most; nothing was written, shorten it",
            outcome="invalid",
            bytes=note.size,
            limit=limit,
        )


def max_bytes(by: Who) -> int:
    """`[memory] working_state_handoff_max_bytes`; what is no positive integer counts as absent."""
    section = PlatformSettings.objects.for_who(by).values_list("memory", flat=True).first()
    value = section.get("working_state_handoff_max_bytes") if isinstance(section, dict) else None
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        return DEFAULT_MAX_BYTES
    return min(value, HIGHEST_MAX_BYTES)


def store(note: Note, by: Who) -> Handoff:
    """Write the note, unless it stands there already."""
    row = Handoff.objects.mine(by).first()
    if row is not None and asdict(note).items() <= vars(row).items():
        return row
    fields = asdict(note) | {"workspace_id": by.workspace, "updated_at": clock.now()}
    row, _ = Handoff.objects.mine(by).update_or_create(agent_id=by.agent, defaults=fields)
    remember(by, "", "handoff", note.note[:SHOWN_IN_HISTORY], note.status)
    return row
