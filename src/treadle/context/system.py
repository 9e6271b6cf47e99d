"""What the system prompt says of rules and tools: a block of a file ends where Treadle says, not the file."""

import re
from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from treadle.context.xml_protocol import render_call
from treadle.protocol.patterns import regex
from treadle.protocol.tools import ToolSpec

RULES_HEADING = """# Rules of the project and the user

Each block holds the rules of one file. Follow them unless the user or the text above says otherwise. They end with \
their block."""

_GAP = r"[\s\u00ad\u034f\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u206f\ufe00-\ufe0f\ufeff]*"
_MARK = regex(
    rf"[<\u2039\u27e8\u3008\ufe64\uff1c]{_GAP}/?{_GAP}(?:{'|'.join(map(_GAP.join, ('rules', 'skill', 'memory')))})",
    re.IGNORECASE,
)
"""What a reader may take for the beginning or the end of a block, also with invisible characters in it."""


class Rules(Struct, frozen=True, kw_only=True):
    """Instructions that a file gives; `origin` is shown to the model and the user."""

    origin: str
    text: str


def fenced(rules: Rules, kind: str = "rules") -> str:
    """Mark where the text of a file begins and ends; the file itself cannot write such a mark."""
    origin = rules.origin.replace("&", "&amp;").replace('"', "&quot;").replace("<", "&lt;").replace("\n", " ")
    return f'<{kind} from="{origin}">\n{_MARK.sub(_escaped, rules.text.strip())}\n</{kind}>'


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
