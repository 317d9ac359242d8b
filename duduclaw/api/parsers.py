"""Bodies: one JSON object of at most 1 MiB, read by the strict parser. There is no other format."""

from collections.abc import Mapping
from typing import IO, Any

from rest_framework.exceptions import APIException, ParseError
from rest_framework.parsers import BaseParser

from duduclaw.lib import strictjson

LARGEST = 2**20  # bytes


class TooLarge(APIException):
    """413."""

    status_code = 413
    default_code = "too_large"
    default_detail = f"a body has at most {LARGEST} bytes"


class StrictJSONParser(BaseParser):
    """Refuses what has two meanings or none: duplicate keys, NaN, lone surrogates, depth over 64."""

    media_type = "application/json"

    def parse(
        self, stream: IO[Any], media_type: str | None = None, parser_context: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        data = stream.read(LARGEST + 1)
        if len(data) > LARGEST:
            raise TooLarge
        try:
            value = strictjson.loads(data)
        except ValueError as error:
            raise ParseError(str(error), "invalid_json") from None
        if not isinstance(value, dict):
            raise ParseError("the body must be a JSON object", "invalid_json")
        return value
