"""Messages of a host as what the model reads, and what a host is asked before a session opens."""

import base64
import binascii
import uuid
from collections.abc import Callable, Iterator

from msgspec.structs import replace

from treadle.door.trust import SessionTrust, nothing_acts, trust_lines
from treadle.headless.channel import Channel, Frame, HostError
from treadle.protocol.messages import Document, Image, Text, UserContent

TRUST = "TrustFolder"
"""The tool that a host is asked about before a folder's rules and settings are used: Claude Code has none."""


def content_of(frame: Frame, warn: Callable[[str], None]) -> tuple[UserContent, ...]:
    """Read what a message of the host holds; what cannot be sent is left out, and `warn` says so."""
    message = frame.get("message")
    content = message.get("content") if isinstance(message, dict) else None
    if isinstance(content, str):
        return (Text(text=content),) if content.strip() else ()
    return tuple(_blocks(content if isinstance(content, list) else [], warn))


def _blocks(content: list[object], warn: Callable[[str], None]) -> Iterator[UserContent]:
    for block in content:
        match block:
            case {"type": "text", "text": str(text)} if text.strip():
                yield Text(text=text)
            case {"type": "image" | "document" as kind, "source": {"media_type": str(media), "data": str(data)}}:
                if not _is_base64(data):
                    warn(f"A block of the type {kind} is left out: its data is not valid base64.")
                elif kind == "image":
                    yield Image(media_type=media, data=data)
                else:
                    yield Document(media_type=media, data=data)
            case {"type": "text"}:
                pass
            case {"type": kind}:
                warn(f"A block of the type {kind} is left out: it cannot be sent.")
            case _:
                warn("A block without a type is left out.")


def _is_base64(data: str) -> bool:
    try:
        base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        return False
    return bool(data)


def trust_request(trust: SessionTrust) -> Frame:
    """Ask whether what is in the folder of a session may take effect in it."""
    items = [{"kind": item.kind.value, "path": item.path, "digest": item.digest} for item in trust.items]
    return {
        "subtype": "can_use_tool",
        "tool_name": TRUST,
        "display_name": TRUST,
        "title": f"Trust the folder {trust.workspace} for this session?",
        "description": "\n".join(trust_lines(trust.trust)) or nothing_acts(trust.trust),
        "input": {"folder": str(trust.workspace), "items": items},
        "tool_use_id": f"trust_{uuid.uuid4().hex[:12]}",
        "permission_suggestions": [],
    }


async def host_trust(trust: SessionTrust, channel: Channel, warn: Callable[[str], None]) -> SessionTrust:
    """Ask the host whether what is in the folder may take effect; anything but a yes is a no."""
    try:
        said = await channel.ask(trust_request(trust))
    except HostError as error:
        warn(f"The folder is not trusted: {error}")
        return trust
    return replace(trust, once=said.get("behavior") == "allow")
