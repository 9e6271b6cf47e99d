"""What happens in a session, as the updates that clients show."""

import uuid
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from treadle.acp.call_shapes import output_content, shape_of
from treadle.acp.shapes import ToolCallBegan, ToolCallMoved, ToolContent
from treadle.present.checklist import todo_of
from treadle.present.escape import printable
from treadle.present.words import ended, restored_words, room_made
from treadle.protocol.messages import (
    Document,
    Image,
    Text,
    Thinking,
    ToolUse,
    UserContent,
    text_of,
    without_own_commands,
)
from treadle.protocol.notifications import (
    CallChanged,
    CallOutput,
    ChecklistChanged,
    ContextCompacted,
    FilesRestored,
    MessageDone,
    ModelChanged,
    Notice,
    Notification,
    PromptDelivered,
    ReplyDropped,
    ResultPresented,
    RetryScheduled,
    TextDelta,
    ThinkingDelta,
    TurnEnded,
    TurnOutcome,
    TurnStop,
)
from treadle.protocol.tools import Flow

_KEPT_OUTPUT = 256_000
"""Characters of a running command's output that are kept to be shown."""

_FINISHED = TurnStop.END_TURN

Update = Any
"""One update: a struct or a plain object with its `sessionUpdate`."""


def text_chunk(kind: str, text: str, message: str) -> Update:
    """Give a piece of a message: `kind` is user_message, agent_message or agent_thought."""
    return {
        "sessionUpdate": f"{kind}_chunk",
        "content": {"type": "text", "text": printable(text)},
        "messageId": message,
    }


def plan_of(checklist: str) -> Update:
    """Give the checklist of a task, whole."""
    entries = [
        {"content": printable(one.text), "priority": "medium", "status": "completed" if one.done else "pending"}
        for one in todo_of(checklist)
    ]
    return {"sessionUpdate": "plan", "entries": entries}


