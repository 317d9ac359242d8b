"""Masking of secrets in what is kept or shown: audit rows, logs, approvals. Pure.

Text is masked first and cut afterwards. Every pattern takes linear time: a failing match is bounded by its
minimum length or stops at a character that the next possible start needs.

Not caught: a secret in three or more pieces or in pieces that do not follow each other, one that is
reversed, encrypted, compressed or in hex, and a word that only its owner knows to be a password.
"""

import base64
import json
import math
import re
import string
from collections.abc import Iterable
from typing import Any
from urllib.parse import unquote

MASK = "[redacted]"
TOO_DEEP = "[too deep]"
DEPTH = 16
SUMMARY_CHARS = 4096
MAX_CHARS = 65_536  # of one string; what follows is dropped before masking
LAYERS = 2  # base64 in base64 is opened, a third wrapping is not

KEYS = frozenset(
    "token accesstoken refreshtoken idtoken authtoken sessiontoken bearertoken secret clientsecret secretkey password "
    "passwd pwd passphrase apikey xapikey apitoken authorization proxyauthorization xauthtoken cookie setcookie "
    "privatekey accesskey accesskeyid secretaccesskey sessionkey signingkey encryptionkey masterkey sshkey credential "
    "credentials connectionstring databaseurl dsn webhooksecret otp totp mfacode recoverycode seedphrase "
    "jwt bearer".split()
)
KEY_ENDINGS = ("password", "passwd", "passphrase", "secret", "apikey", "privatekey", "accesstoken", "refreshtoken")
NAME_FIELDS = ("name", "key", "header", "field")

JOINT = 4096  # characters looked at on each side of two arguments' border
TOKEN_CHARS = string.ascii_letters + string.digits + "_.-"

NOT_ALPHANUMERIC = re.compile(r"[^a-z0-9]+")
PEM = re.compile(r"-----BEGIN [A-Z0-9 ]{1,40}-----.*?(?:-----END [A-Z0-9 ]{1,40}-----|\Z)", re.DOTALL)
TOKEN = re.compile(
    r"(?:sk-ant-|sk-proj-|sk-live-|sk_live_|rk_live_|xox[abeprs]-|xapp-|gh[opsur]_|github_pat_|glpat-|hf_|npm_|pypi-)"
    r"[A-Za-z0-9_\-]{6,}|(?:AKIA|ASIA)[A-Z0-9]{12,}|AIza[A-Za-z0-9_\-]{30,}|ddc_[a-z]{1,10}_[0-9a-f]{9,}"
    r"|ddc_oauth_\S{6,}"
)
LONG_TOKEN = re.compile(
    r"(?:sk-ant-|sk-proj-|xox[bp]-|xapp-|gh[op]_|github_pat_|glpat-)[A-Za-z0-9_\-]{16,}"
    r"|AKIA[A-Z0-9]{16}|ddc_[a-z]{1,10}_[0-9a-f]{16,}|-----BEGIN [A-Z0-9 ]{1,40}-----"
)
USERINFO = re.compile(r"(?<=://)(?:[^\s/?#@:]*:[^\s/?#]*|[^\s/?#@:]{16,})@")
HEADER = re.compile(
    r"((?:authorization|cookie)[\\\"']{0,4}\s{0,3}[:=]\s{0,3}[\\\"']{0,4})([^\r\n\"'\\]+)", re.IGNORECASE
)
ASSIGNED = re.compile(
    r"((?:passw(?:or)?d|passphrase|pwd|secret|(?:api|private|secret|access|signing|encryption)[_\- ]?key|token"
    r"|[?&]sig|signature)(?:\\{0,3}[\"'])?\s{0,3}[:=]\s{0,3})"
    r"(\"(?:[^\"\\\r\n]|\\.)*\"|'(?:[^'\\\r\n]|\\.)*'|\\{1,3}[\"'][^\"'\\\r\n]*|[^\s\"'\\&,;<>{}]{3,})",
    re.IGNORECASE,
)
SCHEME = re.compile(r"\b(bearer|basic|token)(\s{1,4}|%20|\+)([A-Za-z0-9._~+/=:\-]{8,})", re.IGNORECASE)
WHOLE_BEARER = re.compile(r"\s{0,9}bearer\s{1,4}\S+\s{0,9}\Z", re.IGNORECASE)
DOTTED = re.compile(r"[A-Za-z0-9_.\-]{20,}")
ENCODED = re.compile(r"[A-Za-z0-9+/_\-]{16,}={0,2}")
WORD = re.compile(r"[^\s\"'<>]{8,}")
PRINTABLE = re.compile(r"[\t\r\n\x20-\x7e]{8,}")
UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\Z")
# Without one of these no pattern can match.
HINT = re.compile(
    r"BEGIN|sk[-_]|rk_|xox|xapp|gh[a-z]_|github_|glpat|hf_|npm_|pypi|AKIA|ASIA|AIza|ddc_|eyJ|://|%"
    r"|[Pp]ass|PASS|[Pp]wd|PWD|[Ss]ecret|SECRET|[Kk]ey|KEY|[Tt]oken|TOKEN|[Ss]ig|SIG|[Aa]uthor|AUTHOR|[Cc]ookie|COOKIE"
    r"|[Bb]earer|BEARER|[Bb]asic|BASIC|[A-Za-z0-9+/_\-]{16}"
)
STRONG = re.compile(r"[0-9+/=_]|[a-z][A-Z]")


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
        if last and text and _joined_secret(last[-JOINT:], text[:JOINT]):
            found |= {last_place, place}
        last_place, last = place, text
    return found


