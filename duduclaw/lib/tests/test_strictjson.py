"""One meaning a text: what the parser takes, and what it refuses by name."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duduclaw.lib import strictjson

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00")),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(st.characters(codec="ascii", min_codepoint=32)), inner),
    max_leaves=20,
)  # fmt: skip


@given(VALUES)
def test_round_trip(value: object) -> None:
    assert strictjson.loads(json.dumps(value).encode()) == value
    assert strictjson.loads(json.dumps(value, ensure_ascii=False).encode()) == value


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "not JSON"),
        (b"{", "not JSON"),
        (b'{"a":1,}', "not JSON"),
        (b"1 2", "not JSON"),
        (b'"\x01"', "not JSON"),
        (b'{"a":1,"b":{"c":1,"\\u0063":2}}', "duplicate key 'c'"),
        (b"NaN", "NaN"),
        (b"[Infinity]", "Infinity"),
        (b"[-Infinity]", "-Infinity"),
        (b"1e999", "out of range"),
        (b"-1e999", "out of range"),
        (b"9" * 4_301, "more than 4300 digits"),
        (b'"\\ud800"', "lone surrogate"),
        (b'{"\\udfff":1}', "lone surrogate"),
        (b'["a\\u0000b"]', "NUL"),
        (b"\xef\xbb\xbf{}", "byte order mark"),
        (b'"\xff"', "not UTF-8"),
        (b'"\xed\xa0\x80"', "not UTF-8"),
        ('{"a": 1}'.encode("utf-16"), "not UTF-8"),
        (b"[" * 65 + b"]" * 65, "deeper than 64"),
        (b'{"a":' * 65 + b"1" + b"}" * 65, "deeper than 64"),
        (b"[" * 100_000, "deeper than 64"),
        (b'["' + b'\\"' * 500_000, "not JSON"),
        (b'"[[' + b"[" * 100 + b'\\', "not JSON"),
    ],
)  # fmt: skip
def test_refused(data: bytes, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        strictjson.loads(data)


@pytest.mark.parametrize(
    ("data", "value"),
    [
        (b"-0", 0),
        (b"-0.0", -0.0),
        (b" [1] \n", [1]),
        (b'"\\ud83d\\ude00"', "\N{GRINNING FACE}"),
        (b'"' + b"[" * 200 + b'"', "[" * 200),
        (b"9" * 4_300, int("9" * 4_300)),
        (b"[[], []]", [[], []]),
        (b"[" * 64 + b"]" * 64, json.loads("[" * 64 + "]" * 64)),
    ],
)
def test_taken(data: bytes, value: object) -> None:
    assert strictjson.loads(data) == value


def test_wide_text_is_no_deep_one() -> None:
    assert len(strictjson.loads(b"[" + b",".join([b'{"a":[]}'] * 10_000) + b"]")) == 10_000
