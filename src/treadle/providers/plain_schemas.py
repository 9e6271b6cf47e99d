"""Schemas of tools that wire APIs take as they are, as those of the built-in tools; others are written anew."""

from collections.abc import Mapping
from typing import Any, Literal

_DEEPEST = 4
_LONGEST_NAME = 64


def schema_as(form: Literal["anthropic", "openai", "gemini"], schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """Give the schema of a tool's arguments as an API takes it."""
    if schema.get("type") == "object" and is_plain_schema(schema):
        return schema
    from treadle.providers.tool_schemas import SCHEMA_FORMS, schema_for

    return schema_for(SCHEMA_FORMS[form], schema)


def is_plain_schema(schema: object, depth: int = 0) -> bool:
    """Whether each API takes a schema as it is; what this does not know is not plain."""
    if not isinstance(schema, dict) or depth > _DEEPEST or type(schema.get("description", "")) is not str:
        return False
    keys = schema.keys() - {"type", "description"}
    match schema.get("type"):
        case "object":
            return keys <= {"properties", "required", "additionalProperties"} and _has_plain_properties(schema, depth)
        case "array":
            return (
                keys <= {"items", "maxItems"}
                and _is_count(schema, "maxItems")
                and is_plain_schema(schema.get("items"), depth + 1)
            )
        case "string":
            return keys <= {"enum"} and ("enum" not in schema or _are_names(schema["enum"]))
        case "integer":
            return keys <= {"minimum", "maximum"} and all(_is_count(schema, key) for key in keys)
        case "boolean":
            return not keys
        case _:
            return False


def _has_plain_properties(schema: Mapping[str, Any], depth: int) -> bool:
    properties = schema.get("properties")
    return (
        isinstance(properties, dict)
        and (bool(properties) or not depth)
        and all(_is_simple(name) and is_plain_schema(one, depth + 1) for name, one in properties.items())
        and (
            "required" not in schema or (_are_names(schema["required"]) and properties.keys() >= {*schema["required"]})
        )
        and schema.get("additionalProperties", False) is False
    )


def _is_simple(name: object) -> bool:
    return isinstance(name, str) and len(name) <= _LONGEST_NAME and name.isascii() and name.isidentifier()


def _is_count(schema: Mapping[str, Any], key: str) -> bool:
    value = schema.get(key, 0)
    return type(value) is int and value >= 0


def _are_names(values: object) -> bool:
    """Whether this is a list of different texts, and neither it nor one of them empty."""
    if not isinstance(values, list) or not values:
        return False
    return all(isinstance(one, str) and one for one in values) and len(set(values)) == len(values)
