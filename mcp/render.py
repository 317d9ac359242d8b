"""Tool definitions as bytes, made once a tool. A list is a join of ready parts; `/tools` has the same bytes."""

from dataclasses import dataclass
from functools import cached_property, lru_cache
from hashlib import sha256

from mcp.policy import Who, toolset
from mcp.registry import Tool, every
from mcp.wire import Id, dumps

DOCS = "duduclaw://docs/tools/"
USUAL_MAX = 50_000  # characters of a result that clients take without being told


@dataclass(frozen=True, eq=False)
class View:
    """What one set of rights sees: tools sorted by name. Principals with the same rights share it."""

    tools: tuple[Tool, ...]

    @cached_property
    def fingerprint(self) -> str:
        """A short hash of the names, which is what a session remembers; never empty, even of an empty set."""
        return sha256("\n".join(tool.name for tool in self.tools).encode()).hexdigest()[:32]

    @cached_property
    def listing(self) -> str:
        """`{"tools": [...]}`."""
        return '{"tools":[' + ",".join(definition(tool) for tool in self.tools) + "]}"

    def frame(self, request_id: Id) -> str:
        """The answer to `tools/list`; the id as it came: a string stays a string, 0 stays 0."""
        return '{"jsonrpc":"2.0","id":' + dumps({"id": request_id})[6:-1] + ',"result":' + self.listing + "}"


def view(who: Who) -> View:
    """What the principal may call now."""
    return judged(who, every())


def visible(who: Who) -> tuple[Tool, ...]:
    """The tools of its view."""
    return view(who).tools


@lru_cache(maxsize=2048)
def judged(who: Who, tools: tuple[Tool, ...]) -> View:
    """A `Who` is frozen at one version of its rights, so its view is judged once."""
    return shared(toolset(tools, who))


@lru_cache(maxsize=512)
def shared(tools: tuple[Tool, ...]) -> View:
    """One text for all who see the same."""
    return View(tools)


@lru_cache(maxsize=2048)
def definition(tool: Tool) -> str:
    """One entry of `tools/list`."""
    meta: dict[str, object] = {
        "duduclaw/scope": tool.scope,
        "duduclaw/family": tool.family,
        "duduclaw/gate": tool.switch or ("human_only" if tool.human_only else None),
        "duduclaw/docs": f"{DOCS}{tool.name}",
    }
    if tool.max_chars > USUAL_MAX:
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
