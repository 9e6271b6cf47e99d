"""The sessions as they are listed: their state, cost, and why they stopped."""

from collections.abc import Collection, Container, Iterable, Iterator, Sequence
from contextlib import suppress
from enum import StrEnum
from pathlib import Path
from typing import TypeGuard

import msgspec
from msgspec.structs import replace

from treadle.app.compose import list_sessions, open_store
from treadle.app.reports.usage_sums import LoggedUsage, SessionUsage, UsageReader, spending_of, with_lost
from treadle.app.session.shared.session_wire import background_sessions
from treadle.engine.core.budgets import session_budget
from treadle.engine.core.past_history import calls_under_way, last_state
from treadle.engine.core.state import TurnState
from treadle.present.spending_words import Spending
from treadle.present.words import clip_text
from treadle.protocol.base import Record
from treadle.protocol.checkpoints import CheckpointTaken, OwnTotal
from treadle.protocol.children import ChildOutcome
from treadle.protocol.errors import StoreError, TreadleError
from treadle.protocol.events import Event, Prompt
from treadle.protocol.goals import GoalState
from treadle.protocol.messages import text_of
from treadle.protocol.notifications import CHILD_OUTCOMES, TurnOutcome, TurnStop
from treadle.protocol.sealed import TurnSettled
from treadle.store.spent import run_of_session
from treadle.store.sqlite import SessionRow, Store
from treadle.store.summaries import keep_summaries, kept_summaries


class SessionState(StrEnum):
    """Working on a prompt, waiting for a person's answer, done with the last prompt, or stopped before it was done."""

    WORKING = "working"
    WAITING = "waiting"
    DONE = "done"
    STOPPED = "stopped"


LEFT_OFF = "unfinished"
"""Why a session stopped whose program ended in mid-turn."""

UNREADABLE = "unreadable"
"""Why a session counts as stopped whose log cannot be followed."""

DAMAGED = "damaged"
"""Why a session counts as stopped of whose log a part is missing or cannot be read."""


class ListedSession(Record, frozen=True, kw_only=True, omit_defaults=False):
    """One session. `ended` is why it stopped, None if it did not.

    `cost` is in US dollars, None where a part of it is unknown; `known_cost` is what is known of it. `estimated`: a
    part of that is our own estimate.
    `open` says that a program has it open now, `background` that this is one without a terminal. `steps` is None where
    its log was not read; `added` and `removed` count lines of files, `first` is the beginning of the first prompt,
    `said` that of what its last turn ended with, or why it did not end well. `budget` is what it may spend, None
    without a bound.
    `mode` is empty where its log was not read, `goal` how its goal stands, None without one. `asked` says that it
    waited for an answer when its program ended. Times are milliseconds since 1970, UTC.
    """

    id: str
    title: str
    state: SessionState
    cost: float | None
    known_cost: float
    ended: str | None
    workspace: str
    model: str
    created_at: int
    updated_at: int
    events: int
    open: bool
    steps: int | None
    added: int
    removed: int
    first: str
    said: str = ""
    budget: float | None = None
    mode: str = ""
    archived: bool = False
    background: bool = False
    estimated: bool = False
    root: str = ""
    parent: str = ""
    agent: str = ""
    outcome: str = ""
    tree_cost: float | None = 0.0
    children_cost: float = 0.0
    goal: GoalState | None = None
    asked: bool = False

    @property
    def spending(self) -> Spending:
        """What it cost with its subagents, as far as that is known."""
        known = self.known_cost + self.children_cost
        return Spending(ended=known, unpriced=self.cost is None or self.tree_cost is None, estimated=self.estimated)


class _Digest(Record, frozen=True, kw_only=True):
    """What a log says in short: whether a turn goes on, and waits for a person; how the last one ended; what it used.

    The steps are those of all turns; None stands for a log that was not read. A digest without them, or without the
    mode, is of an older version, and is not used, nor is one without `usage`, which may go further than the rest.
    `calling` counts the model calls that go on.
    """

    steps: int | None
    mode: str
    usage: LoggedUsage | None
    active: bool = False
    asking: bool = False
    stop: str | None = None
    added: int = 0
    removed: int = 0
    first: str = ""
    said: str = ""
    budget: float | None = None
    goal: GoalState | None = None
    calling: int = 0


_FIRST = 400
"""Characters of the first prompt that are kept."""

_SAID = 160
"""Characters of what a turn ended with that are kept."""


def listed_sessions(
    workspace: Path | None,
    *,
    read: bool = True,
    archived: bool = False,
    unread: Container[str] = (),
    subagents: bool = False,
    runs: bool = False,
) -> list[ListedSession]:
    """List the sessions that had a prompt, the last used first; of one workspace and its copies if given.

    Either those that are `archived` or the others. Unless logs are `read`, only what was kept of them is said, which
    takes a moment; so it is with the logs of `unread` sessions. With `subagents` these are listed, too.
    Those of batches are listed for their own folder, or with `runs`: there may be thousands.
    """
    from treadle.app.reports.copy_list import rows_of_folder

    store = open_store()
    try:
        all_rows = store.sessions() if workspace is None else rows_of_folder(store, workspace)
        of_all = runs or workspace is not None
        rows = [
            row for row in all_rows if row.title and row.archived is archived and (of_all or not run_of_session(row.id))
        ]
        if subagents:  # one that writes does so in a folder of its own
            roots = {row.id for row in rows}
            rows += [row for row in store.sessions(subagents=True) if row.root in roots]
        return _listed_rows(store, rows, read=read, unread=unread)
    finally:
        store.close()


