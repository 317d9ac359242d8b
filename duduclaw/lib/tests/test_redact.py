"""Secrets never reach audit, logs or a screen; ordinary text stays readable."""

import json
from typing import Any

import pytest

from duduclaw.lib.redact import DEPTH, MASK, SUMMARY_CHARS, is_sensitive, mask, mask_text, summary
from tests.planted_secrets import CORPUS, TOKENS, pieces


def test_T51_the_corpus_has_two_hundred_secrets() -> None:
    assert len(CORPUS) >= 200


@pytest.mark.parametrize(("what", "secret", "arguments"), CORPUS, ids=[case[0] for case in CORPUS])
def test_T51_no_secret_in_the_summary(what: str, secret: str, arguments: Any) -> None:
    shown = summary(arguments)
    assert MASK in shown
    assert not [piece for piece in pieces(secret, arguments) if piece in shown]
    opened = json.loads(shown)
    assert secret[-10:] not in json.dumps(opened)


@pytest.mark.parametrize("kind", ["github", "aws", "jwt", "ours", "anthropic"])
def test_T51_a_secret_over_two_arguments_hides_both(kind: str) -> None:
    secret = TOKENS[kind]()
    for cut in (len(secret) // 2, len(secret) // 3):
        masked = mask({"title": secret[:cut], "body": secret[cut:], "more": "fine"})
        assert secret[cut:][:8] not in json.dumps(masked)
        assert masked["more"] == "fine"


@pytest.mark.parametrize(
    "left", ["it starts with eyJ", "the prefix is ghp_", "AKIA", "a -----BEGIN", "Bearer", "password:"]
)
def test_ordinary_neighbours_stay_readable(left: str) -> None:
    given = {"title": left, "body": "next to come. and more.", "tail": "fine"}
    assert mask(given) == given
    assert mask(list(given.values())) == list(given.values())


READABLE = [
    "ok",
    "Reset the password page before Friday",
    "Basic information about the token ring",
    "The bearer of this letter",
    "tokens used: 300",
    "Write to ops@example.org or see https://example.org/a/b?page=2#top",
    "0190b5f2-1111-7222-8333-444455556666",
    "agents/actions/history.py and agents/models/policy.py",
    "a key decision, a secret garden",
    "T-121: 會議記錄を確認する",
    "secret",
    "sha256 e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    "call it at http://localhost:8000/path?mail=a@b.example",
    "ghp_ is the prefix of a GitHub token",
    "ddc_live_12345678",
    "2026-01-05T09:00:00.000000Z",
]


@pytest.mark.parametrize("text", READABLE)
def test_ordinary_text_stays_readable(text: str) -> None:
    assert mask_text(text) == text
    assert mask({"note": text, "ok": True}) == {"note": text, "ok": True}


def test_values_that_are_no_secret_stay_under_a_sensitive_name() -> None:
    assert mask({"token": None, "secret": False, "password": ""}) == {"token": None, "secret": False, "password": ""}
    assert mask({"token": 12345}) == {"token": MASK}


@pytest.mark.parametrize("name", ["apiKey", "API_KEY", "x-api-key", "Authorization", "set-cookie", "smtpPassword"])
def test_sensitive_names(name: str) -> None:
    assert is_sensitive(name)


@pytest.mark.parametrize("name", ["key", "tokens", "author", "max_tokens", "password_hint_shown", "keyboard", "ok"])
def test_ordinary_names(name: str) -> None:
    assert not is_sensitive(name)


def test_depth_is_limited() -> None:
    value: Any = "end"
    for _ in range(DEPTH + 5):
        value = {"a": value}
    assert "too deep" in json.dumps(mask(value))
    assert "end" not in json.dumps(mask(value))


def test_computer_type_logs_the_length_only() -> None:
    assert json.loads(summary({"text": "hunter2", "n": 1}, frozenset({"text"}))) == {
        "text": "[redacted, 7 characters]",
        "n": 1,
    }


@pytest.mark.parametrize(
    "arguments",
    [
        {"a": "x" * 10_000},
        {"a": ["y" * 500] * 100},
        {f"k{n}": "z" * 50 for n in range(500)},
        {"q": '"\\' * 9000},
        {"c": "固" * 9000},
        ["plain", "list"],
        {"bad": "\ud800 \x00", "inf": float("inf")},
    ],
)
def test_summary_is_json_within_its_limit(arguments: Any) -> None:
    shown = summary(arguments)
    assert len(shown) <= SUMMARY_CHARS
    json.loads(shown)
    shown.encode()


def test_masking_comes_before_cutting() -> None:
    secret = "ghp_" + "a1B2" * 9
    for room in range(990, 1010):
        shown = summary({"a": "x " * (room // 2) + secret, "b": "y " * 3000})
        assert "a1B2" not in shown


def test_a_secret_at_the_cut_of_a_huge_string_is_not_shown() -> None:
    for offset in range(0, 60, 7):
        text = "-----BEGIN X-----" + "A" * 40_000 + "-----END X-----" + "b " * ((65_536 - 40_032) // 2)
        text = text[: 65_536 - offset] + "ghp_" + "Zz9" * 12
        assert "Zz9Zz9" not in mask_text(text)


ADVERSARIAL = [
    "a" * 50_000,
    "eyJ" * 16_000,
    "://a:" * 10_000,
    'password="' * 5_000,
    "-----BEGIN " * 4_500,
    "%41" * 16_000,
    "\\" * 50_000,
    "[{" * 25_000,
    "bearer " * 7_000,
    "a@" * 25_000,
    " " * 50_000,
]


@pytest.mark.parametrize("text", ADVERSARIAL, ids=[text[:9] for text in ADVERSARIAL])
def test_hostile_text_is_masked_in_linear_time(text: str) -> None:
    """A quadratic pattern takes minutes for these; the suite's watchdog would end it."""
    assert isinstance(mask_text(text * 4), str)
