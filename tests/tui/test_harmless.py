"""Whatever a model, a tool or a file name brings: nothing of it steers the terminal, turns around, or is too wide."""

import re
from collections.abc import Iterator
from itertools import cycle

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from prompt_toolkit.utils import get_cwidth
from rich.cells import cell_len

from treadle.present.view import SessionView
from treadle.protocol.attach import Stamped
from treadle.protocol.messages import Message, Role, Text
from treadle.protocol.models import ErrorKind, ModelError
from treadle.protocol.notifications import (
    CallChanged,
    CallDelta,
    CallOutput,
    CallStatus,
    ChecklistChanged,
    MessageDone,
    ModelChanged,
    Notice,
    Notification,
    PromptDelivered,
    QuestionAsked,
    QuestionClosed,
    QueueChanged,
    QueuedPrompt,
    ResultPresented,
    RetryScheduled,
    TextDelta,
    ThinkingDelta,
    TurnEnded,
    TurnOutcome,
    TurnStarted,
    TurnStop,
)
from treadle.protocol.permissions import OptionKind, Question, QuestionKind
from treadle.protocol.tools import CallResult, FileChange, Outcome, Preview, ToolCall, ToolKind, result_text
from treadle.protocol.usage import Usage
from treadle.tui.paint.lines import Line, ansi
from treadle.tui.paint.painter import Painter
from treadle.tui.paint.printed_items import EnteredCommand, Greeting, PrintedItem
from treadle.tui.paint.scrollback import Scrollback
from treadle.tui.paint.theme import Palette, Theme
from treadle.tui.question.asked import ask
from treadle.tui.question.dialog import Dialog
from treadle.tui.question.question_lines import question_lines, waiting_line
from treadle.tui.session.bottom import BottomState, above_rule, rule, status

TRICKY = st.text(
    st.sampled_from("ab 日\n\t\r`*#|-[]()\x1b\x07\x9b\u202e\u2066\u200fאب🎉👩\u200d🚀\u0301\u2028"), max_size=80
)
OUR_COLOURS = re.compile(r"\x1b\[[0-9;]*m")
FORBIDDEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2028\u2029\u2066-\u2069\u061c]")


def diff(text: str) -> str:
    return f"--- a/{text}\n+++ b/{text}\n@@ -1 +1 @@ def {text}\n-{text}\n+{text}b\n"


def told(text: str) -> Iterator[Notification]:
    """A turn in which everything that is shown holds a text."""
    said = (Text(text=text),)
    yield TurnStarted(turn=1)
    yield PromptDelivered(prompt_id="p", content=said)
    yield QueueChanged(prompts=tuple(QueuedPrompt(id=str(number), content=said) for number in range(5)))
    yield ChecklistChanged(text=f"- [ ] {text}\n- [x] {text}\n")
    yield ThinkingDelta(text=text)
    yield TextDelta(text=f"{text}\n\n{text}")
    yield CallDelta(index=0, name=text, parameter="diff", text=text)
    yield MessageDone(step=1, message=Message(role=Role.ASSISTANT, content=said), usage=Usage(), cost=0.0)
    for kind, outcome in zip(cycle(ToolKind), (*Outcome, *Outcome), strict=False):
        call = ToolCall(id=f"{kind}{outcome}", name=text or "x", arguments={"a": text})
        is_diff = kind is ToolKind.EDIT
        preview = Preview(title=f"Run {text}", text=diff(text) if is_diff else text, is_diff=is_diff)
        yield CallChanged(call=call, kind=kind, status=CallStatus.RUNNING, preview=preview)
        yield CallOutput(call_id=call.id, text=text)
        result: CallResult = result_text(outcome, text)
        yield CallChanged(call=call, kind=kind, status=CallStatus.FINISHED, preview=preview, result=result)
    yield CallChanged(
        call=ToolCall(id="open", name="x", arguments={}), kind=ToolKind.EXECUTE, status=CallStatus.RUNNING
    )
    yield CallOutput(call_id="open", text=text)
    question = Question(id="q", kind=QuestionKind.FOLLOWUP, text=text, options=(text, "b"))
    yield QuestionAsked(question=question)
    yield QuestionClosed(question_id="q", option=OptionKind.ANSWER)
    yield RetryScheduled(attempt=1, seconds=3, error=ModelError(kind=ErrorKind.OVERLOADED, message=text))
    yield ModelChanged(model=f"p/{text}", why=text)
    yield Notice(text=text)
    yield ResultPresented(text=text)
    yield QuestionAsked(question=question)


def ended(text: str) -> TurnEnded:
    changes = (FileChange(path=f"/ws/{text}", before="", after="x", added=1, removed=1),)
    error = ModelError(kind=ErrorKind.SERVER, message=text, fix=text)
    return TurnEnded(outcome=TurnOutcome(stop=TurnStop.ERROR, error=error, changes=changes, why=text))


def shown_at(view: SessionView, text: str, width: int) -> Iterator[list[Line]]:
    """The rows around the input and the question, which prompt_toolkit draws."""
    signs = Theme().signs
    around = BottomState(now=5.0, branch=text, held=(text,), unfolded=True, hint="? for keys")
    yield [*above_rule(view, around, width, signs), rule(view, width, signs), status(view, around, width, signs)]
    for question in view.questions:
        dialog = Dialog(asking=ask(question), focused=True)
        yield [waiting_line(dialog, width, signs)]
        yield question_lines(dialog, ("/ws",), width=width, rows=20, signs=signs).above


@pytest.mark.parametrize("palette", [Palette.DARK, Palette.DUMB], ids=lambda one: one.value)
@settings(max_examples=25)
@given(text=TRICKY, width=st.integers(20, 130))
def test_no_text_steers_the_terminal_or_is_wider_than_it(palette: Palette, text: str, width: int) -> None:
    theme, items = Theme(palette=palette), list[PrintedItem]()
    scrollback = Scrollback(SessionView(model=f"p/{text}", root="/ws"), "tui:main")
    items += [Greeting("1", text, "ask", text, text), EnteredCommand(text)]
    painter = Painter(width, theme)
    pieces: list[str] = []
    for one in (*told(text), ended(text)):
        items += scrollback.take(Stamped(notification=one, at=1_000))
        pieces.append(painter.living(scrollback.unprinted, 20, 3.0))
        for rows in shown_at(scrollback.view, text, width):
            drawn = "\n".join(ansi(rows, theme))
            assert max(get_cwidth(row) for row in OUR_COLOURS.sub("", drawn).split("\n")) <= width, rows
            pieces.append(drawn)
    pieces.append(painter.items([*items, *scrollback.rest()]))
    for piece in pieces:
        bare = OUR_COLOURS.sub("", piece)
        assert FORBIDDEN.search(bare) is None, repr(FORBIDDEN.search(bare))
        assert max(map(cell_len, bare.split("\n"))) <= width
