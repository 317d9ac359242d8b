"""The only door to the channel layer. A lost event costs seconds, never the change: readers compare."""

import logging
from typing import Any

from asgiref.sync import async_to_sync
from channels.layers import get_channel_layer
from django.db import transaction

log = logging.getLogger(__name__)
GROUP = "duduclaw"


def publish(topic: str, **event: Any) -> None:
    """Tell every process of `topic` once the transaction has committed."""
    transaction.on_commit(lambda: send({"type": "duduclaw.event", "topic": topic, **event}), robust=True)


def send(message: dict[str, Any]) -> None:
    """Send now; a dead Valkey is logged and healed by the sweep."""
    try:
        async_to_sync(get_channel_layer().group_send)(GROUP, message)
    except Exception as error:
        log.warning("channel layer: %s not sent: %s", message["topic"], error)
