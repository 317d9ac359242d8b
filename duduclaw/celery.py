"""The Celery application. Only jobs import it: `from duduclaw.celery import app`, then `@app.task`."""

import logging.config
import os
from typing import Any

from celery import Celery, signals
from django.conf import settings

from duduclaw.beat import PULSE_JOB, SCHEDULE
from duduclaw.pulse import mark

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "duduclaw.settings")

app = Celery("duduclaw")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.conf.beat_schedule = SCHEDULE
app.autodiscover_tasks(related_name="jobs")


@signals.setup_logging.connect
def use_our_logging(**_: Any) -> None:
    """Celery would install its own handlers."""
    logging.config.dictConfig(settings.LOGGING)


@signals.before_task_publish.connect(sender=PULSE_JOB)
def mark_scheduler(**_: Any) -> None:
    """The scheduler lives: it has just sent the job whose run will show that the worker lives."""
    mark("scheduler")


@signals.beat_init.connect
def send_first_pulse(**_: Any) -> None:
    """The schedule's own first one comes an interval later; health should not wait for it."""
    app.send_task(PULSE_JOB)
