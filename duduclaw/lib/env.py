"""Typed readers of the environment: each raises `BadSetting` with one line that names the variable."""

import os
from pathlib import Path
from urllib.parse import urlsplit


class BadSetting(SystemExit):
    """Stops the start with one line on stderr and exit code 1."""


def env(name: str, default: str = "") -> str:
    """The variable, or the content of the file that `<name>_FILE` points at."""
    path = os.environ.get(f"{name}_FILE")
    if path:
        try:
            return Path(path).read_text(encoding="utf-8").strip()
        except OSError as error:
            raise BadSetting(f"{name}_FILE: cannot read {path}: {error.strerror}") from error
    return os.environ.get(name, default)


def env_int(name: str, default: int, low: int, high: int) -> int:
    """A whole number between `low` and `high`."""
    text = env(name, str(default))
    if not (text.isascii() and text.isdigit() and low <= int(text) <= high):
        raise BadSetting(f"{name}: {text!r} must be a whole number from {low} to {high}")
    return int(text)


def env_bool(name: str, default: bool) -> bool:
    """`1`, `true`, `yes` or `0`, `false`, `no`."""
    text = env(name, str(default)).lower()
    if text not in {"1", "true", "yes", "0", "false", "no"}:
        raise BadSetting(f"{name}: {text!r} must be 1 or 0")
    return text in {"1", "true", "yes"}


def env_list(name: str, default: str = "") -> list[str]:
    """A comma list without empty items."""
    return [item.strip() for item in env(name, default).split(",") if item.strip()]


def env_origins(name: str) -> list[str]:
    """A comma list of `scheme://host[:port]`, as browsers send them."""
    origins = env_list(name)
    for origin in origins:
        parts = urlsplit(origin)
        if parts.scheme not in ("http", "https") or origin != f"{parts.scheme}://{parts.netloc}" or not parts.netloc:
            raise BadSetting(f"{name}: {origin!r} must look like https://ops.example.com, without a path")
    return origins


def env_choice(name: str, default: str, choices: tuple[str, ...]) -> str:
    """One of `choices`."""
    text = env(name, default)
    if text not in choices:
        raise BadSetting(f"{name}: {text!r} must be one of {', '.join(choices)}")
    return text
