"""A copy of a session that begins in the middle of a turn: the turn has ended there, for all who read its log."""

from pathlib import Path

from tests.app.subagents.families import call, family
from treadle.app.checkpoints.points import Points
from treadle.app.compose import session_log
from treadle.app.history.forking import fork_at_checkpoint
from treadle.app.history.replaying import replay_rows, session_tape
from treadle.present.record_words import recorded
from treadle.present.view import SessionView
from treadle.protocol.permissions import Mode
from treadle.providers.scripted.script import Expectation, SayText, Turn

ANSWERS = (
    Turn(when=Expectation(assistant_messages=0), items=(call("write_to_file", path="a.txt", content="one\n"),)),
    Turn(items=(SayText(text="Done."),)),
)


async def test_a_turn_in_whose_middle_a_copy_begins_has_ended_there(folder: Path) -> None:
    async with family(folder, *ANSWERS, mode=Mode.EDITS) as own:
        await own.turn("first")
    with session_log(own.live.id) as (row, store):
        copy, _ = fork_at_checkpoint(store, row, 1)
        began = store.find(copy).events
    async with family(folder, *ANSWERS, mode=Mode.EDITS, resume=copy) as again:
        view, _ = recorded(again.live.past, SessionView())
        await again.turn("second")
    assert (view.active, view.stop, view.calls) == (False, "cancelled", ())
    with session_log(copy) as (_, store):
        assert [(one.asked, one.after) for one in Points(store, copy).turns()] == [("first", 2), ("second", began)]
    session_id, rows, chains = session_tape(copy)
    assert replay_rows(session_id, rows, chains).same
