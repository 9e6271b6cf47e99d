"""The subagents of a session as lanes: what each is for, does now, and cost, each with its own conversation."""

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from treadle.door.open_session import Reach
from treadle.door.opening import session_log
from treadle.door.past import ListedSession, SessionState, listed_sessions
from treadle.present.spending_words import Spending
from treadle.protocol.children import ChildOutcome
from treadle.protocol.notifications import ChildChanged
from treadle.web.page_requests import book_of, page
from treadle.web.rights import PageRoute
from treadle.web.status import spent_words
from treadle.web.templating import render

_ENDED: Mapping[str, tuple[str, str]] = {
    ChildOutcome.DONE: ("done", "Done"),
    ChildOutcome.LIMIT: ("stopped", "Stopped by its limit"),
    ChildOutcome.REFUSED: ("failed", "Refused"),
    ChildOutcome.FAILED: ("failed", "Failed"),
    ChildOutcome.INTERRUPTED: ("stopped", "Stopped"),
}


class AgentLane(Struct, frozen=True, kw_only=True):
    """A subagent: how it is in a word with its sign, and what it does now; `depth` counts the agents above it."""

    id: str
    task: str
    agent: str
    model: str
    sign: str
    words: str
    depth: int
    cost: str
    updated_at: int
    doing: str = ""
    steps: int = 0
    added: int = 0
    removed: int = 0


async def _show(request: Request) -> Response:
    title, lanes = await asyncio.to_thread(_found, request)
    return await page(request, "lanes.html", session_id=request.path_params["session_id"], title=title, **_sums(lanes))


async def _rows(request: Request) -> Response:
    """Give the lanes alone, for a page that is open already."""
    _, lanes = await asyncio.to_thread(_found, request)
    return HTMLResponse(render("lane_rows.html", **_sums(lanes)))


def _sums(lanes: Sequence[AgentLane]) -> dict[str, Any]:
    counts = {
        sign: sum(one.sign == sign for one in lanes) for sign in ("working", "waiting", "done", "failed", "stopped")
    }
    return {"lanes": lanes, "counts": {sign: count for sign, count in counts.items() if count}}


def _found(request: Request) -> tuple[str, list[AgentLane]]:
    session_id = request.path_params["session_id"]
    with session_log(session_id) as (row, _):
        title, workspace = row.title or row.id, row.workspace
    rows = {one.id: one for one in listed_sessions(Path(workspace), subagents=True) if one.root == session_id}
    opened = book_of(request).opened.get(session_id)
    now = {} if opened is None else {one.session_id: one for one in opened.content.view.children}
    below: dict[str, list[ListedSession]] = {}
    for one in sorted(rows.values(), key=lambda one: one.created_at):
        below.setdefault(one.parent if one.parent in rows else session_id, []).append(one)
    lanes: list[AgentLane] = []

    def add(parent: str, depth: int) -> None:
        for one in below.get(parent, ()):
            lanes.append(_lane(one, now.get(one.id), depth))
            add(one.id, depth + 1)

    add(session_id, 0)
    return title, lanes


def _lane(row: ListedSession, now: ChildChanged | None, depth: int) -> AgentLane:
    live = row.open or now is not None
    waits = row.state is SessionState.WAITING
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
        cost=spent_words(own),
        updated_at=row.updated_at,
        doing=now.doing if now is not None else "",
        steps=(now.steps if now is not None else 0) or row.steps or 0,
        added=row.added,
        removed=row.removed,
    )


ROUTES = (
    PageRoute("/s/{session_id}/agents", _show, Reach.SEE),
    PageRoute("/s/{session_id}/agents/rows", _rows, Reach.SEE),
)
