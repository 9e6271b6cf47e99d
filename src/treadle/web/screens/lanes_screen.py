"""The subagents of a session as lanes: what each is for, does now, and cost, each with its own conversation."""

import asyncio
import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from treadle.door.history import WriterCopy, found_copies, planned_copy, writers_folder
from treadle.door.open_session import Reach
from treadle.door.opening import session_log
from treadle.door.past import ListedSession, SessionState, StopResult, listed_sessions, stop_sessions
from treadle.present.child_words import doing_words, role_words
from treadle.present.escape import exact_line
from treadle.present.question_words import in_short
from treadle.present.spending_words import Spending
from treadle.protocol.children import ChildOutcome
from treadle.protocol.errors import SessionError, TreadleError
from treadle.protocol.models import money
from treadle.protocol.notifications import ChildChanged
from treadle.protocol.permissions import Mode, Question
from treadle.web.page_requests import answer, book_of, page
from treadle.web.rights import PageRoute
from treadle.web.templating import render

_ENDED: Mapping[str, tuple[str, str]] = {
    ChildOutcome.DONE: ("done", "Done"),
    ChildOutcome.LIMIT: ("stopped", "Stopped by its limit"),
    ChildOutcome.REFUSED: ("failed", "Refused"),
    ChildOutcome.FAILED: ("failed", "Failed"),
    ChildOutcome.INTERRUPTED: ("stopped", "Stopped"),
}


_LONGEST_DIFF = 200_000
"""Characters of changes that are shown beside the lanes."""


class AgentLane(Struct, frozen=True, kw_only=True):
    """A subagent: how it is in a word with its sign, and what it does now or ended with.

    `open`: it works itself, so it can be stopped. `asks` is the page where its question is, empty where it has none:
    of one that a person continued its own, else that of the session that began it. `budget` is empty without a bound.
    """

    id: str
    task: str
    role: str
    model: str
    sign: str
    words: str
    spending: Spending
    budget: str
    created_at: int
    updated_at: int
    doing: str = ""
    steps: int = 0
    added: int = 0
    removed: int = 0
    open: bool = False
    asks: str = ""
    in_copy: bool = False

    @property
    def cost(self) -> str:
        """What it cost, in words."""
        return self.spending.words


class LeftChanges(Struct, frozen=True, kw_only=True):
    """What a subagent that has ended changed in its copy, and is not in the workspace: what taking it would do.

    `files` would come into it as `diff` shows, empty where that is too long; `added` and `removed` count their lines.
    `conflicts` names what was changed in the same lines there, `stays` says what else would not come, and why.
    """

    id: str
    task: str
    files: int = 0
    added: int = 0
    removed: int = 0
    diff: str = ""
    conflicts: Sequence[str] = ()
    stays: Sequence[str] = ()


async def _show(request: Request) -> Response:
    found = await asyncio.to_thread(_found, request)
    return await page(request, "lanes.html", session_id=request.path_params["session_id"], **found)


async def _rows(request: Request) -> Response:
    """Give the lanes alone, for a page that is open already."""
    found = await asyncio.to_thread(_found, request)
    return HTMLResponse(render("lane_rows.html", session_id=request.path_params["session_id"], **found))


def lane_sums(lanes: Sequence[AgentLane]) -> dict[str, Any]:
    """Give the lanes and what they come to in all; the time is from the first that began to the last that went on."""
    counts = {sign: sum(one.sign == sign for one in lanes) for sign in ("working", "waiting", "failed", "stopped")}
    spent = Spending(
        ended=sum(one.spending.ended for one in lanes),
        unpriced=any(one.spending.unpriced for one in lanes),
        estimated=any(one.spending.estimated for one in lanes),
    )
    goes_on = bool(counts["working"] or counts["waiting"])
    last = time.time() * 1000 if goes_on else max((one.updated_at for one in lanes), default=0)
    return {
        "lanes": lanes,
        "counts": counts,
        "steps": sum(one.steps for one in lanes),
        "spent": spent.words,
        "goes_on": goes_on,
        "seconds": (last - min((one.created_at for one in lanes), default=last)) / 1000,
    }


def _lanes(request: Request) -> tuple[str, Sequence[ListedSession], list[AgentLane]]:
    """Read a session's title, and its subagents, each with its lane."""
    session_id = request.path_params["session_id"]
    with session_log(session_id) as (row, _):
        title, workspace = row.title or row.id, row.workspace
    rows = [one for one in listed_sessions(Path(workspace), subagents=True) if one.root == session_id]
    opened = book_of(request).find(session_id)
    now = {} if opened is None else {one.session_id: one for one in opened.content.view.children}
    asked = {} if opened is None else {one.child: one for one in reversed(opened.questions)}
    rows.sort(key=lambda one: one.created_at)
    return title, rows, [_lane(one, now.get(one.id), asked.get(one.id)) for one in rows]


