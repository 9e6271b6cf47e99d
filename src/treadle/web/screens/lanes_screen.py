"""The subagents of a session as lanes: what each is for, does now, and cost, each with its own conversation."""

import asyncio
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from treadle.door.history import found_copies
from treadle.door.open_session import Reach
from treadle.door.opening import session_log
from treadle.door.past import ListedSession, SessionState, StopResult, listed_sessions, stop_sessions
from treadle.present.spending_words import Spending
from treadle.protocol.children import ChildOutcome
from treadle.protocol.errors import SessionError
from treadle.protocol.notifications import ChildChanged
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


class AgentLane(Struct, frozen=True, kw_only=True):
    """A subagent: how it is in a word with its sign, and what it does now; `depth` counts the agents above it.

    `open`: it works itself, so it can be stopped. `asks_itself`: it works for a person who continued it, so its
    question is on its own page, not on that of the session that began it. `kept`: it has ended, and what it changed in
    its copy is there still, not in the workspace.
    """

    id: str
    task: str
    agent: str
    model: str
    sign: str
    words: str
    depth: int
    spending: Spending
    created_at: int
    updated_at: int
    doing: str = ""
    steps: int = 0
    added: int = 0
    removed: int = 0
    open: bool = False
    asks_itself: bool = False
    kept: bool = False

    @property
    def cost(self) -> str:
        """What it cost, in words."""
        return self.spending.words


async def _show(request: Request) -> Response:
    title, lanes = await asyncio.to_thread(_found, request)
    return await page(
        request, "lanes.html", session_id=request.path_params["session_id"], title=title, **lane_sums(lanes)
    )


async def _rows(request: Request) -> Response:
    """Give the lanes alone, for a page that is open already."""
    _, lanes = await asyncio.to_thread(_found, request)
    return HTMLResponse(render("lane_rows.html", session_id=request.path_params["session_id"], **lane_sums(lanes)))


def lane_sums(lanes: Sequence[AgentLane]) -> dict[str, Any]:
    """Give the lanes and what they come to in all; the time is from the first that began to the last that went on."""
    counts = {sign: sum(one.sign == sign for one in lanes) for sign in ("working", "waiting", "failed", "stopped")}
    spent = Spending(
        ended=sum(one.spending.ended for one in lanes),
        unpriced=any(one.spending.unpriced for one in lanes),
        estimated=any(one.spending.estimated for one in lanes),
    )
    last = time.time() * 1000 if counts["working"] else max((one.updated_at for one in lanes), default=0)
    return {
        "lanes": lanes,
        "counts": counts,
        "steps": sum(one.steps for one in lanes),
        "spent": spent.words,
        "seconds": (last - min((one.created_at for one in lanes), default=last)) / 1000,
    }


def _found(request: Request) -> tuple[str, list[AgentLane]]:
    session_id = request.path_params["session_id"]
    with session_log(session_id) as (row, _):
        title, workspace = row.title or row.id, row.workspace
    rows = {one.id: one for one in listed_sessions(Path(workspace), subagents=True) if one.root == session_id}
    opened = book_of(request).find(session_id)
    now = {} if opened is None else {one.session_id: one for one in opened.content.view.children}
    asking = set() if opened is None else {one.child for one in opened.questions}
    below: dict[str, list[ListedSession]] = {}
    for one in sorted(rows.values(), key=lambda one: one.created_at):
        below.setdefault(one.parent if one.parent in rows else session_id, []).append(one)
    lanes: list[AgentLane] = []
    copies = {str(one.folder) for one in found_copies()}

    def add(parent: str, depth: int) -> None:
        for one in below.get(parent, ()):
            lane = _lane(one, now.get(one.id), depth, asks=one.id in asking)
            lanes.append(replace(lane, kept=one.workspace in copies and lane.sign not in ("working", "waiting")))
            add(one.id, depth + 1)

    add(session_id, 0)
    return title, lanes


def _lane(row: ListedSession, now: ChildChanged | None, depth: int, *, asks: bool) -> AgentLane:
    live = now is not None or row.state in (SessionState.WORKING, SessionState.WAITING)
    waits = asks or row.state is SessionState.WAITING  # what it changed is asked about when it has ended
    usual = ("waiting", "Needs you") if waits else ("working", "Working")
    sign, words = usual if live else _ENDED.get(row.outcome, ("stopped", "Stopped"))
    own = Spending(ended=row.known_cost, unpriced=row.cost is None, estimated=row.estimated)
    return AgentLane(
        id=row.id,
        task=row.title,
        agent=row.agent,
        model=row.model,
        sign=sign,
        words=words,
        depth=min(depth, 3),
        spending=own,
        created_at=row.created_at,
        updated_at=row.updated_at,
        doing=now.doing if now is not None else "",
        steps=(now.steps if now is not None else 0) or row.steps or 0,
        added=row.added,
        removed=row.removed,
        open=row.open and live,
        asks_itself=waits and not asks and now is None,
    )


async def _stop(request: Request) -> Response:
    """Stop one subagent; the call that waits for it gets what it has said so far."""
    root, agent = request.path_params["session_id"], request.path_params["agent"]
    if await asyncio.to_thread(_root_of, agent) != root:
        raise SessionError("agent-unknown", "This session has no such subagent.", fix="Look at its subagents again.")
    (stopped,) = await stop_sessions([agent])
    if stopped.result is StopResult.FAILED:
        raise SessionError("agent-stop", "The subagent was not stopped.", why=stopped.problem, fix=stopped.fix)
    return answer({"said": "It had ended." if stopped.result is StopResult.NOT_OPEN else ""})


def _root_of(session_id: str) -> str:
    with session_log(session_id) as (row, _):
        return row.root


ROUTES = (
    PageRoute("/s/{session_id}/agents", _show, Reach.SEE),
    PageRoute("/s/{session_id}/agents/rows", _rows, Reach.SEE),
    PageRoute("/s/{session_id}/agents/{agent}/stop", _stop, Reach.WORK, methods=["POST"]),
)
