"""Characters that reorder, hide or control text, made visible. For every page that shows what an agent wrote."""

import unicodedata

HIDDEN = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
KEPT = "\n\t"


def visible(text: str) -> str:
    """The text with each control, format and separator character as `[U+202E]`; line breaks and tabs stay."""
    if text.isprintable():
        return text
    return "".join(mark(char) for char in text)


def mark(char: str) -> str:
    """One character as it may be shown."""
    return f"[U+{ord(char):04X}]" if char not in KEPT and unicodedata.category(char) in HIDDEN else char


def line(text: str, longest: int = 120) -> str:
    """The same on one line, cut: for a column of a list."""
    shown = visible(text[: longest + 1]).replace("\n", " ⏎ ").replace("\t", " ")
    return shown if len(text) <= longest else f"{visible(text[:longest])}…".replace("\n", " ⏎ ").replace("\t", " ")
