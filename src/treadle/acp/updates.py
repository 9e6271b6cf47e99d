"""What happens in a session, as the updates that clients show."""

import uuid
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from typing import Any

from treadle.acp.call_shapes import output_content, shape_of, text_content
from treadle.acp.shapes import ToolCallBegan, ToolCallMoved, ToolContent
from treadle.present.call_words import whole_output
from treadle.present.checklist_items import todo_of
from treadle.present.child_words import child_line
from treadle.present.escape import printable
from treadle.present.fold import fold_notification
from treadle.present.item_lines import note_line
from treadle.present.items import (
    CallItem,
    Item,
    ModeItem,
    ModelItem,
    NoteItem,
    Placed,
    ProblemItem,
    ProseItem,
    SaidItem,
    ThoughtItem,
    TurnItem,
)
from treadle.present.view import SessionView
from treadle.present.words import counted, ended
from treadle.protocol.attach import Stamped
from treadle.protocol.checkpoints import Restore
from treadle.protocol.children import ChildOutcome
from treadle.protocol.errors import TreadleError
from treadle.protocol.events import Op
from treadle.protocol.messages import Document, Image, Text, UserContent, without_own_commands
from treadle.protocol.notifications import (
    CallChanged,
    ChildChanged,
    FilesRestored,
    MessageDone,
    PromptDelivered,
    QuestionClosed,
    ReplyDropped,
    TurnEnded,
    TurnOutcome,
    TurnStop,
)

Update = Any
"""One update: a struct or a plain object with its `sessionUpdate`."""

BROKE_OFF = "\n\n*(That answer broke off. It begins again.)*\n\n"
_LONGEST_TITLE = 200
LOST = "The terminal of the editor did not come up. What the command prints is shown here."
WITHDRAWN = "The reply that made this call broke off."


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


class _Shown:
    """How many characters (`size`) of a text the client was shown, and as a piece of which message, after a `gap`."""

    def __init__(self, kind: str, message: str, size: int = 0, gap: str = "") -> None:
        self._gap = gap
        self.kind = kind
        self.message = message
        self.size = size

    def more(self, text: str) -> Iterator[Update]:
        """Show what is new of it."""
        if new := text[self.size :]:
            self.size = len(text)
            yield text_chunk(self.kind, self._gap + new, self.message)
            self._gap = ""


_ENDED = "ended"
_PROSE = ("text", _ENDED)
"""What was shown last, if it is the answer."""


