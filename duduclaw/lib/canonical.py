"""One byte form of a JSON value, and its hash: what an approval binds and what "the same call" means."""

import hashlib
import json
from typing import Any


def canonical(value: Any) -> str:
    """JSON with sorted keys and no blanks (RFC 8785 in spirit; numbers as Python writes them)."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def digest(value: Any) -> str:
    """SHA-256 of the canonical form, in hex."""
    return hashlib.sha256(canonical(value).encode()).hexdigest()
