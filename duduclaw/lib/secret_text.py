"""Secrets as they look in text, and the text without them. Pure.

Every pattern takes linear time: a failing match is bounded by its minimum length or stops at a character that
the next possible start needs.
"""

import base64
import re
import string
from urllib.parse import unquote

MASK = "[redacted]"
LAYERS = 2  # base64 in base64 is opened, a third wrapping is not
JOINT = 4096  # characters looked at on each side of two arguments' border
TOKEN_CHARS = string.ascii_letters + string.digits + "_.-"

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
# Without one of these no pattern can match.
HINT = re.compile(
    r"BEGIN|sk[-_]|rk_|xox|xapp|gh[a-z]_|github_|glpat|hf_|npm_|pypi|AKIA|ASIA|AIza|ddc_|eyJ|://|%"
    r"|[Pp]ass|PASS|[Pp]wd|PWD|[Ss]ecret|SECRET|[Kk]ey|KEY|[Tt]oken|TOKEN|[Ss]ig|SIG|[Aa]uthor|AUTHOR|[Cc]ookie|COOKIE"
    r"|[Bb]earer|BEARER|[Bb]asic|BASIC|[A-Za-z0-9+/_\-]{16}"
)
STRONG = re.compile(r"[0-9+/=_]|[a-z][A-Z]")


def mask_plain(text: str, layer: int = 0) -> str:
    """The text with `[redacted]` in place of each secret; what is encoded is opened, at most `LAYERS` deep."""
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
    return MASK if opened != word and mask_plain(opened, layer + 1) != opened else word


def _mask_encoded(run: str, layer: int) -> str:
    """Base64 may begin anywhere in the run, so all four alignments are read."""
    body = run.rstrip("=").replace("-", "+").replace("_", "/")
    return MASK if any(_hides_secret(body[offset:], layer) for offset in range(4)) else run


def _hides_secret(body: str, layer: int) -> bool:
    whole = body[: len(body) - (len(body) % 4 == 1)]
    opened = base64.b64decode(whole + "=" * (-len(whole) % 4)).decode("latin-1")
    return any(mask_plain(part, layer + 1) != part for part in PRINTABLE.findall(opened))


def make_a_secret(left: str, right: str) -> bool:
    """Whether two texts hold a secret that neither shows alone."""
    left, right = left[-JOINT:], right[:JOINT]
    if left.rfind("-----BEGIN ") > left.rfind("-----END ") and "-----END " in right:
        return True
    tail = left[len(left.rstrip(TOKEN_CHARS)) :]
    run = tail + right[: len(right) - len(right.lstrip(TOKEN_CHARS))]
    if "eyJ" in run[: len(tail) + 2] and _mask_jwt(run) != run:
        return True
    near = left[-64:]
    spans = (match.span() for match in LONG_TOKEN.finditer(near + right[:256]))
    return any(start < len(near) < end for start, end in spans)
