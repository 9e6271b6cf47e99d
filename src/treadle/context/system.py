"""The system prompt, put together from parts. It stays the same byte for byte as long as the session does."""

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from treadle.context.xml import render_call
from treadle.protocol.models import ToolProtocol
from treadle.protocol.tools import ToolSpec


class Rules(Struct, frozen=True, kw_only=True):
    """Instructions that a file gives; `origin` is shown to the model and the user."""

    origin: str
    text: str


class SystemParts(Struct, frozen=True, kw_only=True):
    """The texts of the prompt: how to work, how to keep the checklist, how to call tools in either protocol."""

    work: str
    native: str
    xml: str
    checklist: str = ""


def system_prompt(
    parts: SystemParts, protocol: ToolProtocol, *, tools: Sequence[ToolSpec] = (), rules: Sequence[Rules] = ()
) -> str:
    """Build the prompt for a tool protocol; with XML the tools are described in it."""
    sections = [parts.work, parts.checklist]
    match protocol:
        case ToolProtocol.NATIVE:
            sections.append(parts.native)
        case ToolProtocol.XML:
            sections.append(parts.xml)
            sections += [describe_tool(tool) for tool in tools]
    sections += [f"# Rules from {rule.origin}\n\n{rule.text.strip()}" for rule in rules]
    return "\n\n".join(section.strip() for section in sections if section.strip())


def describe_tool(tool: ToolSpec) -> str:
    """Describe a tool for the XML protocol: what it does, its parameters, how a call looks."""
    properties: Mapping[str, Any] = tool.parameters.get("properties", {})
    required = set(tool.parameters.get("required", ()))
    lines = [f"## {tool.name}", "", tool.description.strip(), "", "Parameters:"]
    for name, schema in properties.items():
        need = "required" if name in required else "optional"
        lines.append(f"- {name} ({need}, {schema.get('type', 'any')}): {schema.get('description', '')}".rstrip(": "))
    example = {name: f"{name} here" for name in properties if name in required}
    return "\n".join((*lines, "", "Usage:", render_call(tool.name, example)))
