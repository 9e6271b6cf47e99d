"""The audit of a session: who asked for what, how it was judged and answered, when it ran and how it ended."""

from collections.abc import Iterable, Iterator
from enum import StrEnum
from typing import Any

import msgspec

from treadle.app.config.places import database
from treadle.protocol.base import Record
from treadle.protocol.events import Answer, CallFinished, CallJudged, CallProposed, CallStarted, Event
from treadle.protocol.permissions import OptionKind, Verdict
from treadle.protocol.reasons import words_of_decision
from treadle.protocol.tools import Outcome
from treadle.store.keeping import count_set_aside
from treadle.store.sqlite import Store


class AuditStep(StrEnum):
    """What a record tells of."""

    CALL = "call"
    DECISION = "decision"
    ANSWER = "answer"
    START = "start"
    END = "end"


class AuditRecord(Record, frozen=True, kw_only=True):
    """One step of a call. `at` is milliseconds since 1970, UTC; `chain` is the hash of the log up to here.

    `why` is the reason of a decision in words, `digest` names what was judged, `bytes` is the size of the result that
    the model reads.
    """

    session: str
    seq: int
    at: int
    source: str
    step: AuditStep
    call_id: str
    tool: str = ""
    arguments: dict[str, Any] | None = None
    verdict: Verdict | None = None
    why: str = ""
    rules: tuple[str, ...] = ()
    digest: str = ""
    answer: OptionKind | None = None
    outcome: Outcome | None = None
    bytes: int | None = None
    chain: str


class Verified(Record, frozen=True, kw_only=True, omit_defaults=False):
    """Whether the log of a session is as it was written; `broken_at` is its first event that is not.

    `missing` is the newest event that was noted outside of the database and is not in the log; `anchored` says whether
    anything was noted. `set_aside` counts events that the session went on without because they were damaged.
    """

    session: str
    events: int
    broken_at: int | None
    chain: str
    missing: int | None = None
    anchored: bool = False
    set_aside: int = 0

    @property
    def intact(self) -> bool:
        """Whether nothing was changed, and nothing is missing."""
        return self.broken_at is None and self.missing is None


def records(session_id: str, events: Iterable[Event], chains: Iterable[bytes]) -> Iterator[AuditRecord]:
    """Give the records of a log; every row of it has its hash."""
    for event, chain in _with_chain(events, chains):
        fields = _fields_of(event)
        if fields is not None:
            yield AuditRecord(
                session=session_id, seq=event.seq, at=event.at, source=event.source.kind, chain=chain.hex(), **fields
            )


def _with_chain(events: Iterable[Event], chains: Iterable[bytes]) -> Iterator[tuple[Event, bytes]]:
    """Pair events with the hashes of their rows; what an old log does not hold itself has none of its own."""
    rows, seq, chain = iter(chains), 0, b""
    for event in events:
        if event.seq != seq:
            seq, chain = event.seq, next(rows, b"")
        yield event, chain


def _fields_of(event: Event) -> dict[str, Any] | None:
    match event.data:
        case CallProposed(call=call):
            return {"step": AuditStep.CALL, "call_id": call.id, "tool": call.name, "arguments": call.arguments}
        case CallJudged(call_id=call_id, decision=decision):
            reasons = [*decision.reasons, *(reason for part in decision.parts for reason in part.reasons)]
            rules = tuple(dict.fromkeys(reason.rule for reason in reasons))
            why = words_of_decision(decision).headline
            fields = {"verdict": decision.verdict, "why": why, "rules": rules, "digest": decision.digest}
            return {"step": AuditStep.DECISION, "call_id": call_id, **fields}
        case Answer(question_id=question_id, option=option):
            return {"step": AuditStep.ANSWER, "call_id": question_id, "answer": option}
        case CallStarted(call_id=call_id):
            return {"step": AuditStep.START, "call_id": call_id}
        case CallFinished(call_id=call_id, result=result):
            size = len(msgspec.json.encode(result.content))
            return {"step": AuditStep.END, "call_id": call_id, "outcome": result.outcome, "bytes": size}
        case _:
            return None


def audit_session(prefix: str) -> Iterator[AuditRecord]:
    """Read the records of a session by its id or the beginning of it; raises `SessionError`, `StoreError`."""
    store = Store(database())
    try:
        row = store.find(prefix)
        log = store.read(row.id)
        yield from records(row.id, log, store.chains(row.id))
        if log.damage is not None:
            raise log.damage.error()
    finally:
        store.close()


def verify_sessions(prefix: str) -> list[Verified]:
    """Check the log of one session, or with an empty prefix of all; raises `SessionError`, `StoreError`.

    Sessions that were noted outside of the database and are not in it come last.
    """
    store = Store(database())
    try:
        rows = store.sessions(subagents=True)
        found = {row.id for row in rows}
        gone = [name for name in store.anchored() if name not in found and name.startswith(prefix)]
        if prefix and not gone:
            rows = [store.find(prefix)]
        rows = [row for row in rows if row.id.startswith(prefix)]
        return [*(_verify(store, row.id, row.events) for row in rows), *(_verify(store, name, 0) for name in gone)]
    finally:
        store.close()


def _verify(store: Store, session_id: str, events: int) -> Verified:
    chains = store.chains(session_id)
    missing, anchored = store.missing(session_id)
    return Verified(
        session=session_id,
        events=events,
        broken_at=store.verify(session_id),
        chain=chains[-1].hex() if chains else "",
        missing=missing,
        anchored=anchored,
        set_aside=count_set_aside(store, session_id),
    )
