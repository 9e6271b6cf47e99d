"""What the policy decided in past sessions: the newest first, with what came of it."""

from collections.abc import Iterator

from msgspec import Struct

from treadle.app.compose import list_sessions, session_log
from treadle.app.reports.policy_past import judged_calls, what_of
from treadle.protocol.base import Record
from treadle.protocol.errors import TreadleError
from treadle.protocol.events import CallFinished, Event
from treadle.protocol.permissions import Mode, Reason, Verdict
from treadle.protocol.reasons import words_of_decision
from treadle.protocol.tools import Outcome
from treadle.store.sqlite import SessionRow

_MOST_SESSIONS = 60
"""Logs that are read for one list."""


class PastDecision(Record, frozen=True, kw_only=True, omit_defaults=False):
    """One call as it was judged, at `at` (ms since 1970); `outcome` is how it ended, None if it did not."""

    session: str
    seq: int
    at: int
    tool: str
    what: str
    mode: Mode
    verdict: Verdict
    outcome: Outcome | None
    why: str
    reasons: tuple[Reason, ...]


class DecisionFilter(Struct, frozen=True, kw_only=True):
    """Which decisions are wanted: what is empty or None does not matter. `rule` is a part of a rule's id or place."""

    verdict: Verdict | None = None
    rule: str = ""
    text: str = ""
    session: str = ""


class PastDecisions(Record, frozen=True, kw_only=True, omit_defaults=False):
    """Decisions, the newest first. `older` is the session to go on from, empty at the end; `sessions` were read."""

    rows: tuple[PastDecision, ...]
    sessions: int
    older: str
    unread: tuple[str, ...]


def past_decisions(wanted: DecisionFilter, *, most: int, start: str = "") -> PastDecisions:
    """List decisions of past sessions, about `most` of them, beginning with the session `start`."""
    rows = [row for row in list_sessions(None) if row.id.startswith(wanted.session)]
    begin = next((at for at, row in enumerate(rows) if row.id == start), 0)
    found: list[PastDecision] = []
    unread: list[str] = []
    read = 0
    for row in rows[begin:]:
        if len(found) >= most or read == _MOST_SESSIONS:
            return PastDecisions(rows=tuple(found), sessions=read, older=row.id, unread=tuple(unread))
        read += 1
        try:
            with session_log(row.id) as (known, store):
                decided = list(_decided(known, list(store.read(known.id))))
        except TreadleError:
            unread.append(row.id)
            continue
        found += [one for one in reversed(decided) if _fits(one, wanted)]
    return PastDecisions(rows=tuple(found), sessions=read, older="", unread=tuple(unread))


def _decided(row: SessionRow, events: list[Event]) -> Iterator[PastDecision]:
    ends = {event.data.call_id: event.data.result.outcome for event in events if isinstance(event.data, CallFinished)}
    for past in judged_calls(row, events):
        reasons = [*past.decision.reasons, *(reason for part in past.decision.parts for reason in part.reasons)]
        yield PastDecision(
            session=past.session,
            seq=past.seq,
            at=past.at,
            tool=past.call.name,
            what=what_of(past),
            mode=past.mode,
            verdict=past.decision.verdict,
            outcome=ends.get(past.call.id),
            why=words_of_decision(past.decision).headline,
            reasons=tuple(dict.fromkeys(reasons)),
        )


def _fits(one: PastDecision, wanted: DecisionFilter) -> bool:
    if wanted.verdict not in (None, one.verdict):
        return False
    if wanted.text.lower() not in f"{one.tool} {one.what}".lower():
        return False
    return not wanted.rule or any(wanted.rule in f"{reason.rule} {reason.source}" for reason in one.reasons)
