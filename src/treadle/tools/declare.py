"""What tools say of themselves: the prompt text beside each, and JSON Schemas of their parameters."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

_HERE = Path(__file__).parent


def prompt(tool: str) -> str:
    """Read the description that stands beside a tool's module, in a file of the same name ending in `.md`."""
    return (_HERE / f"{tool}.md").read_bytes().decode().strip()


def parameters(properties: Mapping[str, Any], *, optional: tuple[str, ...] = ()) -> dict[str, Any]:
    """Build the JSON Schema of an object with these properties and no others."""
    required = [name for name in properties if name not in optional]
    return {"type": "object", "properties": dict(properties), "required": required, "additionalProperties": False}


def text(description: str) -> dict[str, Any]:
    """Build the schema of a string."""
    return {"type": "string", "description": description}


def number(description: str, *, low: int, high: int | None = None) -> dict[str, Any]:
    """Build the schema of an integer within bounds."""
    bounds = {"minimum": low} if high is None else {"minimum": low, "maximum": high}
    return {"type": "integer", "description": description, **bounds}


PATH = text("The file, relative to the workspace or absolute.")
