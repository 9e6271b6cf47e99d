"""The slash commands that go back: in the files, in the conversation, and into a copy. Each to be done in a thread."""

from treadle.app.checkpoints.points import PastTurn, Points
from treadle.app.compose import session_log
from treadle.app.session.own_commands.slash_commands import CommandAnswer, wrong
from treadle.app.session.shared.access import SessionAccess
from treadle.present.escape import exact
from treadle.present.words import clip_text
from treadle.protocol.checkpoints import Restore

_SHOWN = 100


def undo(session: SessionAccess, argument: str) -> CommandAnswer:  # noqa: ARG001 - takes no argument
    """Take the changes of the last turn back that are still there."""
    if session.status.turn_active:
        return wrong("The model is working. Interrupt it first, then /undo.")
    with session_log(session.id) as (row, store):
        n = Points(store, row.id).undo()
    if not n:
        return wrong("There is nothing to undo: this session has changed no file, or everything is undone.")
    return CommandAnswer(ops=(Restore(checkpoint=n),))


def past_turns(session_id: str) -> tuple[PastTurn, ...]:
    """List the turns that the conversation of a session has now; raises `SessionError`, `StoreError`."""
    with session_log(session_id) as (row, store):
        return Points(store, row.id).turns()


def rewind(session: SessionAccess, argument: str) -> CommandAnswer:
    """Go back to before a message; without a number list the messages."""
    if session.status.turn_active:
        return wrong("The model is working. Interrupt it first, then /rewind.")
    with session_log(session.id) as (row, store):
        points = Points(store, row.id)
        turns = points.turns()
        if not turns:
            return wrong("There is no message to go back to.")
        if not argument:
            rows = [f"{turn.number}: {clip_text(exact(turn.asked), _SHOWN)}" for turn in turns]
            return CommandAnswer(text="\n".join([*rows, "/rewind N goes back to before message N, with the files."]))
        turn = next((one for one in turns if str(one.number) == argument), None)
        if turn is None:
            return wrong(f"There is no message {argument}. /rewind lists them.")
        return CommandAnswer(ops=(points.before_turn(turn),), draft=turn.asked)


def fork(session: SessionAccess, argument: str) -> CommandAnswer:
    """Copy the session; this one goes on."""
    if argument and not argument.isdecimal():
        return wrong("/fork needs the number of a turn, or nothing: /fork [N] (/rewind lists the turns).")
    from treadle.app.history.forking import copy_whole

    new = copy_whole(session.id, int(argument) if argument else None)
    return CommandAnswer(text=f"The copy is session {new}. To continue in it: treadle --resume {new}")
