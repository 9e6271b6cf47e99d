"""What the commands of a session printed: the last ones that ended, and those that still run."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from treadle.app.session.mentions.enclosing import NotEnclosedError, head_and_tail
from treadle.app.session.own_commands.own_shell import Ended
from treadle.protocol.messages import Message, Text, ToolResult, ToolUse
from treadle.tools.declarations import EXECUTE_COMMAND
from treadle.workspace.files.text import Decoder, as_displayed
from treadle.workspace.workspace import OpenCommands

_LAST = 3


def terminal_text(conversation: Sequence[Message], own: Sequence[Ended], commands: OpenCommands, room: int) -> str:
    """Show the last commands of the model and of the person, and those that run. Looks at files.

    Raises `NotEnclosedError` where there are none. What it gives is not redacted.
    """
    shown = list(_of_model(conversation))[-_LAST:]
    shown += [f"[run by the user]\n$ {one.line}\n{one.output.rstrip()}\n{one.said}" for one in own]
    shown += _running(commands, max(1, room // 4))
    if not shown:
        raise NotEnclosedError("no command was run in this session.")
    return "\n\n".join(head_and_tail(text, room // len(shown)) for text in shown)


def _of_model(conversation: Sequence[Message]) -> Iterator[str]:
    lines: dict[str, str] = {}
    for message in conversation:
        for block in message.content:
            match block:
                case ToolUse(id=call_id, name=EXECUTE_COMMAND.name, arguments=arguments):
                    lines[call_id] = str(arguments.get("command", ""))
                case ToolResult(call_id=call_id, content=content) if call_id in lines:
                    text = "\n".join(part.text for part in content if isinstance(part, Text))
                    yield f"$ {lines[call_id]}\n{text}"
                case _:
                    pass


def _running(commands: OpenCommands, room: int) -> Iterator[str]:
    for number, command in commands.all():
        text = _end_of(command.output_file, room) if command.output_file else "(no output was kept yet)"
        yield f"[command {number}, in the background]\n$ {command.line}\n{text.rstrip()}\n{command.describe()}"


def _end_of(path: str, size: int) -> str:
    """Read the last bytes of a file of output."""
    try:
        with Path(path).open("rb") as file:
            length = file.seek(0, 2)
            file.seek(max(0, length - size))
            text = as_displayed(Decoder().feed(file.read(size), final=True))
    except OSError:
        return "(its output cannot be read)"
    return f"[... {length - size:,} bytes before this are in {path} ...]\n{text}" if length > size else text
