"""A replay of a session from a step, with any model, in a copy of its folder, and both side by side."""

import asyncio
import uuid
from contextlib import suppress
from pathlib import Path
from typing import Any

from msgspec import Struct
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from treadle.door.history import (
    Branch,
    CopiedReplay,
    branch_in_copy,
    compared_replay,
    copy_worked_in,
    discard_copy,
    named_copy,
    replays_of,
)
from treadle.door.known_models import Models, usable_models
from treadle.door.open_session import Reach
from treadle.door.opening import named_copy_trust, session_log
from treadle.door.past import delete_session, find_session
from treadle.door.reports import past_steps
from treadle.door.settings import load_settings
from treadle.door.trust import SessionTrust
from treadle.protocol.errors import ConfigError, TreadleError
from treadle.web.book import SessionBook
from treadle.web.page_requests import answer, body_of, book_of, page, visitor_of, whole_number
from treadle.web.page_session import PageSession
from treadle.web.rights import PageRoute, require
from treadle.web.status import listed_state
from treadle.web.templating import render

_MOST_MODELS = 100
_MOST_STEPS = 10_000
_WHY = f"A step is a number, and so is how many there may be, at most {_MOST_STEPS:,}."
_OF_COPY = "A copy is made of the folder itself, not of another copy."
_ELSEWHERE = "Take its changes first, or replay it in a terminal, into a folder that you name."


async def _show(request: Request) -> Response:
    return await page(request, "replay.html", **await asyncio.to_thread(_found, request))


async def _rows(request: Request) -> Response:
    """Give both sides alone, for a page that is open already."""
    return HTMLResponse(render("replay_rows.html", **await asyncio.to_thread(_found, request)))


def _found(request: Request) -> dict[str, Any]:
    session_id, book = request.path_params["session_id"], book_of(request)
    with session_log(session_id) as (row, store):
        said: dict[str, Any] = {"title": row.title or row.id, "session_id": row.id}
        compared = compared_replay(store, row)
        if compared is not None:
            return {**said, "replay": compared, **_life(book.find(row.id), compared)}
        steps = [one for one in past_steps(store, row) if one.number and not one.left]
        rows = [
            (one, next((step.number for step in steps if step.seq > seq), None)) for one, seq in replays_of(store, row)
        ]
    wanted = whole_number(request.query_params.get("step", ""))
    models = [one.ref for one in usable_models(Models(load_settings(book.flags)))][:_MOST_MODELS]
    return {
        **said,
        "replay": None,
        "steps": steps,
        "wanted": wanted if wanted in {one.number for one in steps} else None,
        "model": row.model,
        "models": [one for one in models if one != row.model],
        "rows": rows,
        "why_not": f"{_OF_COPY} {_ELSEWHERE}" if copy_worked_in(row) is not None else "",
    }


def _life(opened: PageSession | None, compared: CopiedReplay) -> dict[str, Any]:
    state = None if opened is None else listed_state(opened)
    works = opened is not None and opened.session.status.turn_active
    sides = [
        ("Recorded", compared.recorded, compared.recorded.spending.words),
        ("Replay", compared.replayed, compared.replayed.spending.words),
    ]
    both = {one.about for one in compared.recorded.commands} & {one.about for one in compared.replayed.commands}
    return {"sides": sides, "both": both, "state": state, "works": works}


class _Wish(Struct):
    step: str = ""
    model: str = ""
    most: str = ""


async def _begin(request: Request) -> Response:
    """Begin a replay, which works at once; gives the path of where it is followed."""
    said = await body_of(request, _Wish)
    step, most = whole_number(said.step), whole_number(said.most)
    if not step or (said.most.strip() and not (most and most <= _MOST_STEPS)):
        raise ConfigError("replay-wish", "No step is chosen.", why=_WHY, fix="Choose a step of the list.")
    if most:
        require(visitor_of(request), Reach.SETTINGS)
    book = book_of(request)
    session_id = request.path_params["session_id"]
    name, branch, within = await asyncio.to_thread(_branched, book, session_id, step)
    try:
        limit = most and most + await asyncio.to_thread(_steps_before, session_id, step)
        await book.resume(branch.id, within, model=said.model.strip(), max_steps=limit)
    except BaseException:
        await asyncio.to_thread(_forget, name, branch.id)
        raise
    return answer({"path": f"/s/{branch.id}/replay"})


def _steps_before(session_id: str, step: int) -> int:
    """Count the steps of its turn that came before a step: they count for the limit, too."""
    with session_log(session_id) as (row, store):
        numbers = [one.number for one in past_steps(store, row) if not one.left]
    at = numbers.index(step)
    return next((count for count, number in enumerate(reversed(numbers[:at])) if not number), at)


def _branched(book: SessionBook, session_id: str, step: int) -> tuple[str, Branch, SessionTrust]:
    with session_log(session_id) as (row, _):
        if copy_worked_in(row) is not None:
            raise ConfigError(
                "replay-copy", "A session in a copy cannot be replayed here.", why=_OF_COPY, fix=_ELSEWHERE
            )
        trust, name = book.trust(Path(row.workspace)), f"replay-{row.id[-6:]}-{uuid.uuid4().hex[:6]}"
    within = named_copy_trust(name, trust)
    try:
        return name, branch_in_copy(row.id, step, named_copy(name)), within
    except BaseException:
        _forget(name)
        raise


def _forget(name: str, session_id: str = "") -> None:
    """Leave nothing of a replay that could not begin."""
    if session_id:
        with suppress(TreadleError, OSError):
            delete_session(find_session(session_id))
    with suppress(TreadleError, OSError):
        discard_copy(named_copy(name))


ROUTES = (
    PageRoute("/s/{session_id}/replay", _show, Reach.SEE),
    PageRoute("/s/{session_id}/replay/rows", _rows, Reach.SEE),
    PageRoute("/s/{session_id}/replay", _begin, Reach.WORK, methods=["POST"]),
)