def worked_folders() -> list[str]:
    """Name the folders of sessions, the last used first, without those that a batch made for its tasks."""
    return list(dict.fromkeys(row.workspace for row in list_sessions(None) if not run_of_session(row.id)))


def listed_runs(*, archived: bool = False) -> dict[str, tuple[int, int]]:
    """Give the batches that have sessions: how many, and when one was last used (milliseconds since 1970, UTC)."""
    store = open_store()
    try:
        found: dict[str, tuple[int, int]] = {}
        for row in store.sessions():
            if row.title and row.archived is archived and (run := run_of_session(row.id)):
                number, last = found.get(run, (0, 0))
                found[run] = (number + 1, max(last, row.updated_at))
        return found
    finally:
        store.close()


def listed_in(store: Store, rows: Sequence[SessionRow]) -> list[ListedSession]:
    """List these sessions of a log that is open."""
    return _listed_rows(store, rows, read=True)


def _listed_rows(
    store: Store, rows: Sequence[SessionRow], *, read: bool, unread: Container[str] = ()
) -> list[ListedSession]:
    before = store.leased()  # a turn that was read half-way has not stopped because its session was closed since
    ids = {row.id for row in rows}
    below = [row for row in store.sessions(subagents=True) if row.root in ids]
    digests = _digests(store, {row.id: row for row in (*rows, *below)}.values(), read=read, unread=unread)
    trees = {row.id: [digests[one.id] for one in below if one.root == row.id] for row in rows}
    background = background_sessions() & (leased := before | store.leased())
    listed = [_listed(row, digests[row.id], trees[row.id], live=row.id in leased) for row in rows]
    return [replace(one, background=True) if one.id in background else one for one in listed]


def _digests(store: Store, rows: Collection[SessionRow], *, read: bool, unread: Container[str]) -> dict[str, _Digest]:
    """Give what the logs say; what was read once is kept until the log goes on."""
    kept = kept_summaries(store)
    found: dict[str, _Digest] = {}
    new: dict[str, tuple[int, bytes]] = {}
    for row in rows:
        seq, data = kept.get(row.id, (-1, b""))
        digest = _decoded(data) if seq == row.events else None
        if digest is None and (not read or row.id in unread):
            digest = _Digest(steps=None, mode="", usage=None)
        elif digest is None:
            digest = _read(store, row.id)
            if digest.stop not in (UNREADABLE, DAMAGED):  # another version, or a backup, may have more to say
                new[row.id] = (row.events, msgspec.json.encode(digest))
        found[row.id] = digest
    _keep(store, new)
    return found


def sessions_usage(workspace: Path | None) -> list[SessionUsage]:
    """Give what each session used, of one project if given; of a log that went on only what is new is read."""
    from treadle.app.reports.copy_list import rows_of_project

    store = open_store()
    try:
        leased, kept = store.leased(), kept_summaries(store)
        new: dict[str, tuple[int, bytes]] = {}
        found = []
        for row, project in rows_of_project(store, workspace):
            seq, data = kept.get(row.id, (0, b""))
            before, live = _decoded(data), row.id in leased
            digest = before if _covers(before, row.events) else _read_on(store, row.id, before)
            if digest.usage is not None and digest.usage.begun and seq < row.events and not live:
                before, digest = None, _read(store, row.id)  # what was kept does not say whether a call was lost
            whole = _covers(digest, row.events)
            if whole and digest is not before and digest.stop != UNREADABLE:
                # What is not the usage was read up to `seq` only, unless there was no digest.
                new[row.id] = (row.events if before is None else seq, msgspec.json.encode(digest))
            used = digest.usage or LoggedUsage()
            used = with_lost(used, digest.calling if used.begun and not live else 0, row.updated_at)
            found.append(SessionUsage(id=row.id, project=project, usage=used, whole=whole))
        _keep(store, new)
        return found
    finally:
        store.close()


def _covers(digest: _Digest | None, events: int) -> TypeGuard[_Digest]:
    return digest is not None and digest.usage is not None and digest.usage.through >= events


def _read_on(store: Store, session_id: str, digest: _Digest | None) -> _Digest:
    """Read what came since a digest was made, or all without one, as far as it can be read."""
    if digest is None or digest.usage is None:
        return _read(store, session_id)
    reader = UsageReader(digest.usage)
    with suppress(TreadleError):
        for event in store.read(session_id, after=digest.usage.through):
            reader.take(event)
    return replace(digest, usage=reader.logged())


