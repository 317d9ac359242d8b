"""What the scheduler sends, and how often. A message is a hint: rows in the database say what is due."""

from typing import Any

PULSE_JOB = "duduclaw.jobs.pulse"


def every(seconds: float, job: str) -> dict[str, Any]:
    """An entry whose message is dropped when no worker took it before the next one."""
    return {"task": job, "schedule": seconds, "options": {"expires": max(seconds, 5.0)}}


SCHEDULE = {
    "pulse": every(5.0, PULSE_JOB),
    "seal": every(1.0, "mcp.jobs.seal_audit"),
    "expired questions and grants": every(10.0, "agents.jobs.sweep_expired"),
    "lapsed leases": every(5.0, "tasks.jobs.sweep_leases"),
}
