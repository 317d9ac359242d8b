"""Fixtures of the record."""

from pathlib import Path
from typing import Any

import pytest


@pytest.fixture
def anchor_home(settings: Any, tmp_path: Path) -> Path:
    """A state directory of the test's own, where the anchor file begins."""
    settings.HOME = tmp_path
    return tmp_path
