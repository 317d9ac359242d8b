"""Signs of life of scheduler and worker, kept in Valkey."""

from typing import Literal

from django.conf import settings

from duduclaw.lib import valkey
from duduclaw.lib.clock import now

Part = Literal["scheduler", "worker"]
PARTS: tuple[Part, ...] = ("scheduler", "worker")
STALLED_AFTER = 30.0  # seconds; six pulses


def _name(part: Part) -> str:
    return f"ddc:pulse:{part}"


def mark(part: Part) -> None:
    """`part` lives now."""
    with valkey.client(settings.REDIS_URL) as connection:
        connection.set(_name(part), repr(now().timestamp()))


def ages() -> dict[Part, float | None]:
    """Seconds since each part's last sign, None when there never was one. Raises `redis.RedisError`."""
    with valkey.client(settings.REDIS_URL) as connection:
        stamps = connection.mget([_name(part) for part in PARTS])
    moment = now().timestamp()
    return {part: moment - float(stamp) if stamp else None for part, stamp in zip(PARTS, stamps, strict=True)}


def faults(found: dict[Part, float | None]) -> dict[Part, str]:
    """What stalls. The worker is judged by the pulses that the scheduler has sent, so that one fault has one name."""
    texts: dict[Part, str] = {}
    scheduler, worker = found["scheduler"], found["worker"]
    if scheduler is None or scheduler > STALLED_AFTER:
        texts["scheduler"] = _silence(scheduler)
    if worker is None or worker - (scheduler or 0.0) > STALLED_AFTER:
        texts["worker"] = _silence(worker)
    return texts


def _silence(age: float | None) -> str:
    return "no sign of life yet" if age is None else f"silent for {age:.0f} s"
