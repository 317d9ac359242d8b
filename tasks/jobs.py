"""Celery jobs of the board: each calls one action."""

from duduclaw.celery import app
from tasks.actions import sweep


@app.task(name="tasks.jobs.sweep_leases")
def sweep_leases() -> None:
    """Reclaim lapsed leases and free the claims of ended runs."""
    sweep.sweep_leases()
