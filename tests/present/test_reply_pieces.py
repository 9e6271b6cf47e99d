"""A reply in pieces: the same items come of it, whatever it says, however it is cut, and when nobody hears a piece."""

from collections.abc import Callable, Iterator
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.present.test_told_once import folded
from treadle.present.items import Item, Placed, ProseItem, ThoughtItem
from treadle.present.prose import LONGEST_BLOCK
from treadle.protocol.attach import Stamped
from treadle.protocol.messages import ContentBlock, Message, Role, Text, Thinking, ToolUse
from treadle.protocol.notifications import (
    CallChanged,
    CallDelta,
    CallStatus,
    MessageDone,
    Notification,
    TextDelta,
    ThinkingDelta,
)
from treadle.protocol.tools import ToolCall, ToolKind
from treadle.protocol.usage import Usage

WORDS = st.one_of(
    st.text(alphabet="ab #`-*\n\t", min_size=1, max_size=60),
    st.sampled_from(
        (
            "One.\n\nTwo.\n\n```py\nprint(1)\n\nprint(2)\n```\n\nThree.\n",
            "word " * (LONGEST_BLOCK // 4),
            "a line\n" * (LONGEST_BLOCK // 5),
            "~~~\n" + "in a fence\n" * (LONGEST_BLOCK // 8) + "~~~\nend\n",
        )
    ),
)


def _called(number: int) -> ToolCall:
    return ToolCall(id=f"c{number}", name="execute_command", arguments={"command": "make"})


@st.composite
def replies(draw: st.DrawFn) -> Message:
    """A reply of words, thoughts and calls; two texts or two thoughts never follow each other."""
    blocks: list[ContentBlock] = []
    for number, kind in enumerate(draw(st.lists(st.sampled_from((Text, Thinking, ToolUse)), max_size=5))):
        if kind is ToolUse:
            blocks.append(ToolUse(id=f"c{number}", name="execute_command", arguments={"command": "make"}))
        elif not blocks or not isinstance(blocks[-1], kind):
            blocks.append(Text(text=draw(WORDS)) if kind is Text else Thinking(text=draw(WORDS)))
    return Message(role=Role.ASSISTANT, content=tuple(blocks))


def heard(message: Message, draw: Callable[..., Any]) -> Iterator[Notification]:
    """What surfaces hear of it as it comes."""
    for block in message.content:
        match block:
            case Text(text=text):
                yield from (TextDelta(text=piece) for piece in _pieces(draw, text))
            case Thinking(text=text):
                yield from (ThinkingDelta(text=piece) for piece in _pieces(draw, text))
            case ToolUse(name=name):
                if draw(st.booleans()):
                    yield CallDelta(index=0, name=name)
                    yield CallDelta(index=0, name=name, parameter="command", text="make")
                yield _proposed(block)
            case _:
                raise TypeError(block)
    yield MessageDone(step=1, message=message, usage=Usage())


def logged(message: Message) -> Iterator[Notification]:
    """What a log tells of it: its calls first."""
    yield from (_proposed(block) for block in message.content if isinstance(block, ToolUse))
    yield MessageDone(step=1, message=message, usage=Usage())


def _proposed(use: ToolUse) -> CallChanged:
    return CallChanged(call=_called(int(use.id[1:])), kind=ToolKind.EXECUTE, status=CallStatus.PROPOSED)


def _pieces(draw: Callable[..., Any], text: str) -> list[str]:
    cuts = sorted(draw(st.sets(st.integers(0, len(text)), max_size=6)))
    return [text[begin:end] for begin, end in zip([0, *cuts], [*cuts, len(text)], strict=True) if begin < end]


def _items(placed: list[Placed]) -> list[Item | None]:
    return [one.item for one in placed]


@settings(max_examples=60)
@given(replies(), st.data())
def test_the_same_items_come_of_a_reply_in_whatever_pieces_it_came(message: Message, data: st.DataObject) -> None:
    _, live = folded(Stamped(notification=one) for one in heard(message, data.draw))
    _, again = folded(Stamped(notification=one) for one in logged(message))
    assert _items(live) == _items(again)
    assert not [one for one in live if isinstance(one.item, ProseItem | ThoughtItem) and one.item.growing]
