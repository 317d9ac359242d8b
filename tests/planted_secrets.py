"""Two hundred secrets in arguments, the same in every run: what may be seen of them nowhere."""

import base64
import json
import random
import string
from collections.abc import Callable
from typing import Any
from urllib.parse import quote

ALPHANUMERIC = string.ascii_letters + string.digits
RANDOM = random.Random(51)  # the corpus is the same in every run


def letters(count: int, alphabet: str = ALPHANUMERIC) -> str:
    return "".join(RANDOM.choice(alphabet) for _ in range(count))


def b64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def jwt() -> str:
    parts = (json.dumps({"alg": "HS256"}), json.dumps({"sub": letters(12)}))
    return ".".join([*(b64(part).rstrip("=") for part in parts), letters(43)])


def pem() -> str:
    body = "\n".join(letters(64, ALPHANUMERIC + "+/") for _ in range(4))
    return f"-----BEGIN RSA PRIVATE KEY-----\n{body}\n-----END RSA PRIVATE KEY-----"


TOKENS: dict[str, Callable[[], str]] = {
    "github": lambda: "ghp_" + letters(36),
    "aws": lambda: "AKIA" + letters(16, string.ascii_uppercase + string.digits),
    "jwt": jwt,
    "pem": pem,
    "ours": lambda: "ddc_live_" + letters(32, "0123456789abcdef"),
    "anthropic": lambda: "sk-ant-api03-" + letters(40),
    "slack": lambda: "xoxb-" + letters(12, string.digits) + "-" + letters(24),
    "gitlab": lambda: "glpat-" + letters(20),
}
PLACES: dict[str, Callable[[str], Any]] = {
    "alone": lambda secret: {"note": secret},
    "in a sentence": lambda secret: {"note": f"please use {secret} for the upload, ok"},
    "deep": lambda secret: {"a": [{"b": [{"c": secret}]}]},
    "in JSON text": lambda secret: {"body": json.dumps({"inner": {"value": secret}})},
    "in a query": lambda secret: {"url": f"https://example.org/cb?x=1&access_token={quote(secret, safe='')}&y=2"},
    "in base64": lambda secret: {"blob": b64(f"some bytes before {secret} and after")},
    "in base64 twice": lambda secret: {"blob": b64(b64(f"x {secret}"))},
    "in a data URL": lambda secret: {"url": f"data:text/plain;base64,{b64(secret)}"},
    "percent-encoded": lambda secret: {"url": "https://example.org/?q=" + quote(f"key {secret}", safe="")},
    "as a key": lambda secret: {secret: "value"},
    "as bearer": lambda secret: {"h": f"curl -H 'Authorization: Bearer {secret}' https://example.org"},
    "over two arguments": lambda secret: {"first": secret[: len(secret) // 2], "second": secret[len(secret) // 2 :]},
}


def fields() -> list[tuple[str, str, Any]]:
    """Secrets that only the name of their field gives away."""
    made = []
    names = ("password", "apiKey", "API_KEY", "clientSecret", "access-token", "Authorization", "cookie", "DB_PASSWORD")
    for name in names:
        for place in (
            lambda n, s: {n: s},
            lambda n, s: {"outer": {n: {"value": s}}},
            lambda n, s: {"headers": [{"name": n, "value": s}]},
            lambda n, s: {"text": f'config: "{n}": "{s}"'},
            lambda n, s: {"text": f"export {n}={s}"},
        ):
            secret = letters(12)
            made.append((f"field {name}", secret, place(name, secret)))
    return made


def userinfo() -> list[tuple[str, str, Any]]:
    made = []
    for scheme in ("postgres", "redis", "https", "amqp", "mongodb+srv", "smtp", "mysql", "ftp"):
        secret = letters(14)
        made.append((f"{scheme} URL", secret, {"dsn_text": f"use {scheme}://user:{secret}@db.example.org:5432/app"}))
    for name in ("token", "api_key", "secret", "sig", "password", "signature", "client_secret", "id_token"):
        secret = letters(14)
        made.append((f"query {name}", secret, {"u": f"https://example.org/x?page=2&{name}={secret}"}))
    return made


def corpus() -> list[tuple[str, str, Any]]:
    """(what, the secret, the arguments)."""
    cases = [
        (f"{kind} {place}", secret, put(secret))
        for kind, make in TOKENS.items()
        for place, put in PLACES.items()
        for secret in (make(),)
    ]
    cases += fields() + userinfo()
    for size in range(48):
        secret = f"user:{letters(10 + size % 9)}"
        cases.append((f"basic {size}", b64(secret), {"header": f"Authorization: Basic {b64(secret)}"}))
    return cases


CORPUS = corpus()


def pieces(secret: str, arguments: Any) -> set[str]:
    """What must not be seen: the secret's second half, in clear and as it stands in the arguments."""
    tail = secret.replace("-----END RSA PRIVATE KEY-----", "").strip()[-10:]
    return {tail, *(value[-10:] for value in arguments.values() if isinstance(value, str) and value == secret)}
