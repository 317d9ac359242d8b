"""What may stand in a text argument: length in characters, no control characters, nothing unwritable. Pure."""

import re

from mcp.errors import InvalidArguments

UNWRITABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff]")


def check_text(name: str, value: str, most: int, *, blank: bool = False) -> str:
    """The value, when it may be stored. Raises `InvalidArguments` naming the parameter; nothing is trimmed."""
    if not blank and not value.strip():
        raise InvalidArguments(f"Invalid parameter {name}: must not be blank", name)
    if len(value) > most:
        raise InvalidArguments(f"Invalid parameter {name}: has {len(value)} characters, {most} is the most", name)
    if UNWRITABLE.search(value):
        raise InvalidArguments(f"Invalid parameter {name}: has control characters", name)
    return value


def check_line(name: str, value: str, most: int, *, blank: bool = False) -> str:
    """As `check_text`, and it must be one line."""
    if len(check_text(name, value, most, blank=blank).splitlines()) > 1 or value.endswith(("\n", "\r")):
        raise InvalidArguments(f"Invalid parameter {name}: must be one line", name)
    return value


def check_choice(name: str, value: str, choices: list[str]) -> str:
    """One of the choices, exactly."""
    if value not in choices:
        raise InvalidArguments(f"Invalid parameter {name}: must be one of {', '.join(choices)}", name)
    return value
