"""The pure parts: tags and schedules."""

import pytest

from mcp.errors import InvalidArguments
from tasks import schedules
from tasks.actions import tags


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("0 9 * * 1-5", "cron"),
        ("*/5 * * * *", "cron"),
        ("0 0 9 * * *", "cron"),
        ("0 0 9 * * * 2027", "cron"),
        ("2026-03-02T10:00:00Z", "instant"),
        ("2026-03-02t10:00:00.5+02:00", "instant"),
        ("2026-03-02 10:00:00z", "instant"),
        ("2026-03-02T10:00:00", None),
        ("2026-03-02", None),
        ("2026-13-02T10:00:00Z", None),
        ("60 9 * * *", None),
        ("0 0 9 * * * next", None),
        ("0 9 * *", None),
        ("@daily", None),
        ("tomorrow", None),
        ("", None),
    ],
)
def test_schedules_are_cron_or_an_instant(text: str, kind: str | None) -> None:
    assert schedules.classify(text) == kind


def test_reserved_tags_match_whole_tags_by_prefix() -> None:
    parsed = tags.parse(" billing, grant:a ,outcome:b,,auto-research,x-grant:c,grant:a,auto-research-2,AUTO-RESEARCH")
    assert tags.reserved(parsed) == ["grant:a", "outcome:b", "auto-research", "grant:a"]
    assert tags.granted_tools([*parsed, "grant:", "grant: b ", f"grant:{'x' * 65}"]) == ["a", "b"]


@pytest.mark.parametrize("value", [["a,b"], [1], [f"t{n}" for n in range(101)]])
def test_tags_that_are_none_are_refused(value: list[str]) -> None:
    with pytest.raises(InvalidArguments):
        tags.parse(value)
