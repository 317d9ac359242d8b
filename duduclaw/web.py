"""The web process: HTTP and WebSocket on one port. `python -m duduclaw.web`, started by `duduclaw.serve`."""

import os

import uvicorn

from duduclaw import settings

LARGEST_FRAME = 1 << 20  # bytes, as every other inbound limit
DRAIN = 3  # seconds that requests in flight get at the end


def workers() -> int:
    """SQLite has one writer, so one process; PostgreSQL gets every core but one."""
    return 1 if settings.ON_SQLITE else max(1, (os.cpu_count() or 1) - 1)


def main() -> None:
    """Serve until SIGTERM. The access log is off: addresses may hold what people should not have put there."""
    uvicorn.run(
        "duduclaw.asgi:application",
        host=settings.HOST,
        port=settings.PORT,
        workers=workers(),
        ws="websockets-sansio",
        ws_max_size=LARGEST_FRAME,
        ws_per_message_deflate=False,
        timeout_graceful_shutdown=DRAIN,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        log_config=None,
    )


if __name__ == "__main__":
    main()
