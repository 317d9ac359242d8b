"""Tags, and the ones that steer the platform: only people set those."""

from collections.abc import Sequence

from mcp.errors import InvalidArguments, Refused
from mcp.policy import Who

GRANT, OUTCOME, RESEARCH = "grant:", "outcome:", "auto-research"
MOST = 100


def parse(value: str | Sequence[str]) -> list[str]:
    """A comma list, or a list of tags, as trimmed tags; empty ones are dropped. Raises `InvalidArguments`."""
    parts = value.split(",") if isinstance(value, str) else list(value)
    if not all(isinstance(part, str) and "," not in part for part in parts):
        raise InvalidArguments("Invalid parameter tags: a tag is text without a comma", "tags")
    tags = [part.strip() for part in parts if part.strip()]
    if len(tags) > MOST:
        raise InvalidArguments(f"Invalid parameter tags: {MOST} tags are the most", "tags")
    return tags


def reserved(tags: Sequence[str]) -> list[str]:
    """The tags that only people set, in their order and with their repetitions."""
    return [tag for tag in tags if tag.startswith((GRANT, OUTCOME)) or tag == RESEARCH]


def granted_tools(tags: Sequence[str]) -> list[str]:
    """The tools that `grant:` tags name, each once."""
    tools = (tag.removeprefix(GRANT).strip() for tag in tags if tag.startswith(GRANT))
    return list(dict.fromkeys(tool for tool in tools if 0 < len(tool) <= 64))


def check_change(by: Who, before: Sequence[str], after: Sequence[str]) -> None:
    """Raise when anyone but a person adds, drops, repeats or moves a reserved tag."""
    if not by.is_human and reserved(before) != reserved(after):
        raise Refused("reserved_tag_change", "tags outcome:..., grant:... and auto-research are set by people only")
