"""What left the conversation is marked where a session is read afterwards."""

from treadle.app.reports.session_text import record_lines
from treadle.present.record_words import CAME_BACK, LEFT_CONVERSATION, recorded
from treadle.present.view import SessionView
from treadle.protocol.attach import Stamped
from treadle.protocol.checkpoints import Restored
from treadle.protocol.messages import Message, Role, Text
from treadle.protocol.notifications import (
    ConversationRewound,
    FilesRestored,
    MessageDone,
    Notification,
    PromptDelivered,
    TurnEnded,
    TurnOutcome,
    TurnStarted,
    TurnStop,
)
from treadle.protocol.usage import Usage


def turn(number: int) -> list[Notification]:
    said = Message(role=Role.ASSISTANT, content=(Text(text=f"answer {number}"),))
    return [
        TurnStarted(turn=number),
        PromptDelivered(prompt_id=str(number), content=(Text(text=f"task {number}"),)),
        MessageDone(step=number, message=said, usage=Usage(), cost=0.0),
        TurnEnded(outcome=TurnOutcome(stop=TurnStop.END_TURN, steps=1, cost=0.0)),
    ]


BACK: list[Notification] = [
    ConversationRewound(to=4),
    FilesRestored(restored=Restored(checkpoint=0), conversation=True),
]


def text_from(number: int) -> str:
    told = [*turn(1), *turn(2), *BACK, *turn(3)]
    stamped = [Stamped(notification=one, seq=seq, at=seq * 1000) for seq, one in enumerate(told, start=1)]
    view, items = recorded(stamped, SessionView(), number)
    return "\n".join(record_lines(view, items))


def shown(number: int, seconds: str = "3 s") -> str:
    return f"\n## User\n\ntask {number}\n\n## Treadle\n\nanswer {number}\n\n**Done: 1 step in {seconds}, $0.00**"


LEFT = f"\n*{LEFT_CONVERSATION}*\n{shown(2)}\n\n*{CAME_BACK}*\n\n- The conversation is back at an earlier message.\n"


def test_turns_that_left_the_conversation_stand_between_two_lines() -> None:
    assert text_from(1) == f"{shown(1)}\n{LEFT}{shown(3)}"


def test_a_text_from_a_turn_on_has_that_turn_and_what_came_after_it() -> None:
    assert text_from(2) == f"{LEFT}{shown(3)}"
    assert text_from(3) == shown(3)
    assert text_from(4) == ""
