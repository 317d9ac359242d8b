"""Cursor pages: `{"results": [...], "next": address or null}`. New rows never shift a page."""

from typing import Any

from django.core.exceptions import ValidationError
from rest_framework.exceptions import NotFound, ParseError
from rest_framework.pagination import CursorPagination
from rest_framework.response import Response

BAD_CURSOR = ParseError("cursor: is no cursor of this list", "invalid_arguments")


class Pages(CursorPagination):
    """Newest first by id (ids are ordered by time), 50 rows, at most 200 by `?limit=`."""

    page_size = 50
    max_page_size = 200
    page_size_query_param = "limit"
    ordering = "-id"

    def paginate_queryset(self, queryset: Any, request: Any, view: Any = None) -> Any:
        """The page of a request; a made-up cursor is a bad argument, whatever the column makes of it."""
        try:
            return super().paginate_queryset(queryset, request, view)
        except (ValueError, ValidationError, OverflowError) as error:
            raise BAD_CURSOR from error

    def decode_cursor(self, request: Any) -> Any:
        """DRF answers 404 to a broken cursor; a page that cannot be is no missing object."""
        try:
            return super().decode_cursor(request)
        except NotFound as error:
            raise BAD_CURSOR from error

    def get_paginated_response(self, data: Any) -> Response:
        return Response({"results": data, "next": self.get_next_link()})

    def get_paginated_response_schema(self, schema: dict[str, Any]) -> dict[str, Any]:
        """As the OpenAPI document describes it."""
        return {
            "type": "object",
            "required": ["results", "next"],
            "properties": {
                "results": schema,
                "next": {
                    "type": "string",
                    "nullable": True,
                    "format": "uri",
                    "description": "Address of the next page.",
                },
            },
        }


class NamePages(Pages):
    """By name."""

    ordering = "name"