def _found(request: Request) -> dict[str, Any]:
    title, rows, lanes = _lanes(request)
    copies = {str(one.folder): one for one in found_copies()}
    over = {one.id for one in lanes if one.sign not in ("working", "waiting")}
    left = [_left(one, copies[one.workspace]) for one in rows if one.id in over and one.workspace in copies]
    return {
        "title": title,
        "left": [one for one in left if one.files or one.conflicts or one.stays],
        **lane_sums(lanes),
    }


def _left(row: ListedSession, copy: WriterCopy) -> LeftChanges:
    try:
        would = planned_copy(copy, protected=False).would
    except (TreadleError, OSError) as error:
        why = error.what if isinstance(error, TreadleError) else str(error)
        return LeftChanges(id=row.id, task=row.title, stays=[f"What it changed cannot be read. {why}"])

    def name(path: str) -> str:
        return exact_line(os.path.relpath(path, copy.workspace))

    return LeftChanges(
        id=row.id,
        task=row.title,
        files=len(would.merged),
        added=sum(one.added for one in would.merged),
        removed=sum(one.removed for one in would.merged),
        diff=would.diff if len(would.diff) <= _LONGEST_DIFF else "",
        conflicts=[name(one.path) for one in would.conflicts],
        stays=[*(f"{name(one.path)}: {one.why}" for one in would.held), *map(exact_line, would.left_out)],
    )


def _lane(row: ListedSession, now: ChildChanged | None, asked: Question | None) -> AgentLane:
    live = now is not None or row.state in (SessionState.WORKING, SessionState.WAITING)
    waits = asked is not None or row.state is SessionState.WAITING  # what it changed is asked about when it has ended
    usual = ("waiting", "Needs you") if waits else ("working", "Working")
    sign, words = usual if live else _ENDED.get(row.outcome, ("stopped", "Stopped"))
    in_copy = Path(row.workspace).is_relative_to(writers_folder())
    return AgentLane(
        id=row.id,
        task=row.title,
        role=role_words(row.agent, in_copy=in_copy, reads=row.mode == Mode.PLAN),
        model=row.model,
        sign=sign,
        words=words,
        spending=Spending(ended=row.known_cost, unpriced=row.cost is None, estimated=row.estimated),
        budget="" if row.budget is None else money(row.budget),
        created_at=row.created_at,
        updated_at=row.updated_at,
        doing=_doing(now, asked) if live else row.said,
        steps=(now.steps if now is not None else 0) or row.steps or 0,
        added=row.added,
        removed=row.removed,
        open=row.open and live,
        asks=_where_asked(row, now, asked) if waits else "",
        in_copy=in_copy,
    )


def _where_asked(row: ListedSession, now: ChildChanged | None, asked: Question | None) -> str:
    if asked is not None:
        return f"{row.root}#c-{row.root}-{asked.id}"
    return f"{row.id if now is None else row.root}#questions"


def _doing(now: ChildChanged | None, asked: Question | None) -> str:
    """Say what one does that has not ended, or what it needs a person for."""
    if asked is not None:
        return f"Waits for you: {in_short(asked)}?"
    doing = "" if now is None else doing_words(now)
    return f"{doing[:1].upper()}{doing[1:]}"


async def _stop(request: Request) -> Response:
    """Stop one subagent; the call that waits for it gets what it has said so far."""
    root, agent = request.path_params["session_id"], request.path_params["agent"]
    if await asyncio.to_thread(_root_of, agent) != root:
        raise SessionError("agent-unknown", "This session has no such subagent.", fix="Look at its subagents again.")
    (stopped,) = await stop_sessions([agent])
    if stopped.result is StopResult.FAILED:
        raise SessionError("agent-stop", "The subagent was not stopped.", why=stopped.problem, fix=stopped.fix)
    return answer({"said": "It had ended." if stopped.result is StopResult.NOT_OPEN else ""})


async def _stop_all(request: Request) -> Response:
    """Stop all subagents that work; the session goes on with what they have said so far."""
    _, _, lanes = await asyncio.to_thread(_lanes, request)
    stopped = await stop_sessions([one.id for one in lanes if one.open])
    failed = [one for one in stopped if one.result is StopResult.FAILED]
    if failed:
        what = "A subagent was not stopped." if len(failed) == 1 else f"{len(failed)} subagents were not stopped."
        raise SessionError("agent-stop", what, why=failed[0].problem, fix=failed[0].fix)
    return answer({})


def _root_of(session_id: str) -> str:
    with session_log(session_id) as (row, _):
        return row.root


ROUTES = (
    PageRoute("/s/{session_id}/agents", _show, Reach.SEE),
    PageRoute("/s/{session_id}/agents/rows", _rows, Reach.SEE),
    PageRoute("/s/{session_id}/agents/stop", _stop_all, Reach.WORK, methods=["POST"]),
    PageRoute("/s/{session_id}/agents/{agent}/stop", _stop, Reach.WORK, methods=["POST"]),
)
