"""What a request looks like to a script, whatever the wire format."""

from collections.abc import Sequence
from itertools import groupby

from msgspec import Struct

from treadle.protocol.messages import Message, Role, Text, ToolResult, text_of
from treadle.protocol.models import ModelRequest
from treadle.providers.scripted.script import Expectation, Texts


class SeenMessage(Struct, frozen=True, kw_only=True):
    """One message: its text, and the texts of the results in it."""

    role: Role
    text: str = ""
    results: tuple[str, ...] = ()
    has_error: bool = False


class SeenRequest(Struct, frozen=True, kw_only=True):
    """What a script can ask about a request. The counts take neighbours of one role as one message."""

    model: str
    system: str
    conversation: str
    last_user: str
    last_result: str
    result_is_error: bool
    tools: tuple[str, ...]
    messages: int
    assistant_messages: int


def see(model: str, system: str, messages: Sequence[SeenMessage], tools: tuple[str, ...]) -> SeenRequest:
    """Sum up a request."""
    roles = [role for role, _ in groupby(messages, key=_role)]
    users = [message for message in messages if message.role is Role.USER]
    last_user = next((message.text for message in reversed(users) if message.text), "")
    results, failed = _last_results(messages)
    return SeenRequest(
        model=model,
        system=system,
        conversation="\n".join("\n".join((*message.results, message.text)) for message in messages),
        last_user=last_user,
        last_result="\n".join(results) if tools else last_user,
        result_is_error=failed,
        tools=tools,
        messages=len(roles),
        assistant_messages=roles.count(Role.ASSISTANT),
    )


def _last_results(messages: Sequence[SeenMessage]) -> tuple[list[str], bool]:
    """Find the results of the last step, which some formats send as a message each, and whether one is an error."""
    steps = [[*step] for role, step in groupby(messages, key=_role) if role is Role.USER]
    last = next((step for step in reversed(steps) if any(message.results for message in step)), [])
    return [text for message in last for text in message.results], any(message.has_error for message in last)


def _role(message: SeenMessage) -> Role:
    return message.role


def see_request(request: ModelRequest) -> SeenRequest:
    """Sum up a request in the neutral form."""
    tools = tuple(tool.name for tool in request.tools)
    return see(request.model, request.system, [_see_message(message) for message in request.messages], tools)


def _see_message(message: Message) -> SeenMessage:
    results = [block for block in message.content if isinstance(block, ToolResult)]
    return SeenMessage(
        role=message.role,
        text="\n".join(block.text for block in message.content if isinstance(block, Text)),
        results=tuple(text_of(result.content) for result in results),
        has_error=any(result.is_error for result in results),
    )


def misses(match: Expectation, seen: SeenRequest) -> list[str]:
    """Say in which ways a request is not what is asked for; nothing where it is."""
    texts = {"last_user": seen.last_user, "last_result": seen.last_result, "system": seen.system}
    found: list[str] = []
    for name, text in (*texts.items(), ("conversation", seen.conversation)):
        found += _text_misses(name, getattr(match, name), text)
    found += [f"tools lack {name!r}" for name in match.tools.contains if name not in seen.tools]
    found += [f"tools have {name!r}" for name in match.tools.not_contains if name in seen.tools]
    figures = (
        ("messages", match.messages, seen.messages),
        ("assistant_messages", match.assistant_messages, seen.assistant_messages),
        ("result_is_error", match.result_is_error, seen.result_is_error),
        ("model", match.model, seen.model),
    )
    found += [f"{name} is {have!r}, not {want!r}" for name, want, have in figures if want is not None and want != have]
    return found


def _text_misses(name: str, texts: Texts, text: str) -> list[str]:
    return [f"{name} lacks {part!r}" for part in texts.contains if part not in text] + [
        f"{name} contains {part!r}" for part in texts.not_contains if part in text
    ]
