"""One JSON object a line on stderr, secrets masked."""

import json
import logging
import time

from duduclaw.lib.oneline import one_line
from duduclaw.lib.redact import mask_text


class JsonFormatter(logging.Formatter):
    """`{"time", "level", "logger", "text"}`, and `trace` for an exception."""

    converter = staticmethod(time.gmtime)

    def format(self, record: logging.LogRecord) -> str:
        """The record as one line; a newline in the text stays escaped inside it."""
        line = {
            "time": f"{self.formatTime(record, '%Y-%m-%dT%H:%M:%S')}.{record.msecs:03.0f}Z",
            "level": record.levelname,
            "logger": record.name,
            "text": mask_text(record.getMessage()),
        }
        if record.exc_info:
            line["trace"] = mask_text(self.formatException(record.exc_info))
        return one_line(json.dumps(line, ensure_ascii=False))
