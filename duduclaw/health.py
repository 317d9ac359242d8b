"""`/healthz`, `/readyz`, `/metrics`: what a probe may know without a key. No name, no path, no secret."""

import redis
from django.conf import settings
from django.db import DatabaseError, connection
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Gauge, generate_latest

from duduclaw import pulse


def _answer(checks: dict[str, str]) -> JsonResponse:
    good = all(text == "ok" for text in checks.values())
    return JsonResponse({"status": "ok" if good else "failing", "checks": checks}, status=200 if good else 503)


def _ages() -> dict[pulse.Part, float | None] | None:
    """Since the last signs of life; None when Valkey, which keeps them, gives no answer in time."""
    try:
        return pulse.ages()
    except (redis.RedisError, OSError):
        return None


def _lively(ages: dict[pulse.Part, float | None] | None) -> dict[str, str]:
    if ages is None:
        return {"valkey": "no answer"}
    faults = pulse.faults(ages)
    return {"valkey": "ok", **{part: faults.get(part, "ok") for part in pulse.PARTS}}


def _database() -> str:
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    except DatabaseError:
        return "no answer"
    return "ok"


@never_cache
@require_safe
def healthz(request: HttpRequest) -> HttpResponse:
    """200 while Valkey answers and scheduler and worker show signs of life, else 503 with the part that does not."""
    return _answer(_lively(_ages()))


@never_cache
@require_safe
def readyz(request: HttpRequest) -> HttpResponse:
    """200 once the database answers and the first-run company stands."""
    stands = (settings.HOME / "first-run.json").exists()
    return _answer({"database": _database(), "first_run": "ok" if stands else "not done"})


@never_cache
@require_safe
def metrics(request: HttpRequest) -> HttpResponse:
    """Prometheus text: which parts are up, and how old their last sign of life is."""
    ages = _ages()
    registry = CollectorRegistry()
    up = Gauge("duduclaw_up", "1 while the part works", ["part"], registry=registry)
    age = Gauge("duduclaw_pulse_age_seconds", "Since the last sign of life", ["part"], registry=registry)
    for part, text in {"database": _database(), **_lively(ages)}.items():
        up.labels(part).set(text == "ok")
    for part, seconds in (ages or {}).items():
        if seconds is not None:
            age.labels(part).set(seconds)
    return HttpResponse(generate_latest(registry), content_type=CONTENT_TYPE_LATEST)
