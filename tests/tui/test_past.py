from treadle.present.spending import Spending
from treadle.protocol.attach import SessionStatus
from treadle.protocol.messages import Message, Role, Text
from treadle.protocol.models import ToolProtocol
from treadle.protocol.notifications import (
    MessageDone,
    ModeChanged,
    ModelChanged,
    Notification,
    Phase,
    PromptDelivered,
    QueuedPrompt,
    TurnEnded,
    TurnOutcome,
    TurnStop,
)
from treadle.protocol.permissions import Mode
from treadle.protocol.usage import Usage
from treadle.tui.items import NoticeItem, Prose, Said, TurnDone
from treadle.tui.past import first_view
from treadle.tui.view import View

WAITING = (QueuedPrompt(id="p", content=(Text(text="later"),)),)
STATUS = SessionStatus(
    phase=Phase.ASSEMBLING_CONTEXT,
    mode=Mode.EDITS,
    model="p/m",
    tool_protocol=ToolProtocol.XML,
    turn_active=True,
    questions=(),
    queue=WAITING,
    tokens=50,
    window=100,
)
OUTCOME = TurnOutcome(stop=TurnStop.END_TURN, cost=0.5)


def turn(number: int) -> tuple[PromptDelivered, MessageDone, TurnEnded]:
    message = Message(role=Role.ASSISTANT, content=(Text(text=f"answer {number}"),))
    return (
        PromptDelivered(prompt_id=str(number), content=(Text(text=f"prompt {number}"),)),
        MessageDone(step=number, message=message, usage=Usage(), cost=0.5),
        TurnEnded(outcome=OUTCOME),
    )


def test_the_view_takes_its_money_from_the_past_and_the_rest_from_the_status() -> None:
    view, items = first_view(View(roots=("/ws",)), [*turn(1), ModeChanged(mode=Mode.FULL)], (), STATUS)
    assert view == View(
        roots=("/ws",),
        phase=Phase.ASSEMBLING_CONTEXT,
        mode=Mode.EDITS,
        model="p/m",
        tokens=50,
        window=100,
        busy=True,
        step=1,
        queue=WAITING,
        spending=Spending(ended=0.5),
    )
    assert items == (Said("prompt 1"), Prose("answer 1"), TurnDone(OUTCOME))


def test_what_was_told_while_the_session_was_taken_up_is_shown_whole() -> None:
    opening: list[Notification] = [ModelChanged(model="p/m", why="the other is gone"), *turn(2)]
    _, items = first_view(
        View(roots=("/ws",)), [notification for number in range(10) for notification in turn(number)], opening, STATUS
    )
    assert items[-4:] == (
        NoticeItem("Model: p/m (the other is gone)"),
        Said("prompt 2"),
        Prose("answer 2"),
        TurnDone(OUTCOME),
    )
    assert len(items) == 17


def test_only_the_end_of_a_long_story_is_shown() -> None:
    _, items = first_view(
        View(roots=("/ws",)), [notification for number in range(10) for notification in turn(number)], (), STATUS
    )
    assert items[0] == NoticeItem("… 18 earlier items of this session …")
    assert items[1] == Said("prompt 6")
    assert len(items) == 13
