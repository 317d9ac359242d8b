"""UUIDv7 text ids: they sort by time of creation (RFC 9562, 5.7)."""

import os
import time
import uuid


def new_id() -> str:
    """A fresh UUIDv7 as 36 characters of text."""
    millis = time.time_ns() // 1_000_000
    value = (millis << 80) | int.from_bytes(os.urandom(10), "big")
    value = (value & ~(0xF << 76)) | (0x7 << 76)
    value = (value & ~(0x3 << 62)) | (0x2 << 62)
    return str(uuid.UUID(int=value))
