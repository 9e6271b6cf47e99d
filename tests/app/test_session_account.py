"""What became of a session, summed up from its log: time in which nobody worked in it is not among it."""

from treadle.app.reports.session_account import account_of
from treadle.protocol.events import (
    ENGINE,
    Event,
    EventData,
    Prompt,
    Resumed,
    SessionStarted,
    SetLimits,
    SetMode,
)
from treadle.protocol.limits import Limits
from treadle.protocol.messages import Text
from treadle.protocol.models import ModelChoice, ToolProtocol
from treadle.protocol.permissions import Mode

STARTED = SessionStarted(
    choice=ModelChoice(model="p/m", tool_protocol=ToolProtocol.NATIVE), session_id="s", workspace="/w", mode=Mode.ASK
)
PROMPT = Prompt(id="p", content=(Text(text="do"),))
SET = SetLimits(limits=Limits())


def log(*rows: tuple[int, EventData]) -> list[Event]:
    return [Event(seq=seq, at=at * 1_000, source=ENGINE, data=data) for seq, (at, data) in enumerate(rows, 1)]


def test_only_the_time_in_which_a_program_had_the_session_open_is_work() -> None:
    taken_up: list[tuple[int, EventData]] = [
        (500, SET),
        (500, SetMode(mode=Mode.AUTO)),
        (501, Resumed(user_present=False)),
    ]
    account = account_of(log((100, STARTED), (103, PROMPT), *taken_up, (505, SET), (507, Resumed(user_present=False))))
    assert account.seconds == 3 + 1 + 2
    assert (account.model, account.steps, account.tokens, account.cost) == ("p/m", 1, 0, 0.0)
    assert (account.active, account.prompted, account.outcome) == (True, True, None)


def test_a_session_without_any_event_is_one_that_was_not_begun() -> None:
    account = account_of([])
    assert (account.model, account.seconds, account.active, account.prompted) == ("", 0.0, False, False)
