"""`{{ text|inert }}`: what an agent wrote, on one line, cut, with hidden characters visible; escaped as ever."""

from typing import Any

from django import template

from duduclaw.lib.visible import line

register = template.Library()


@register.filter
def inert(value: Any, longest: int = 120) -> str:
    """The value as text."""
    return line(str(value), longest)
