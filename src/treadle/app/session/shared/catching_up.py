"""What brings a surface that missed too much to where its session is now."""

from collections.abc import Iterator, Sequence

from treadle.protocol.attach import SessionStatus, Snapshot, Stamped
from treadle.protocol.notifications import (
    ModeChanged,
    Notice,
    Notification,
    OwnWorkChanged,
    PhaseChanged,
    QuestionAsked,
    QuestionClosed,
    QueueChanged,
    ReplyDropped,
)


def caught_up(
    session_id: str, before: SessionStatus, now: SessionStatus, snapshot: Snapshot, *, past: Sequence[Stamped]
) -> Iterator[Notification]:
    """Bring a surface from what it knew (`before`) to what is now; `past` is all that the log tells."""
    yield ReplyDropped()
    yield Notice(text=f"This terminal fell behind. `treadle show {session_id}` shows what it missed.")
    still = {question.id for question in now.questions}
    yield from (QuestionClosed(question_id=one.id) for one in before.questions if one.id not in still)
    yield from snapshot.calls
    yield from snapshot.live
    own = [one.notification for one in past if isinstance(one.notification, OwnWorkChanged)]
    yield from (one for at, one in enumerate(own, 1) if one.restored or at == len(own))
    yield ModeChanged(mode=now.mode)
    yield QueueChanged(prompts=now.queue, held=now.held)
    yield from (QuestionAsked(question=question) for question in now.questions)
    yield PhaseChanged(phase=now.phase)
