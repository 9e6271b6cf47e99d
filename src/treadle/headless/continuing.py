"""A session that is to continue without a task: what the model reads where its last turn was stopped."""

from collections.abc import Callable

from treadle.door.open_session import Feed, LiveSession
from treadle.door.reports import session_account
from treadle.protocol.messages import Text, UserContent
from treadle.protocol.notifications import Notification, TurnOutcome, TurnStop

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


def stopped_on_opening(live: LiveSession) -> TurnOutcome | None:
    """Give how a turn ended that was to continue by itself and could not, such as for want of money; None for none."""
    account = session_account(live.id) if live.resumed else None
    outcome = None if account is None or account.active else account.outcome
    return None if outcome is None or outcome.stop is TurnStop.END_TURN else outcome


async def until_quiet(live: LiveSession, feed: Feed, show: Callable[[Notification], None]) -> None:
    """Wait until what goes on besides a turn is done, such as a summary that frees space in the model's window."""
    while not live.quiet:
        notification = await anext(feed, None)
        if notification is None:
            await live.failure()
            return
        show(notification)