class Updates:
    """Puts notifications into updates; remembers what the client was shown of the reply and of each call.

    `root` is the folder of the session, `own` holds the ids of prompts that the client sent, and `terminal_of` gives
    the terminal in which the client is shown a command, empty for none.
    """

    def __init__(self, root: str) -> None:
        self._root = root
        self._sent: dict[str, dict[str, Any]] = {}
        self._output: dict[str, str] = {}
        self._message = uuid.uuid4().hex
        self._told: tuple[str, ...] = ()
        self._thought = self._shown = False
        self.terminal_of: Callable[[str], str] = lambda _: ""
        self.own: set[str] = set()

    def past(self, notifications: Sequence[Notification]) -> Iterator[Update]:
        """Give the updates of a session that is loaded; each call follows on its message, in its last state."""
        calls = {one.call.id: one for one in notifications if isinstance(one, CallChanged)}
        for one in notifications:
            if isinstance(one, CallChanged) or (isinstance(one, TurnEnded) and one.outcome.stop is not _FINISHED):
                continue
            yield from self.of(one)
            if isinstance(one, MessageDone):
                made = (block.id for block in one.message.content if isinstance(block, ToolUse))
                yield from (update for number in made if number in calls for update in self.of(calls.pop(number)))

    def of(self, notification: Notification) -> Iterator[Update]:  # noqa: C901 - one line for each notification
        """Give the updates of one notification; most have none."""
        match notification:
            case TextDelta(text=text):
                yield text_chunk("agent_message", text if self._shown else f"{self._gap()}{text}", self._message)
                self._shown = True
            case ThinkingDelta(text=text):
                yield text_chunk("agent_thought", text, f"{self._message}-thought")
                self._thought = True
            case MessageDone() as done:
                yield from self._whole(done)
            case ReplyDropped():
                if self._shown:
                    yield text_chunk(
                        "agent_message", "\n\n*(That answer broke off. It begins again.)*\n\n", self._message
                    )
                self._next_message()
            case CallChanged() as changed:
                yield from self._call(changed)
            case ChecklistChanged(text=text):
                yield plan_of(text)
            case PromptDelivered(prompt_id=prompt_id, content=content) if prompt_id not in self.own:
                yield from _said(content, prompt_id)
            case ResultPresented(text=text):
                yield self._say(text)
            case TurnEnded(outcome=outcome):
                yield from self._end(outcome)
            case _:
                if notice := _notice(notification):
                    # Beside the answer: scripts take the messages of an agent as its answer.
                    yield text_chunk("agent_thought", f"{notice}\n", uuid.uuid4().hex)

    def output(self, piece: CallOutput) -> None:
        """Take output of a running call, of which the client is shown the end."""
        self._output[piece.call_id] = (self._output.get(piece.call_id, "") + piece.text)[-_KEPT_OUTPUT:]

    def output_update(self, call_id: str) -> Update | None:
        """Show the output of a running call; None where the client does not know the call, or has a terminal for it."""
        if call_id not in self._sent or call_id not in self._output:
            return None
        if terminal := self.terminal_of(call_id):
            shown = self._sent[call_id]
            if shown.get("content") == (content := (_terminal(terminal),)):
                return None
            shown["content"] = content
            return ToolCallMoved(tool_call_id=call_id, content=content)
        return ToolCallMoved(tool_call_id=call_id, content=(output_content(self._output[call_id]),))

    def whole_output(self, call_id: str) -> Update | None:
        """Show the output of a call as its content: the terminal that was to show it could not."""
        raw = self._sent.get(call_id, {}).get("raw_output")
        text = raw["text"] if raw is not None else self._output.get(call_id, "")
        return ToolCallMoved(tool_call_id=call_id, content=(output_content(text),)) if text else None

    def show_call(self, call_id: str) -> None:
        """From now on the client knows this call: a question about it was shown, in words of its own."""
        self._sent[call_id] = {}

    def _next_message(self) -> None:
        self._message = uuid.uuid4().hex
        self._thought = self._shown = False

    def _whole(self, done: MessageDone) -> Iterator[Update]:
        """Show of a message what was not streamed; that is all of it where the past is shown."""
        text = text_of(done.message.content)
        if not self._thought:
            for block in done.message.content:
                if isinstance(block, Thinking) and block.text:
                    yield text_chunk("agent_thought", block.text, f"{self._message}-thought")
        if text.strip() and not self._shown:
            yield text_chunk("agent_message", f"{self._gap()}{text}", self._message)
        if text.strip():
            self._told = (*self._told, text.strip())
        self._next_message()

    def _call(self, changed: CallChanged) -> Iterator[Update]:
        """Show a call, and of one that the client knows what is new of it."""
        number = changed.call.id
        before = self._sent.get(number)
        if changed.flow is not Flow.RUN and before is None:
            return
        fields = shape_of(changed, self._root)
        terminal = self.terminal_of(number)
        if terminal:
            fields["content"] = (_terminal(terminal),)
        # Of a call that has ended nothing is said again, unless its terminal turns out to show nothing.
        ended = {"raw_output": fields["raw_output"]} if terminal and changed.result is not None else {}
        self._sent[number] = fields if changed.result is None else ended
        if before is None:
            yield ToolCallBegan(tool_call_id=number, **fields)
        elif new := {name: value for name, value in fields.items() if before.get(name) != value}:
            yield ToolCallMoved(tool_call_id=number, **new)
        if changed.result is not None:
            self._output.pop(number, None)

    def _end(self, outcome: TurnOutcome) -> Iterator[Update]:
        """Show the answer where it was no message, and why a turn ended that did not come to its end."""
        rest = f"\n\n{outcome.text.strip()}\n\n"
        for told in sorted(self._told, key=len, reverse=True):  # the words of a short one may be within a longer one
            rest = rest.replace(f"\n\n{told}\n\n", "\n\n", 1)
        if rest := rest.strip():
            yield self._say(rest)
        if outcome.stop not in (TurnStop.END_TURN, TurnStop.CANCELLED, TurnStop.ERROR):
            why = f" ({outcome.why})" if outcome.why else ""
            yield self._say(f"*{ended(outcome.stop)}{why}.*")
        self._told = ()

    def _gap(self) -> str:
        """Part a message from the one before: not all clients keep messages apart that follow on each other."""
        return "\n\n" if self._told else ""

    def _say(self, text: str) -> Update:
        """Give a message of its own."""
        said = text_chunk("agent_message", f"{self._gap()}{text}", uuid.uuid4().hex)
        self._told = (*self._told, text.strip())
        return said


def _terminal(terminal: str) -> ToolContent:
    return {"type": "terminal", "terminalId": terminal}


def _notice(notification: Notification) -> str:
    """Say in a line what is no part of the answer; empty for what needs no words."""
    match notification:
        case RetryScheduled(attempt=attempt, seconds=seconds, error=error):
            return f"{error.kind}: {error.message} (attempt {attempt + 1} in {seconds:.1f} s)"
        case ContextCompacted() as made:
            return room_made(made)
        case ModelChanged(model=model, why=why) if why:
            return f"model: {model} ({why})"
        case FilesRestored(restored=restored, conversation=conversation):
            return restored_words(restored, conversation=conversation)
        case Notice(text=text):
            return text
        case _:
            return ""


def _said(content: Sequence[UserContent], prompt_id: str) -> Iterator[Update]:
    for block in without_own_commands(content):
        match block:
            case Text(text=text):
                yield text_chunk("user_message", text, prompt_id)
            case Image(media_type=media_type, data=data):
                image = {"type": "image", "data": data, "mimeType": media_type}
                yield {"sessionUpdate": "user_message_chunk", "content": image, "messageId": prompt_id}
            case Document(title=title, media_type=media_type):
                yield text_chunk("user_message", f"[{title or media_type}]", prompt_id)
