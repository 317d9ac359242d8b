"""The record of cases: what counts as carrying an id, and when a due one is unmet."""

import pytest

from tests import case_results
from tests.case_results import best, due, ids_of, unmet


@pytest.mark.parametrize(
    ("nodeid", "ids"),
    [
        ("tasks/tests/test_claim.py::test_K01_one_winner", ["K01"]),
        ("tasks/tests/test_claim.py::test_K01_one_winner[postgres]", ["K01"]),
        ("mcp/tests/test_x.py::test_T47_admin_T46_csrf", ["T47", "T46"]),
        ("mcp/tests/test_T99.py::test_plain", []),
        ("mcp/tests/test_x.py::test_ABC12_and_K012", []),
    ],
)
def test_ids_are_read_from_the_tests_own_name(nodeid: str, ids: list[str]) -> None:
    assert ids_of(nodeid) == ids


def test_every_id_has_a_state() -> None:
    assert len(due()) == 99
    assert due()["K01"] and not due()["R01"]


def test_a_failure_outweighs_a_pass_and_a_pass_a_skip() -> None:
    results = {"a.py::test_K01_a": "passed", "b.py::test_K01_b": "failed", "c.py::test_K02_c": "skipped"}
    assert best(results) == {"K01": ("failed", "b.py"), "K02": ("skipped", "c.py")}
    assert best({**results, "d.py::test_K02_d": "passed"})["K02"] == ("passed", "d.py")


def test_a_due_id_without_a_passing_test_is_unmet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(case_results, "due", lambda: {"K01": True, "K02": True, "R01": False})
    assert unmet({"a.py::test_K01_a": "passed", "c.py::test_K02_c": "skipped"}) == ["K02"]
