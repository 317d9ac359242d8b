"""JSON Schema of a tool's parameters, in the plain subset that every client reads: no $ref, no anyOf."""

from typing import Annotated, Any

from pydantic import BaseModel, Field

NOISE = ("title", "default")
STANDARD = {"ge": "minimum", "le": "maximum", "gt": "exclusiveMinimum", "lt": "exclusiveMaximum"}
CONFIRM_TEXT = "Must be true, after a person agreed; anything else is refused."


def confirm_field() -> tuple[Any, Any]:
    """The required boolean of a destructive tool; the choke point has checked it before validation."""
    return Annotated[bool, Field(strict=True, description=CONFIRM_TEXT)], ...


def input_schema(model: type[BaseModel]) -> dict[str, Any]:
    """`{"type": "object", "properties", "required", "additionalProperties": false}`."""
    raw = model.model_json_schema(mode="validation")
    if "$defs" in raw:
        raise TypeError(f"{model.__name__}: nested models are not allowed in a tool's parameters")
    properties = {name: plain(body) for name, body in raw.get("properties", {}).items()}
    schema: dict[str, Any] = {"type": "object", "properties": properties, "additionalProperties": False}
    if raw.get("required"):
        schema["required"] = raw["required"]
    return schema


def plain(body: dict[str, Any]) -> dict[str, Any]:
    """One property without titles, defaults and the `null` arm of an optional."""
    arms = [arm for arm in body.get("anyOf", ()) if arm.get("type") != "null"]
    if "anyOf" in body:
        if len(arms) != 1:
            raise TypeError(f"a parameter has one type, this has {len(arms)}")
        body = {**arms[0], **{key: value for key, value in body.items() if key != "anyOf"}}
    kept = {STANDARD.get(key, key): value for key, value in body.items() if key not in NOISE}
    if body.get("default") not in (None, [], {}):
        kept["default"] = body["default"]
    return kept
