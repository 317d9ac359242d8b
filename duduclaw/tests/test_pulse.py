"""Signs of life: which part is called stalled, and that the schedule names jobs which exist."""

import pytest

from duduclaw.beat import SCHEDULE
from duduclaw.celery import app
from duduclaw.pulse import Part, ages, faults, mark


@pytest.mark.parametrize(
    ("scheduler", "worker", "stalled"),
    [
        (1.0, 1.0, []),
        (31.0, 31.0, ["scheduler"]),  # nothing was sent, so the worker has nothing to show
        (1.0, 40.0, ["worker"]),
        (31.0, 90.0, ["scheduler", "worker"]),
        (None, None, ["scheduler", "worker"]),
        (2.0, None, ["worker"]),
    ],
)
def test_one_fault_has_one_name(scheduler: float | None, worker: float | None, stalled: list[Part]) -> None:
    assert list(faults({"scheduler": scheduler, "worker": worker})) == stalled


def test_a_sign_is_kept_and_ages(valkey: str) -> None:
    mark("worker")
    age = ages()["worker"]
    assert age is not None
    assert age >= 0


def test_every_entry_of_the_schedule_names_a_job() -> None:
    app.loader.import_default_modules()
    assert {entry["task"] for entry in SCHEDULE.values()} <= set(app.tasks)
