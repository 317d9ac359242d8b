"""Celery jobs of the record: each calls one action."""

from celery import shared_task

from mcp.seal import seal


@shared_task(ignore_result=True)
def seal_audit() -> None:
    """Number and chain what was recorded since the last run."""
    seal()