class Updates:
    """Puts the items of a session into updates; remembers what the client was shown of the reply and of each call.

    `root` is the folder of the session, `own` holds the ids of prompts that the client sent, and `terminal_of` gives
    the terminal in which the client is shown a command, empty for none. `asked` are the questions that were shown as
    messages, `answered` the calls whose questions the client's own messages answered.
    """

    def __init__(self, root: str) -> None:
        self.view = SessionView(root=root)
        self.terminal_of: Callable[[str], str] = lambda _: ""
        self.own: set[str] = set()
        self.asked: set[str] = set()
        self.answered: set[str] = set()
        self._prompts: dict[str, Sequence[UserContent]] = {}
        self._calls: dict[str, dict[str, Any]] = {}
        self._places: dict[int, str] = {}
        self._in_terminals: dict[str, str] = {}
        self._texts: dict[int, _Shown] = {}
        self._message = self._last = ""
        self._children: set[str] = set()
        self._ahead = 0
        self._ended = -1
        self._spoke = self._restoring = False

    def past(self, past: Iterable[Stamped]) -> Iterator[Update]:
        """Give the updates of what is over: each item once and in its place, as it is now."""
        items: dict[int, Placed] = {}
        parts = {0}
        for stamped in past:
            items.update((placed.position, placed) for placed in self._fold(stamped))
            if isinstance(stamped.notification, MessageDone | TurnEnded):
                parts.add(self.view.places)
        for position in sorted(items):
            if position in parts:
                self._last = ""
            yield from self._show(items[position])
        if self.view.checklist:
            yield plan_of(self.view.checklist)

    def know(self, past: Iterable[Stamped]) -> None:
        """Take note of what the client knows already, or is not to be shown."""
        for stamped in past:
            self._fold(stamped)
        self._prompts.clear()

    def answering(self, post: Callable[[Op], Awaitable[None]]) -> Callable[[Op], Awaitable[None]]:
        """Post what a command wants: what it restores is told by its answer, and so not beside it as well."""

        async def posted(op: Op) -> None:
            self._restoring = isinstance(op, Restore) and op.files
            try:
                await post(op)
            except TreadleError:
                self._restoring = False
                raise

        return posted

    def take(self, stamped: Stamped) -> Iterator[Update]:
        """Give the updates of one notification; most have none."""
        notification, checklist = stamped.notification, self.view.checklist
        changed = self._fold(stamped)
        told = self._restoring and isinstance(notification, FilesRestored)
        self._restoring = self._restoring and not told
        yield from self._withdraw([placed.position for placed in changed if placed.item is None])
        for placed in changed:
            if not (told and isinstance(placed.item, NoteItem)) and not self._is_known(placed.item, stamped):
                yield from self._show(placed)
        if self.view.checklist != checklist:
            yield plan_of(self.view.checklist)
        if isinstance(notification, ChildChanged):
            yield self._child(notification)
        if isinstance(notification, MessageDone | ReplyDropped | TurnEnded):
            self._last = ""
            self._texts.clear()
            self._places.clear()

    def _child(self, child: ChildChanged) -> Update:
        """Show a subagent as a call of its own, with what it does and how it ended."""
        status = "in_progress"
        if child.outcome is not None:
            status = "completed" if child.outcome is ChildOutcome.DONE else "failed"
        shown: dict[str, Any] = {
            "tool_call_id": child.session_id,
            "status": status,
            "content": (text_content(printable(child_line(child))),),
        }
        if child.session_id in self._children:
            return ToolCallMoved(**shown)
        self._children.add(child.session_id)
        title = f"{child.agent}: {' '.join(child.task.split())}"
        about = {"child": child.session_id, "agent": child.agent, "call": child.call_id}
        meta = {"treadle": about}
        return ToolCallBegan(**shown, title=printable(title[:_LONGEST_TITLE]), kind="think", meta=meta)

    def _fold(self, stamped: Stamped) -> Sequence[Placed]:
        if isinstance(one := stamped.notification, PromptDelivered) and one.prompt_id not in self.own:
            self._prompts[one.prompt_id] = one.content
        self.view, changed = fold_notification(self.view, stamped)
        return changed

    def _is_known(self, item: Item | None, stamped: Stamped) -> bool:
        """Whether the client has shown an item by itself: its user's words, and what it was asked as a message."""
        match item, stamped.notification:
            case SaidItem(prompt_id=prompt_id), PromptDelivered():
                return prompt_id in self.own
            case SaidItem(), CallChanged(call=call):
                return call.id in self.answered
            case ProseItem(), QuestionClosed(question_id=question_id):
                return question_id in self.asked
            case CallItem(), QuestionClosed():
                return True  # who answered is said when it has ended
            case _:
                return False

    def _show(self, placed: Placed) -> Iterator[Update]:
        match placed.item:
            case ProseItem() as prose:
                yield from self._prose(placed.position, prose)
            case ThoughtItem() as thought:
                yield from self._thought(placed.position, thought)
            case CallItem() as call:
                yield from self._call(placed.position, call)
            case SaidItem() as said:
                self._last, self._spoke = "", self._spoke and not said.prompt_id
                yield from _said(said, self._prompts.pop(said.prompt_id, ()))
            case TurnItem(outcome=outcome):
                yield from self._end(placed.position, outcome)
            case ProblemItem(what=what, why=why, fix=fix):
                yield self._beside(" ".join(filter(None, (what, why, fix))))
            case ModeItem() | ModelItem(why=""):
                pass  # what is chosen is shown apart
            case None:
                pass
            case item:
                if line := note_line(item):
                    yield self._beside(line)

    def _prose(self, position: int, prose: ProseItem) -> Iterator[Update]:
        if position not in self._texts:
            message = self._message if self._last in _PROSE else uuid.uuid4().hex
            # Not all clients keep messages apart that follow on each other.
            gap = "\n\n" if self._spoke and self._last != _ENDED else ""
            self._message, self._spoke = message, True
            self._texts[position] = _Shown("agent_message", message, self._ahead, gap)
        yield from self._texts[position].more(prose.written)
        # The beginning of a block may have been shown as the end of the one before.
        self._ahead = 0 if prose.growing else max(0, self._texts[position].size - len(prose.written))
        self._last = _ENDED if prose.ends else _PROSE[0]

    def _thought(self, position: int, thought: ThoughtItem) -> Iterator[Update]:
        text = self.view.reply.thinking if thought.growing else thought.text
        if position not in self._texts:
            if not text.strip():
                return
            self._last = ""
            self._texts[position] = _Shown("agent_thought", uuid.uuid4().hex)
        yield from self._texts[position].more(text)

    def _call(self, position: int, item: CallItem) -> Iterator[Update]:
        """Show a call, and of one that the client knows what is new of it."""
        changed = item.changed
        number = changed.call.id
        before = self._calls.get(number)
        fields = shape_of(item, self.view.root)
        terminal = self.terminal_of(number)
        if terminal:
            fields["content"] = (_terminal(terminal),)
        # Of a call that has ended nothing is said again, unless its terminal turns out to show nothing.
        self._calls[number] = fields if changed.result is None else {}
        if terminal and changed.result is not None:
            self._in_terminals[number] = whole_output(item)
        self._places[position] = number
        if before is None:
            self._last = ""
            yield ToolCallBegan(tool_call_id=number, **fields)
        elif new := {name: value for name, value in fields.items() if before.get(name) != value}:
            yield ToolCallMoved(tool_call_id=number, **new)

    def _withdraw(self, gone: Sequence[int]) -> Iterator[Update]:
        """Say that a reply broke off: what a client was shown it keeps."""
        shown = {(one.kind, one.message): None for one in map(self._texts.get, gone) if one is not None}
        for kind, message in shown:
            yield text_chunk(kind, BROKE_OFF, message)
        for number in (self._places[position] for position in gone if position in self._places):
            self._calls.pop(number, None)
            yield ToolCallMoved(tool_call_id=number, status="failed", content=(text_content(WITHDRAWN),))

    def _end(self, position: int, outcome: TurnOutcome) -> Iterator[Update]:
        """Say once why a turn ended that did not come to its end."""
        if position <= self._ended:  # some of its files were restored since
            return
        self._ended = position
        if outcome.by_hook or outcome.stop not in (TurnStop.END_TURN, TurnStop.CANCELLED, TurnStop.ERROR):
            why = f" ({outcome.why})" if outcome.why else ""
            gap = "\n\n" if self._spoke else ""
            yield text_chunk("agent_message", f"{gap}*{ended(outcome.stop)}{why}.*", uuid.uuid4().hex)
        self._last, self._spoke = "", False

    def _beside(self, line: str) -> Update:
        """Say something beside the answer: scripts take the messages of an agent as its answer."""
        self._last = ""
        return text_chunk("agent_thought", f"{line}\n", uuid.uuid4().hex)

    def output_update(self, call_id: str) -> Update | None:
        """Show the output of a running call; None where the client does not know the call, or has a terminal for it."""
        item = self._open_call(call_id)
        if call_id not in self._calls or item is None or not item.output:
            return None
        if terminal := self.terminal_of(call_id):
            shown = self._calls[call_id]
            if shown.get("content") == (content := (_terminal(terminal),)):
                return None
            shown["content"] = content
            return ToolCallMoved(tool_call_id=call_id, content=content)
        return ToolCallMoved(tool_call_id=call_id, content=(output_content(_printed(item)),))

    def whole_output(self, call_id: str, *, lost: bool) -> Update | None:
        """Show the output of a call as its content: the terminal that was to show it could not.

        Where one was `lost`, so much is said as long as there is no output.
        """
        item = self._open_call(call_id)
        text = self._in_terminals.pop(call_id, "") if item is None else _printed(item)
        if not (text or (lost and item is not None)):
            return None
        return ToolCallMoved(tool_call_id=call_id, content=(output_content(text) if text else text_content(LOST),))

    def _open_call(self, call_id: str) -> CallItem | None:
        return next((one for one in self.view.open_calls if one.changed.call.id == call_id), None)

    def show_call(self, call_id: str) -> None:
        """From now on the client knows this call: a question about it was shown, in words of its own."""
        self._calls[call_id] = {}


def _printed(item: CallItem) -> str:
    return (f"… {counted(item.above, 'line')} before …\n" if item.above else "") + item.output


def _terminal(terminal: str) -> ToolContent:
    return {"type": "terminal", "terminalId": terminal}


def _said(said: SaidItem, content: Sequence[UserContent]) -> Iterator[Update]:
    """Give what the user wrote, or answered, with its images."""
    message = said.prompt_id or uuid.uuid4().hex
    for block in without_own_commands(content or (Text(text=said.text),)):
        match block:
            case Text(text=text):
                yield text_chunk("user_message", text, message)
            case Image(media_type=media_type, data=data):
                image = {"type": "image", "data": data, "mimeType": media_type}
                yield {"sessionUpdate": "user_message_chunk", "content": image, "messageId": message}
            case Document(title=title, media_type=media_type):
                yield text_chunk("user_message", f"[{title or media_type}]", message)
