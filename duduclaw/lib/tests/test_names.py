"""T50: names of new agents."""

import unicodedata

import pytest

from duduclaw.lib.names import BadName, check_new, is_reserved, key_of

GOOD = ["lead", "analyst-2", "a", "0", "x" * 64, "team-a2a", "my-cron"]
BAD = {
    "Cyrillic": "\u0430dmin",
    "full width": "\uff41dmin",
    "zero width joiner": "ad\u200dmin",
    "right to left": "\u202eadmin",
    "trailing dot": "admin.",
    "trailing newline": "admin\n",
    "trailing blank": "admin ",
    "leading blank": " admin",
    "trash": "_trash",
    "path": "../admin",
    "slash": "a/b",
    "upper case": "Admin",
    "empty": "",
    "too long": "x" * 65,
    "NUL": "a\x00b",
    "composed": unicodedata.normalize("NFC", "cafe\u0301"),
    "decomposed": unicodedata.normalize("NFD", "caf\u00e9"),
    "Arabic digit": "a\u0661",
    "emoji": "a\U0001f600",
    "underscore": "two_words",
}
RESERVED = [
    "dashboard",
    "webhook",
    "cron",
    "heartbeat",
    "autopilot",
    "goal-loop-driver",
    "a2a-client",
    "default",
    "doctor-probe",
    "standalone-x",
    "con",
    "nul",
    "com1",
    "lpt9",
]


@pytest.mark.parametrize("name", GOOD)
def test_good_names(name: str) -> None:
    assert check_new(name) == name


@pytest.mark.parametrize("name", BAD.values(), ids=BAD.keys())
def test_T50_names_outside_the_alphabet(name: str) -> None:
    with pytest.raises(BadName) as caught:
        check_new(name)
    assert caught.value.reason == "format"


@pytest.mark.parametrize("name", RESERVED)
def test_T50_reserved_names(name: str) -> None:
    with pytest.raises(BadName) as caught:
        check_new(name)
    assert caught.value.reason == "reserved"


@pytest.mark.parametrize("name", ["Dashboard", "CRON", "\uff44efault", "__Untrusted__", "STANDALONE-x", "CON"])
def test_T50_reserved_whatever_case_and_width(name: str) -> None:
    assert is_reserved(name)
    with pytest.raises(BadName):
        check_new(name)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("lead", "LEAD"),
        ("lead", "\uff4c\uff45\uff41\uff44"),
        (unicodedata.normalize("NFC", "cafe\u0301"), unicodedata.normalize("NFD", "caf\u00e9")),
        ("strasse", "stra\u00dfe"),
    ],
)
def test_T50_twins_have_one_key(one: str, other: str) -> None:
    assert key_of(one) == key_of(other)


def test_different_names_have_different_keys() -> None:
    assert len({key_of(name) for name in GOOD}) == len(GOOD)
