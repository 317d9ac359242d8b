"""The reference of settings says what the code reads, no more and no less."""

import re

from tests.services import ROOT

READ = re.compile(r'\benv(?:_[a-z]+)?\(\s*"([A-Z_]+)"')
ROW = re.compile(r"^\| `([A-Z_]+)` \|", re.MULTILINE)
FIRST_PAGE = 15


def test_every_setting_is_in_the_reference() -> None:
    read = set(READ.findall((ROOT / "duduclaw" / "settings.py").read_text(encoding="utf-8")))
    documented = ROW.findall((ROOT / "docs" / "settings.md").read_text(encoding="utf-8"))
    assert sorted(documented) == sorted(read)
    assert len(documented) <= FIRST_PAGE
