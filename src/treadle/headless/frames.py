"""What happens in a session as the frames that hosts for Claude Code read."""

import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from treadle.door.hosts import claude_call
from treadle.door.past import entry_uuid
from treadle.headless.channel import Frame
from treadle.headless.partial import PartialMessage
from treadle.present.child_words import child_line
from treadle.protocol.children import ChildOutcome
from treadle.protocol.messages import Image, Message, ResultContent, Text, Thinking, ToolUse
from treadle.protocol.notifications import (
    CallChanged,
    CallStatus,
    ChildChanged,
    ChildSaid,
    ContextCompacted,
    MessageDone,
    ModeChanged,
    Notification,
    PromptDelivered,
    ReplyDropped,
    RetryScheduled,
    TextDelta,
    ThinkingDelta,
)
from treadle.protocol.permissions import Mode, Question
from treadle.protocol.tools import CallResult, Outcome, ToolCall
from treadle.protocol.usage import Usage

MODE_NAMES: Mapping[Mode, str] = {
    Mode.ASK: "default",
    Mode.EDITS: "acceptEdits",
    Mode.PLAN: "plan",
    Mode.AUTO: "auto",
    Mode.FULL: "bypassPermissions",
}
"""Our modes by the names that hosts know."""

_SAYS = {"attempt_completion": "result", "plan_mode_respond": "response"}
"""Calls that are the answer: hosts read it as text. The value is the parameter that holds it."""

_TASK_ENDS = {
    ChildOutcome.DONE: "completed",
    ChildOutcome.LIMIT: "failed",
    ChildOutcome.REFUSED: "failed",
    ChildOutcome.FAILED: "failed",
    ChildOutcome.INTERRUPTED: "stopped",
}

_DENIED = frozenset({Outcome.DENIED, Outcome.REJECTED})


