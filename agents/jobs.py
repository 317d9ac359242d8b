"""Celery jobs of principals: each calls one action."""

from celery import shared_task

from agents.actions import approvals


@shared_task(ignore_result=True)
def sweep_expired() -> None:
    """Stamp expired questions and grants."""
    approvals.sweep_expired()