def _joined_secret(left: str, right: str) -> bool:
    if left.rfind("-----BEGIN ") > left.rfind("-----END ") and "-----END " in right:
        return True
    tail = left[len(left.rstrip(TOKEN_CHARS)) :]
    run = tail + right[: len(right) - len(right.lstrip(TOKEN_CHARS))]
    if "eyJ" in run[: len(tail) + 2] and _mask_jwt(run) != run:
        return True
    near = left[-64:]
    spans = (match.span() for match in LONG_TOKEN.finditer(near + right[:256]))
    return any(start < len(near) < end for start, end in spans)


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
    return _encodable(_mask_plain(text, 0))


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


def _mask_plain(text: str, layer: int) -> str:
    if not HINT.search(text):
        return text
    if WHOLE_BEARER.match(text):
        return MASK
    text = PEM.sub(MASK, text)
    text = TOKEN.sub(MASK, text)
    text = USERINFO.sub(f"{MASK}@", text)
    text = HEADER.sub(rf"\1{MASK}", text)
    text = ASSIGNED.sub(_mask_assigned, text)
    text = SCHEME.sub(_mask_scheme, text)
    text = DOTTED.sub(lambda found: _mask_jwt(found[0]), text)
    if layer < LAYERS:
        text = WORD.sub(lambda found: _mask_percent(found[0], layer), text) if "%" in text else text
        text = ENCODED.sub(lambda found: _mask_encoded(found[0], layer), text)
    return text


def _mask_assigned(found: re.Match[str]) -> str:
    if found[2].startswith(MASK):
        return found[0]
    quote = found[2][0] if found[2][0] in "\"'" else ""
    return f"{found[1]}{quote}{MASK}{quote}"


def _mask_scheme(found: re.Match[str]) -> str:
    return f"{found[1]}{found[2]}{MASK}" if STRONG.search(found[3]) or len(found[3]) >= 24 else found[0]


def _mask_jwt(run: str) -> str:
    start = run.find("eyJ")
    return run[:start] + MASK if start >= 0 and run.count(".", start) >= 2 and len(run) - start >= 20 else run


def _mask_percent(word: str, layer: int) -> str:
    opened = unquote(word) if "%" in word else word
    return MASK if opened != word and _mask_plain(opened, layer + 1) != opened else word


def _mask_encoded(run: str, layer: int) -> str:
    """Base64 may begin anywhere in the run, so all four alignments are read."""
    body = run.rstrip("=").replace("-", "+").replace("_", "/")
    return MASK if any(_hides_secret(body[offset:], layer) for offset in range(4)) else run


def _hides_secret(body: str, layer: int) -> bool:
    whole = body[: len(body) - (len(body) % 4 == 1)]
    opened = base64.b64decode(whole + "=" * (-len(whole) % 4)).decode("latin-1")
    return any(_mask_plain(part, layer + 1) != part for part in PRINTABLE.findall(opened))


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
