"""The trace of a failed call, for the log: no argument that masking hides may stand in it. Pure.

An exception's text may echo arguments in any form, also a secret that only its field's name or its neighbour
gave away. So what masking hides in the arguments is taken out of the text, as it is and as it is quoted.
"""

import json
import traceback
from collections.abc import Iterator
from typing import Any

from duduclaw.lib.redact import MASK, mask, mask_text

SHORTEST = 4  # characters; shorter ones would hide half of the text


def told(fault: BaseException, arguments: Any) -> str:
    """The formatted exception without the secrets of the arguments."""
    text = "".join(traceback.format_exception(fault))
    found = {form for secret in hidden(arguments, mask(arguments)) for form in forms(secret) if len(form) >= SHORTEST}
    for form in sorted(found, key=len, reverse=True):
        text = text.replace(form, MASK)
    return mask_text(text)


def forms(secret: str) -> tuple[str, ...]:
    """A text as it may stand in another one."""
    return secret, repr(secret)[1:-1], json.dumps(secret)[1:-1]


def hidden(value: Any, masked: Any) -> Iterator[str]:
    """Every text of a JSON value that is not the same after masking."""
    if isinstance(value, dict):
        same = isinstance(masked, dict) and len(masked) == len(value)
        for (key, item), (shown, kept) in zip(value.items(), masked.items() if same else nothing(value), strict=True):
            yield from hidden(key, shown)
            yield from hidden(item, kept)
    elif isinstance(value, list):
        same = isinstance(masked, list)
        for item, kept in zip(value, masked if same else [None] * len(value), strict=True):
            yield from hidden(item, kept)
    elif value != masked and value is not None:
        yield str(value)


def nothing(value: dict[str, Any]) -> Any:
    """Of an object that is hidden as a whole its keys stay."""
    return ((key, None) for key in value)
