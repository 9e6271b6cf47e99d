"""Random sessions as surfaces are told of them: as they happen, with every reply in pieces, and as the log has them."""

from hypothesis import strategies as st

from treadle.present.prose import LONGEST_BLOCK
from treadle.protocol.messages import ContentBlock, Message, Role, Text, Thinking, ToolUse
from treadle.protocol.models import ErrorKind, ModelError
from treadle.protocol.notifications import (
    CallChanged,
    CallDelta,
    CallOutput,
    CallStatus,
    MessageDone,
    ModelChanged,
    Notice,
    Notification,
    Phase,
    PhaseChanged,
    PromptDelivered,
    QuestionAsked,
    QuestionClosed,
    ReplyDropped,
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
from treadle.protocol.tools import CallResult, Flow, Outcome, ToolCall, ToolKind
from treadle.protocol.usage import Usage

WORDS = st.one_of(
    st.text(alphabet="ab #`-*\n\t", max_size=60),
    st.sampled_from(
        (
            "One.\n\nTwo.\n\n```py\nprint(1)\n\nprint(2)\n```\n\nThree.\n",
            "word " * (LONGEST_BLOCK // 4),
            "a line\n" * (LONGEST_BLOCK // 5),
            "~~~\n" + "in a fence\n" * (LONGEST_BLOCK // 8) + "~~~\nend\n",
        )
    ),
)


class Told:
    """The same session twice."""

    def __init__(self) -> None:
        self.live: list[Notification] = []
        self.logged: list[Notification] = []

    def __repr__(self) -> str:
        return "\n".join(str(one)[:160] for one in self.live[:100])

    def both(self, *notifications: Notification) -> None:
        """What is told as it happens and is in the log."""
        self.live += notifications
        self.logged += notifications


@st.composite
def sessions(draw: st.DrawFn) -> Told:
    """Some turns."""
    told = Told()
    for turn in range(1, draw(st.integers(1, 3)) + 1):
        told.both(
            TurnStarted(turn=turn),
            PromptDelivered(prompt_id=f"p{turn}", content=(Text(text=draw(WORDS.filter(str.strip))),)),
        )
        for step in range(1, draw(st.integers(1, 3)) + 1):
            _step(draw, told, f"{turn}-{step}", step)
        text = draw(st.sampled_from(("", "All done.")))
        if text and draw(st.booleans()):
            told.both(ResultPresented(text=text))
        told.both(TurnEnded(outcome=TurnOutcome(stop=TurnStop.END_TURN, text=text, completed=bool(text))))
    return told


def _step(draw: st.DrawFn, told: Told, name: str, step: int) -> None:
    if draw(st.integers(0, 4)) == 0:
        _reply(draw, told, f"{name}-lost", drops=True)
        error = ModelError(kind=ErrorKind.OVERLOADED, message="busy")
        told.both(RetryScheduled(attempt=2, seconds=1.0, error=error))
    _aside(draw, told)
    calls, message = _reply(draw, told, name)
    told.both(MessageDone(step=step, message=message, usage=Usage(), cost=0.01))
    for call in calls:
        _run(draw, told, call)
        _aside(draw, told)


def _aside(draw: st.DrawFn, told: Told) -> None:
    match draw(st.integers(0, 6)):
        case 0:
            told.live.append(Notice(text="Something happened."))
        case 1:
            told.live.append(PhaseChanged(phase=draw(st.sampled_from((Phase.JUDGING, Phase.EXECUTING_TOOL)))))
        case 2:
            told.both(ModelChanged(model="p/other"))
        case _:
            pass


def _reply(draw: st.DrawFn, told: Told, name: str, *, drops: bool = False) -> tuple[list[CallChanged], Message]:
    """Write a reply; in the log its calls come before it, and of one that is dropped there is nothing else."""
    blocks: list[ContentBlock] = []
    calls: list[CallChanged] = []
    for number, kind in enumerate(draw(st.lists(st.sampled_from(("text", "thinking", "call")), max_size=5))):
        same = bool(blocks) and (
            (kind == "text" and isinstance(blocks[-1], Text))
            or (kind == "thinking" and isinstance(blocks[-1], Thinking))
        )
        if same:
            continue
        if kind == "call":
            call = ToolCall(id=f"c{name}-{number}", name="execute_command", arguments={"command": "make"})
            changed = CallChanged(call=call, kind=ToolKind.EXECUTE, status=CallStatus.PROPOSED)
            if draw(st.booleans()):
                told.live += [
                    CallDelta(index=number, name=call.name),
                    CallDelta(index=number, name=call.name, parameter="command", text="make"),
                ]
            told.both(changed)
            calls.append(changed)
            blocks.append(ToolUse(id=call.id, name=call.name, arguments=call.arguments))
            continue
        text = draw(WORDS.filter(bool))
        said = TextDelta if kind == "text" else ThinkingDelta
        told.live += [said(text=piece) for piece in _pieces(draw, text)]
        blocks.append(Text(text=text) if kind == "text" else Thinking(text=text))
    if drops:
        told.both(ReplyDropped())
    return calls, Message(role=Role.ASSISTANT, content=tuple(blocks))


def _pieces(draw: st.DrawFn, text: str) -> list[str]:
    cuts = sorted(draw(st.sets(st.integers(0, len(text)), max_size=6)))
    return [text[begin:end] for begin, end in zip([0, *cuts], [*cuts, len(text)], strict=True) if begin < end]


def _run(draw: st.DrawFn, told: Told, call: CallChanged) -> None:
    moved = {status: _with(call, status) for status in CallStatus}
    told.live.append(moved[CallStatus.JUDGING])
    if draw(st.booleans()):
        question = Question(id=f"q-{call.call.id}", kind=QuestionKind.PERMISSION, text="Run it?")
        option = draw(st.sampled_from((OptionKind.ALLOW_ONCE, OptionKind.REJECT_ONCE, None)))
        told.both(
            moved[CallStatus.ASKING],
            QuestionAsked(question=question),
            QuestionClosed(question_id=question.id, option=option, by="web:browser 2"),
        )
    if draw(st.booleans()):
        told.live.append(moved[CallStatus.STARTING])
        told.both(moved[CallStatus.RUNNING])
        told.live += [CallOutput(call_id=call.call.id, text=draw(WORDS)) for _ in range(draw(st.integers(0, 2)))]
    outcome = draw(st.sampled_from((Outcome.OK, Outcome.FAILED, Outcome.INTERRUPTED)))
    told.both(_with(call, CallStatus.FINISHED, CallResult(outcome=outcome, content=(Text(text="out"),))))


def _with(call: CallChanged, status: CallStatus, result: CallResult | None = None) -> CallChanged:
    return CallChanged(call=call.call, kind=call.kind, flow=Flow.RUN, status=status, result=result)
