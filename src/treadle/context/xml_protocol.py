"""The XML tool protocol on the way out: calls as the text they were, results as text."""

from typing import Any

import msgspec

from treadle.protocol.messages import ContentBlock, Message, Text, ToolResult, ToolUse


def as_xml_message(message: Message) -> Message:
    """Write the calls and results of a message as text; neighbouring texts become one block."""
    blocks: list[ContentBlock] = []
    for block in message.content:
        for piece in _as_text(block):
            last = blocks[-1] if blocks else None
            if isinstance(piece, Text) and isinstance(last, Text):
                blocks[-1] = Text(text=_join(last.text, piece.text))
            else:
                blocks.append(piece)
    return Message(role=message.role, content=tuple(blocks))


def render_call(name: str, arguments: dict[str, Any]) -> str:
    """Write a call as XML, one parameter after the other."""
    lines = [f"<{name}>"]
    lines += [f"<{key}>{_value(value)}</{key}>" for key, value in arguments.items()]
    return "\n".join((*lines, f"</{name}>"))


def _value(value: object) -> str:
    if isinstance(value, str):
        return f"\n{value}\n" if "\n" in value else value
    return msgspec.json.encode(value).decode()


def _as_text(block: ContentBlock) -> tuple[ContentBlock, ...]:
    match block:
        case ToolUse(name=name, arguments=arguments, source=source):
            return (Text(text=source or render_call(name, arguments)),)
        case ToolResult(name=name, content=content, is_error=is_error):
            label = "Error" if is_error else "Result"
            return (Text(text=f"[{name}] {label}:"), *content)
        case _:
            return (block,)


def _join(first: str, second: str) -> str:
    return first + second if first.endswith("\n") or second.startswith("\n") else f"{first}\n{second}"
