"""Arguments against a tool's model: the cleaned keyword arguments, or one error that names the parameter. Pure."""

import re
from typing import Any

from pydantic import ValidationError

from mcp.errors import InvalidArguments
from mcp.refusals import invalid_parameter, missing_parameter
from mcp.registry import Tool

# What the validator library puts before its own words.
SUBJECT = re.compile(r"(?:Value error,|Input|String|List|Dictionary|Value) ")
WORDS = {
    "int_type": "must be an integer",
    "int_parsing": "must be an integer",
    "int_from_float": "must be an integer",
    "bool_type": "must be true or false",
    "bool_parsing": "must be true or false",
    "string_type": "must be a string",
    "list_type": "must be a list",
    "dict_type": "must be an object",
    "extra_forbidden": "is no parameter of this tool",
}


def arguments(tool: Tool, given: dict[str, Any]) -> dict[str, Any]:
    """The keyword arguments of the handler. Null means absent; defaults are left to the function."""
    present = {name: value for name, value in given.items() if value is not None}
    try:
        model = tool.model.model_validate(present)
    except ValidationError as error:
        raise explain(error) from None
    return {name: getattr(model, name) for name in model.model_fields_set if name != "confirm"}


def explain(error: ValidationError) -> InvalidArguments:
    """The first fault in words; a missing parameter has the exact text of the tool author's guide."""
    faults = error.errors(include_url=False, include_context=False, include_input=False)
    missing = [fault for fault in faults if fault["type"] == "missing"]
    fault = missing[0] if missing else faults[0]
    name = str(fault["loc"][0]) if fault["loc"] else ""
    if fault["type"] == "missing":
        return InvalidArguments(missing_parameter(name), name)
    words = WORDS.get(fault["type"]) or SUBJECT.sub("", fault["msg"])
    where = name if len(fault["loc"]) == 1 else ".".join(str(part) for part in fault["loc"])
    return InvalidArguments(invalid_parameter(printable(where), words), printable(name))


def printable(name: str) -> str:
    """A caller's own text, cut and inert."""
    return name[:60].encode("unicode_escape").decode("ascii")
