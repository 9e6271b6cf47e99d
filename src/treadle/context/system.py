"""The system prompt, put together from parts. It stays the same byte for byte as long as the session does."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from treadle.context.xml import render_call
from treadle.protocol.models import ToolProtocol
from treadle.protocol.patterns import regex
from treadle.protocol.sealed import PromptPart
from treadle.protocol.tools import ToolSpec

_RULES = """# Rules of the project

Each block holds the rules of one file. Follow them unless the user or the text above says otherwise. They end with \
their block."""

_GAP = r"[\s\u00ad\u034f\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u206f\ufe00-\ufe0f\ufeff]*"
_MARK = regex(rf"[<\u2039\u27e8\u3008\ufe64\uff1c]{_GAP}/?{_GAP}" + _GAP.join("rules"), re.IGNORECASE)
"""What a reader may take for the beginning or the end of a block, also with invisible characters in it."""


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
) -> tuple[PromptPart, ...]:
    """Build the prompt for a tool protocol; with XML the tools are described in it."""
    sections = _sections(parts, protocol, tools, rules)
    return tuple(replace(section, text=section.text.strip()) for section in sections if section.text.strip())


def _sections(
    parts: SystemParts, protocol: ToolProtocol, tools: Sequence[ToolSpec], rules: Sequence[Rules]
) -> Iterator[PromptPart]:
    yield PromptPart(name="work", text=parts.work)
    yield PromptPart(name="checklist", text=parts.checklist)
    match protocol:
        case ToolProtocol.NATIVE:
            yield PromptPart(name="native", text=parts.native)
        case ToolProtocol.XML:
            yield PromptPart(name="xml", text=parts.xml)
            for tool in tools:
                yield PromptPart(name=f"tool {tool.name}", text=describe_tool(tool))
    if rules:
        yield PromptPart(name="rules", text=_RULES)
        for one in rules:
            yield PromptPart(name="rules", text=_fenced(one), origin=one.origin)


def _fenced(rules: Rules) -> str:
    """Mark where the rules of a file begin and end; the file itself cannot write such a mark."""
    origin = rules.origin.replace("&", "&amp;").replace('"', "&quot;").replace("<", "&lt;").replace("\n", " ")
    return f'<rules from="{origin}">\n{_MARK.sub(_escaped, rules.text.strip())}\n</rules>'


def _escaped(found: re.Match[str]) -> str:
    return f"&lt;{found[0][1:]}"


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
