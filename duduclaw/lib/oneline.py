"""Text as one inert line for records and logs: what controls, hides or reorders text is escaped as JSON does it."""

import json
import unicodedata

HIDDEN = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})


def one_line(text: str) -> str:
    """The text with each control, format and separator character as `\\u202e`; JSON text stays the same JSON."""
    return text if text.isprintable() else "".join(map(escaped, text))


def escaped(char: str) -> str:
    """One character as it may be kept."""
    return json.dumps(char)[1:-1] if unicodedata.category(char) in HIDDEN else char
