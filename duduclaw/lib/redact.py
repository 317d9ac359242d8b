"""Masking of secrets in what is kept or shown: audit rows, logs, approvals. Pure.

Text is masked first and cut afterwards. Not caught: a secret in three or more pieces or in pieces that do not
follow each other, one that is reversed, encrypted, compressed or in hex, and a word that only its owner knows
to be a password.
"""

import json
import math
import re
from collections.abc import Iterable
from typing import Any

from duduclaw.lib.secret_text import MASK, TOKEN, make_a_secret, mask_plain

__all__ = ["MASK", "TOKEN", "is_sensitive", "mask", "mask_text", "summary"]

TOO_DEEP = "[too deep]"
DEPTH = 16
SUMMARY_CHARS = 4096
MAX_CHARS = 65_536  # of one string; what follows is dropped before masking

KEYS = frozenset(
    "token accesstoken refreshtoken idtoken authtoken sessiontoken bearertoken secret clientsecret secretkey password "
    "passwd pwd passphrase apikey xapikey apitoken authorization proxyauthorization xauthtoken cookie setcookie "
    "privatekey accesskey accesskeyid secretaccesskey sessionkey signingkey encryptionkey masterkey sshkey credential "
    "credentials connectionstring databaseurl dsn webhooksecret otp totp mfacode recoverycode seedphrase "
    "jwt bearer".split()
)
KEY_ENDINGS = ("password", "passwd", "passphrase", "secret", "apikey", "privatekey", "accesstoken", "refreshtoken")
NAME_FIELDS = ("name", "key", "header", "field")

NOT_ALPHANUMERIC = re.compile(r"[^a-z0-9]+")
UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\Z")


def mask(value: Any, depth: int = 0) -> Any:
    """The JSON value with every secret replaced by `[redacted]`; the shape stays, depth 16 is the most."""
    if isinstance(value, str):
        return mask_text(value)
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if value is None or isinstance(value, bool | int | float):
        return value
    if depth >= DEPTH:
        return TOO_DEEP
    if isinstance(value, dict):
        return _mask_object(value, depth)
    if isinstance(value, list | tuple | set | frozenset):
        items = list(value)
        split = _split_secrets(enumerate(items))
        return [MASK if index in split else mask(item, depth + 1) for index, item in enumerate(items)]
    return mask_text(str(value))


def _mask_object(value: dict[Any, Any], depth: int) -> dict[str, Any]:
    split = _split_secrets(value.items())
    named = any(is_sensitive(value[field]) for field in NAME_FIELDS if isinstance(value.get(field), str))
    masked: dict[str, Any] = {}
    for key, item in value.items():
        hide = key in split or is_sensitive(str(key)) or (named and key == "value")
        masked[mask_text(str(key))] = _hidden(item) if hide else mask(item, depth + 1)
    return masked


def _hidden(value: Any) -> Any:
    return value if value is None or isinstance(value, bool) or value == "" else MASK


def _split_secrets(items: Iterable[tuple[Any, Any]]) -> set[Any]:
    """The places of neighbours whose texts make a secret only when joined."""
    found: set[Any] = set()
    last_place, last = None, ""
    for place, item in items:
        text = item if isinstance(item, str) else ""
        if last and text and make_a_secret(last, text):
            found |= {last_place, place}
        last_place, last = place, text
    return found


def is_sensitive(key: str) -> bool:
    """Whether a field of that name holds a secret: `api_key`, `apiKey`, `X-Api-Key`, `DB_PASSWORD`."""
    plain = NOT_ALPHANUMERIC.sub("", key[:100].lower())
    return plain in KEYS or plain.endswith(KEY_ENDINGS)


def mask_text(text: str) -> str:
    """The text with every secret replaced; JSON inside is masked by its fields. Lone surrogates are escaped."""
    if len(text) < 8 or UUID.match(text):
        return _encodable(text)
    if len(text) > MAX_CHARS:
        text = _shorten(text)
    opened = _open_json(text)
    if opened is not None:
        masked = mask(opened, 1)
        if masked != opened:
            return _encodable(json.dumps(masked, ensure_ascii=False))
    return _encodable(mask_plain(text))


def _encodable(text: str) -> str:
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode("utf-8")


def _shorten(text: str) -> str:
    """The first part, without a last word that the cut may have split."""
    kept = text[:MAX_CHARS]
    space = kept.rfind(" ", MAX_CHARS - 4096)
    return f"{kept[: space if space > 0 else MAX_CHARS - 4096]} [cut: {len(text)} characters]"


def _open_json(text: str) -> Any:
    if text.lstrip()[:1] not in ("{", "["):
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def summary(arguments: Any, redact: frozenset[str] = frozenset()) -> str:
    """JSON text of at most 4,096 characters: masked, then cut. Of parameters in `redact` only the length stays."""
    if isinstance(arguments, dict):
        shown = {key: _length_only(item) if key in redact else item for key, item in arguments.items()}
    else:
        shown = arguments
    masked = mask(shown)
    for longest in (SUMMARY_CHARS, 1000, 200, 40):
        text = json.dumps(_clip(masked, longest), ensure_ascii=False)
        if len(text) <= SUMMARY_CHARS:
            return text
    return json.dumps({"truncated": text[: SUMMARY_CHARS // 2 - 20]}, ensure_ascii=False)


def _length_only(value: Any) -> str:
    return f"[redacted, {len(value)} characters]" if isinstance(value, str) else MASK


def _clip(value: Any, longest: int) -> Any:
    if isinstance(value, str):
        return value if len(value) <= longest else f"{value[:longest]}… ({len(value)} characters)"
    if isinstance(value, dict):
        return {key[:200]: _clip(item, longest) for key, item in value.items()}
    return [_clip(item, longest) for item in value] if isinstance(value, list) else value