class FrameMaker:
    """Makes frames of notifications, in the order that hosts need: a call comes before its result.

    Calls are known by their ids, so that a question about one can name what it would do. With `partial` a reply comes
    while it is written, too, with `replay` each message of the user when it reaches the model. With a `child` they are
    those of a subagent, by its session: its messages and calls have ids of their own.
    """

    def __init__(
        self,
        session_id: str,
        root: str,
        model: Callable[[], str],
        *,
        partial: bool = False,
        replay: bool = False,
        child: str = "",
    ) -> None:
        self.session_id = session_id
        self._root = root
        self._model = model
        self._partial = PartialMessage(model) if partial else None
        self._replay = replay
        self._child_id = child
        self._said: set[str] = set()
        self._waiting: list[CallChanged] = []
        self._step = self._parts = 0
        self.calls: dict[str, ToolCall] = {}
        self.denials: list[Frame] = []
        self._children: dict[str, FrameMaker] = {}
        self._begun: dict[str, str] = {}

    def frame(self, kind: str, **fields: Any) -> Frame:
        """Make a frame with what each of them has."""
        return {"type": kind, **fields, "uuid": str(uuid.uuid4()), "session_id": self.session_id}

    def system(self, subtype: str, **fields: Any) -> Frame:
        """Make a frame about the session."""
        return self.frame("system", subtype=subtype, **fields)

    def was_said(self, call_id: str) -> bool:
        """Whether the host has read the message that makes a call."""
        return call_id in self._said

    def id_asked_about(self, question: Question) -> str:
        """Name the call of a question that is of no call of the session: a subagent's, or the one that began it."""
        if question.child_call:
            return _child_call_id(question.child, question.child_call)
        return self._begun.get(question.child, question.id)

    def begin_turn(self) -> None:
        """Forget what was of the turn before."""
        self._said.clear()
        self._waiting.clear()
        self.calls.clear()
        self.denials = []

    def take(self, notification: Notification) -> Iterator[Frame]:  # noqa: C901 - a line each
        """Give the frames for one thing that happened; most have none."""
        match notification:
            case TextDelta(text=text):
                yield from self._live("text", text)
            case ThinkingDelta(text=text):
                yield from self._live("thinking", text)
            case ReplyDropped():
                self._waiting = [one for one in self._waiting if one.call.id in self._said]
                yield from self._events(() if self._partial is None else self._partial.drop())
            case MessageDone(message=message, usage=usage, step=step):
                self._step, self._parts = step, 0
                yield from self._message(message, usage)
            case ChildChanged() as child:
                yield from self._child(child)
            case ChildSaid() as heard:
                yield from self._said_by_child(heard)
            case CallChanged() as changed:
                self.calls[changed.call.id] = changed.call
                yield from self._changed(changed)
            case PromptDelivered(prompt_id=prompt_id, content=content) if self._replay:
                said = {"role": "user", "content": [_block(one) for one in content]}
                made = self.frame("user", message=said, parent_tool_use_id=None, isReplay=True)
                yield {**made, "uuid": prompt_id}
            case ModeChanged(mode=mode):
                yield self.system("status", status=None, permissionMode=MODE_NAMES[mode])
            case ContextCompacted(before=before, after=after):
                about = {"trigger": "auto", "pre_tokens": before, "post_tokens": after}
                yield self.system("compact_boundary", compact_metadata=about)
            case RetryScheduled(attempt=attempt, seconds=seconds, error=error, most=most):
                yield self.system(
                    "api_retry",
                    attempt=attempt,
                    max_retries=most,
                    retry_delay_ms=round(seconds * 1000),
                    error_status=error.status,
                    error=error.message,
                )
            case _:
                return

    def _child(self, child: ChildChanged) -> Iterator[Frame]:
        """Say that a subagent began, and how it ended, as hosts are told of tasks."""
        about = {"task_id": child.session_id, "tool_use_id": child.call_id}
        if child.session_id not in self._begun:
            self._begun[child.session_id] = child.call_id
            yield self.system("task_started", **about, description=child.task, task_type=child.agent)
        if child.outcome is not None:
            self._children.pop(child.session_id, None)
            yield self.system(
                "task_notification",
                **about,
                status=_TASK_ENDS[child.outcome],
                output_file="",
                summary=child_line(child),
            )

    def _said_by_child(self, child: ChildSaid) -> Iterator[Frame]:
        if child.session_id not in self._children:
            made_by = FrameMaker(self.session_id, self._root, self._model, child=child.session_id)
            self._children[child.session_id] = made_by
        below = self._children[child.session_id]
        for made in below.take(child.said):
            yield {**made, "parent_tool_use_id": child.call_id}
        self.denials += below.denials
        below.denials.clear()

    def _live(self, kind: str, text: str) -> Iterator[Frame]:
        if self._partial is not None:
            yield from self._events(self._partial.add(kind, text))

    def _events(self, events: Any) -> Iterator[Frame]:
        for event in events:
            yield self.frame("stream_event", event=event, parent_tool_use_id=None)

    def _message(self, message: Message, usage: Usage) -> Iterator[Frame]:
        blocks = list(self._blocks(message))
        content = [block for block, _ in blocks]
        calls = [block for block in message.content if isinstance(block, ToolUse)]
        self._said.update(block.id for block in calls)
        stop = "tool_use" if any(block["type"] == "tool_use" for block in content) else "end_turn"
        message_id = f"msg_{uuid.uuid4().hex}"
        if self._partial is not None:
            message_id = self._partial.id
            yield from self._events(self._partial.rest(blocks))
        if content:
            yield self._entry(self._assistant(message_id, content, stop, usage), 0)
        if self._partial is not None:
            yield from self._events(self._partial.end(stop, usage_of(usage)))
        waiting, self._waiting = self._waiting, []
        for changed in waiting:
            yield from self._changed(changed)

    def answer(self, text: str) -> Frame:
        """Give a text that no model wrote as the answer."""
        return self._assistant(f"msg_{uuid.uuid4().hex}", [{"type": "text", "text": text}], "end_turn", Usage())

    def _assistant(self, message_id: str, content: Sequence[Frame], stop: str, usage: Usage) -> Frame:
        said = {
            "id": message_id,
            "type": "message",
            "role": "assistant",
            "model": self._model(),
            "content": content,
            "stop_reason": stop,
            "stop_sequence": None,
            "usage": usage_of(usage),
        }
        return self.frame("assistant", message=said, parent_tool_use_id=None)

    def _blocks(self, message: Message) -> Iterator[tuple[Frame, bool]]:
        """Give the blocks of a message, and whether each is text that may have been streamed as it is."""
        for block in message.content:
            match block:
                case Text(text=text) if text.strip():
                    yield {"type": "text", "text": text}, True
                case Thinking(text=text, signature=signature) if signature:
                    yield {"type": "thinking", "thinking": text, "signature": signature}, True
                case ToolUse(id=call_id, name=name, arguments=arguments):
                    yield from ((block, False) for block in self._call(call_id, name, arguments))
                case _:
                    pass

    def _call(self, call_id: str, name: str, arguments: dict[str, Any]) -> Iterator[Frame]:
        shown = claude_call(name, arguments, self._root)
        answer = arguments.get(_SAYS.get(name, ""))
        if isinstance(answer, str) and answer.strip():
            yield {"type": "text", "text": answer}
        if name not in _SAYS or shown.name != name:
            yield {"type": "tool_use", "id": self._id(call_id), "name": shown.name, "input": shown.input}

    def _changed(self, changed: CallChanged) -> Iterator[Frame]:
        if changed.status is not CallStatus.FINISHED or changed.result is None:
            return
        if changed.call.id not in self._said:
            self._waiting.append(changed)
            return
        call, result = changed.call, changed.result
        shown = claude_call(call.name, call.arguments, self._root)
        if call.name in _SAYS and shown.name == call.name and not result.is_error:
            return
        if result.outcome in _DENIED:
            denial = {"tool_name": shown.name, "tool_use_id": self._id(call.id), "tool_input": shown.input}
            self.denials.append(denial)
            if result.outcome is Outcome.DENIED:
                yield self.system("permission_denied", **denial, message=text_of_result(result))
        content = [_block(block) for block in result.content]
        if all(block["type"] == "text" for block in content):
            told: Any = "\n".join(block["text"] for block in content)
        else:
            told = content
        block = {
            "type": "tool_result",
            "tool_use_id": self._id(call.id),
            "content": told,
            "is_error": result.is_error,
        }
        self._parts += 1
        made = self.frame(
            "user",
            message={"role": "user", "content": [block]},
            parent_tool_use_id=None,
            tool_use_result=text_of_result(result) if result.is_error else _facts(result),
        )
        yield self._entry(made, self._parts)

    def _entry(self, frame: Frame, part: int) -> Frame:
        """Give a message the uuid by which a host can go back to it."""
        return {**frame, "uuid": entry_uuid(self._child_id or self.session_id, self._step, part)}

    def _id(self, call_id: str) -> str:
        return _child_call_id(self._child_id, call_id) if self._child_id else call_id


def _child_call_id(session_id: str, call_id: str) -> str:
    """Name a call of a subagent: each session numbers its own."""
    return f"{session_id}:{call_id}"


def _facts(result: CallResult) -> Frame:
    changes = [{"path": change.path, "added": change.added, "removed": change.removed} for change in result.changes]
    return {"outcome": result.outcome.value, "changes": changes}


def _block(block: ResultContent) -> Frame:
    match block:
        case Text(text=text):
            return {"type": "text", "text": text}
        case Image(media_type=media_type, data=data):
            return {"type": "image", "source": {"type": "base64", "media_type": media_type, "data": data}}
        case _:
            return {"type": "text", "text": f"[{block.media_type} {block.title}]".replace(" ]", "]")}


def text_of_result(result: CallResult) -> str:
    """Give the text that the model reads of a result."""
    return "\n".join(block.text for block in result.content if isinstance(block, Text))


def usage_of(usage: Usage) -> Frame:
    """Give tokens under the names of Anthropic's API."""
    return {
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "cache_read_input_tokens": usage.cache_read_tokens,
        "cache_creation_input_tokens": usage.cache_write_tokens,
    }
