"""What the shapes share."""

from datetime import datetime
from typing import Any

from rest_framework import serializers

from duduclaw.lib import clock


class Moment(serializers.DateTimeField):
    """RFC 3339 in UTC with microseconds and `Z`."""

    def to_representation(self, value: datetime) -> str:
        return clock.stamp(value)


class Named(serializers.CharField):
    """The name of a related agent."""

    def to_representation(self, value: Any) -> str:
        return str(value.name)


class Refusal(serializers.Serializer[Any]):
    """Every error."""

    error = serializers.CharField(help_text="A stable code.")
    detail = serializers.CharField(required=False, help_text="What is wrong and how to mend it.")
