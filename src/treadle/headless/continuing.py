"""A session that is to continue without a task: what the model reads where its last turn was stopped."""

from treadle.door.open_session import LiveSession
from treadle.door.reports import session_account
from treadle.protocol.messages import Text, UserContent
from treadle.protocol.notifications import TurnStop

CONTINUE = "Continue with the task."
NOTHING_LEFT = "This session has nothing left to do. Give it a task with -p."


def words_to_continue(live: LiveSession) -> tuple[UserContent, ...]:
    """Give the message that continues a session; nothing where its turn continues by itself, or ended with an answer.

    To be asked before the session is entered, or while nothing is going on in it. Raises `StoreError`.
    """
    account = session_account(live.id) if live.resumed else None
    if account is None or account.active or account.outcome is None:
        return ()
    return () if account.outcome.stop is TurnStop.END_TURN else (Text(text=CONTINUE),)
