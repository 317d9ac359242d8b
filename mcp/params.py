"""Parameter types of tools: the schema's own type, and its string form where models send one.

Strings are never touched. Digit strings and "true"/"false" are ASCII only, without blanks.
"""

import re
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, StringConstraints, WithJsonSchema

from duduclaw.lib import strictjson

DIGITS = re.compile(r"-?[0-9]{1,18}\Z", re.ASCII)
LARGEST = 2**63 - 1  # what a database column takes


def to_int(value: Any) -> Any:
    """Turn "5" and 5.0 into 5; leave the rest to the strict validator."""
    if isinstance(value, str) and DIGITS.match(value):
        return int(value)
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return int(value)
    if isinstance(value, int) and abs(value) > LARGEST:
        raise ValueError("is out of range")
    return value


def to_bool(value: Any) -> Any:
    """Turn "true" and "false" into booleans."""
    return {"true": True, "false": False}.get(value, value) if isinstance(value, str) else value


def from_json(value: Any) -> Any:
    """Read a JSON array or object that came as text, as strictly as the frame around it."""
    if isinstance(value, str) and value[:1] in ("[", "{"):
        try:
            return strictjson.loads(value.encode())
        except ValueError:
            return value
    return value


def to_list(value: Any) -> Any:
    """Read a JSON array or a comma list that came as text."""
    value = from_json(value)
    if not isinstance(value, str):
        return value
    if value.startswith(("[", "{")):
        raise ValueError("is no JSON list")
    return [item.strip() for item in value.split(",") if item.strip()]


Int = Annotated[int, BeforeValidator(to_int, json_schema_input_type=int), Field(strict=True)]
Bool = Annotated[bool, BeforeValidator(to_bool, json_schema_input_type=bool), Field(strict=True)]
Text = Annotated[str, StringConstraints(strict=True)]
TextList = Annotated[
    list[Text],
    BeforeValidator(to_list),
    Field(max_length=500),
    WithJsonSchema({"type": "array", "items": {"type": "string"}}),
]
JsonObject = Annotated[dict[str, Any], BeforeValidator(from_json), WithJsonSchema({"type": "object"})]
