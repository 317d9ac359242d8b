"""Tool definitions as bytes, made once a tool. A list is a join of ready parts; `/tools` has the same bytes."""

from functools import lru_cache
from hashlib import sha256

from mcp.policy import Who, toolset
from mcp.registry import Tool, every
from mcp.wire import Id, dumps

DOCS = "duduclaw://docs/tools/"


@lru_cache(maxsize=2048)
def definition(tool: Tool) -> str:
    """One entry of `tools/list`."""
    meta: dict[str, object] = {
        "duduclaw/scope": tool.scope,
        "duduclaw/family": tool.family,
        "duduclaw/gate": tool.switch or ("human_only" if tool.human_only else None),
        "duduclaw/docs": f"{DOCS}{tool.name}",
    }
    if tool.max_chars > 50_000:
        meta["anthropic/maxResultSizeChars"] = tool.max_chars
    return dumps(
        {
            "name": tool.name,
            "description": tool.description,
            "inputSchema": tool.schema,
            "annotations": tool.annotations,
            "_meta": meta,
        }
    )


def visible(who: Who) -> tuple[Tool, ...]:
    """What the principal may call now, sorted by name."""
    return toolset(every(), who)


@lru_cache(maxsize=512)
def listing(tools: tuple[Tool, ...]) -> str:
    """`{"tools": [...]}`; principals with the same rights share one text."""
    return '{"tools":[' + ",".join(definition(tool) for tool in tools) + "]}"


def list_frame(id: Id, tools: tuple[Tool, ...]) -> str:
    """The answer to `tools/list`."""
    return '{"jsonrpc":"2.0","id":' + dumps_id(id) + ',"result":' + listing(tools) + "}"


def dumps_id(id: Id) -> str:
    """The id as it came: a string stays a string, 0 stays 0."""
    return dumps({"id": id})[6:-1]


def fingerprint(tools: tuple[Tool, ...]) -> str:
    """What a session remembers of a list: the set of names."""
    return hashed(tuple(tool.name for tool in tools))


@lru_cache(maxsize=512)
def hashed(names: tuple[str, ...]) -> str:
    """A short hash of sorted names; never empty, so "" means that nothing was listed."""
    return sha256("\n".join(names).encode()).hexdigest()[:32]