def _keep(store: Store, digests: dict[str, tuple[int, bytes]]) -> None:
    if digests:
        with suppress(StoreError):  # a full disk keeps nobody from reading the list
            keep_summaries(store, digests)


def _decoded(data: bytes) -> _Digest | None:
    with suppress(msgspec.MsgspecError):
        return msgspec.json.decode(data, type=_Digest)
    return None


def _read(store: Store, session_id: str) -> _Digest:
    """Follow a log to its end; one that this version cannot follow does not keep the others from being listed."""
    reader = UsageReader()
    try:
        log = store.read(session_id)
        digest = _followed(log, reader)
        return digest if log.damage is None else replace(digest, active=False, stop=DAMAGED)
    except TreadleError:
        return _Digest(steps=0, mode="", stop=UNREADABLE, usage=reader.logged())


def _followed(events: Iterable[Event], reader: UsageReader) -> _Digest:
    first = ""
    ended: list[TurnOutcome] = []
    total: OwnTotal | None = None

    def noted() -> Iterator[Event]:
        nonlocal first, total
        for event in events:
            reader.take(event)
            if isinstance(event.data, CheckpointTaken):
                total = event.data.total
            if not first and isinstance(event.data, Prompt):
                first = " ".join(text_of(event.data.content)[: 4 * _FIRST].split())[:_FIRST]
            if isinstance(event.data, TurnSettled):
                ended.append(event.data.outcome)
            yield event

    state = last_state(noted())
    turns: list[TurnOutcome | TurnState] = [*ended, *([] if state.turn is None else [state.turn])]
    if total is None:  # without checkpoints that count, it is what tools reported
        changes = [change for turn in turns for change in turn.changes]
        total = OwnTotal(added=sum(one.added for one in changes), removed=sum(one.removed for one in changes))
    return _Digest(
        steps=sum(turn.steps for turn in turns),
        mode=str(state.mode),
        active=state.turn is not None,
        asking=bool(state.questions),
        stop=ended[-1].ended if ended else None,
        usage=reader.logged(),
        added=total.added,
        removed=total.removed,
        first=first,
        said=_said(ended[-1]) if ended else "",
        budget=session_budget(state),
        goal=None if state.goal is None else state.goal.stands,
        calling=calls_under_way(state),
    )


def _said(ended: TurnOutcome) -> str:
    """Give the first line of what a turn ended with; of one that did not end well why."""
    why = ended.why or ("" if ended.error is None else ended.error.message)
    text = ended.text if ended.stop is TurnStop.END_TURN else why
    return clip_text(next((line for line in text.split("\n") if line.strip()), ""), _SAID)


def _listed(row: SessionRow, digest: _Digest, below: Sequence[_Digest], *, live: bool) -> ListedSession:
    state, ended = _standing(digest, live=live)
    spending, *others = [spending_of(one.usage, lost=0 if live else one.calling) for one in (digest, *below)]
    unpriced = spending.unpriced or any(one.unpriced for one in others)
    total = spending.total + sum(one.total for one in others)
    return ListedSession(
        id=row.id,
        title=row.title,
        state=state,
        cost=None if spending.unpriced else spending.total,
        known_cost=spending.total,
        estimated=spending.estimated or any(one.estimated for one in others),
        root=row.root,
        parent=row.parent,
        agent=row.agent,
        outcome=_outcome(digest) if row.root and not (live and (digest.active or digest.stop is None)) else "",
        tree_cost=None if unpriced else total,
        children_cost=total - spending.total,
        ended=ended,
        workspace=row.workspace,
        model=row.model,
        created_at=row.created_at,
        updated_at=row.updated_at,
        events=row.events,
        open=live,
        steps=digest.steps,
        added=digest.added,
        removed=digest.removed,
        first=digest.first,
        said=digest.said,
        budget=digest.budget,
        mode=digest.mode,
        goal=digest.goal,
        asked=ended == LEFT_OFF and digest.asking,
        archived=row.archived,
    )


def _outcome(digest: _Digest) -> str:
    """Say how a subagent ended; one that did not was interrupted."""
    ended = {str(stop): outcome for stop, outcome in CHILD_OUTCOMES.items()}
    return ended.get(digest.stop or "", ChildOutcome.INTERRUPTED) if not digest.active else ChildOutcome.INTERRUPTED


def _standing(digest: _Digest, *, live: bool) -> tuple[SessionState, str | None]:
    if live and (digest.active or digest.asking):  # a summary is asked about outside of turns, too
        return (SessionState.WAITING if digest.asking else SessionState.WORKING), None
    return how_it_ended(None if digest.active else digest.stop)


def how_it_ended(stop: str | None) -> tuple[SessionState, str | None]:
    """Give the state of a session in which no turn goes on, by how the last one ended, None where it did not."""
    if stop is None:
        return SessionState.STOPPED, LEFT_OFF
    return (SessionState.DONE, None) if stop == TurnStop.END_TURN else (SessionState.STOPPED, stop)
