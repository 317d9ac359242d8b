"""How an entry of a tool list names tools: exact, or a trailing `*`, on one server. Entries match as stored."""

SERVER = "duduclaw"


def names(entry: str, tool: str) -> bool:
    """Whether the list entry `entry` names the platform tool `tool` (a bare name)."""
    entry = entry.split("(", 1)[0]
    if entry == "*":
        return True
    server, pattern = split(entry)
    if server != SERVER or not pattern:
        return False
    if pattern.endswith("*") and pattern.count("*") == 1:
        return tool.startswith(pattern[:-1])
    return pattern == tool


def split(entry: str) -> tuple[str, str]:
    """(server, name pattern): `mcp__s__n`, `mcp__s` (all of it) or a bare name of this server."""
    if not entry.startswith("mcp__"):
        return SERVER, entry
    server, separator, name = entry.removeprefix("mcp__").partition("__")
    return server, name if separator else "*"


def bare(tool: str) -> str:
    """The name without this server's qualifier: `mcp__duduclaw__x` -> `x`; others stay as they are."""
    server, name = split(tool)
    return name if tool.startswith("mcp__") and server == SERVER else tool


def first(entries: tuple[str, ...], tool: str) -> str | None:
    """The first entry that names `tool`, or None."""
    return next((entry for entry in entries if names(entry, tool)), None)
