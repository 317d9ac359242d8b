"""The tool families. A new tool is one module here and its name in FAMILIES; nothing is discovered."""

from importlib import import_module

FAMILIES: tuple[str, ...] = (
    "agent",
    "agents",
    "approval",
    "issues",
    "tasks",
    "working_state",
)


def load() -> None:
    """Import every family: its tools register themselves, and a bad declaration stops the start."""
    for family in FAMILIES:
        import_module(f"mcp.tools.{family}")
