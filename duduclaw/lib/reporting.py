"""Errors to Sentry, when it is configured: without request bodies, variables and people, and with secrets masked."""

from typing import Any

import sentry_sdk
from sentry_sdk.utils import BadDsn

from duduclaw.lib.env import BadSetting
from duduclaw.lib.redact import mask


def scrub(event: Any, hint: Any) -> Any:
    """The event as it may leave this machine."""
    return mask(event)


def start(dsn: str) -> None:
    """Report from this process on. Nothing happens without an address."""
    if not dsn:
        return
    try:
        sentry_sdk.init(
            dsn=dsn,
            before_send=scrub,
            before_breadcrumb=scrub,
            max_request_body_size="never",
            data_collection={
                "user_info": False,
                "cookies": {"mode": "off"},
                "http_bodies": [],
                "url_query_params": {"mode": "off"},
                "database_query_data": False,
                "queues": False,
                "stack_frame_variables": False,
            },
        )
    except BadDsn as error:
        raise BadSetting(f"SENTRY_DSN: {error}; copy it from the project's settings there") from error
