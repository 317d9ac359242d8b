"""Jobs of the platform itself."""

from duduclaw.beat import PULSE_JOB
from duduclaw.celery import app
from duduclaw.pulse import mark


@app.task(name=PULSE_JOB)
def pulse() -> None:
    """Show that the worker takes and runs what the scheduler sends."""
    mark("worker")
