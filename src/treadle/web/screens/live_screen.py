"""The screen of one session: what happens in it, and what a person says to it."""

import asyncio
from contextlib import suppress
from functools import partial
from pathlib import Path

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from treadle.door.open_session import Reach
from treadle.door.opening import session_log
from treadle.door.reports import output_piece
from treadle.present.escape import output_of_command
from treadle.present.item_search import found_items
from treadle.present.items import CallItem
from treadle.protocol.errors import SessionError
from treadle.protocol.messages import text_of, without_own_commands
from treadle.web.page_requests import answer, book_of, page, visitor_of, whole_number
from treadle.web.page_view import PageContent
from treadle.web.rights import PageRoute
from treadle.web.status import effort_words, goal_line
from treadle.web.templating import render

_SHOWN = 80
"""Items that a page begins with, and that come with each look further back or on."""

_PIECE = 200_000
"""Bytes of a long output that come with one look at it."""

_LONGEST_WORDS = 200


async def _show(request: Request) -> Response:
    session_id = request.path_params["session_id"]
    title, workspace, model, above = await asyncio.to_thread(_named, session_id)
    opened = await book_of(request).look_at(session_id)
    view = await _view(request)
    entries = view.before(None, _SHOWN)
    return await page(
        request,
        "live.html",
        session_id=session_id,
        title=title,
        above=above,
        workspace=workspace,
        opened=opened is not None,
        works_above=opened is not None and opened.agent,
        folder_gone=opened is None and not await asyncio.to_thread(Path(workspace).is_dir),
        cursor=f"{view.run}.{view.version}",
        first=entries[0].position if entries else 0,
        more=bool(entries) and bool(view.before(entries[0].position, 1)),
        entries=[view.html(entry) for entry in entries],
        questions=[] if opened is None else [html for _, html in opened.cards(visitor_of(request))],
        shells=book_of(request).shells.on,
        model=model if opened is None else opened.session.status.model,
        effort="" if opened is None else effort_words(opened.session.status.thinking),
        facts=view.view,
        waiting=[text_of(without_own_commands(one.content)) for one in view.view.waiting],
        goal=goal_line(view.view.goal),
    )


async def _items(request: Request) -> Response:
    """Give the items before one, after one, or the last; headers say whether there are others before and after them."""
    view = await _view(request)
    before, after = (request.query_params.get(name, "") for name in ("before", "after"))
    place = whole_number(before or after)
    if (before or after) and place is None:
        raise HTTPException(400, "Say of which item: before=NUMBER or after=NUMBER.")
    entries = view.after(place, _SHOWN) if after and place is not None else view.before(place, _SHOWN)
    ends = (entries[0].position, entries[-1].position) if entries else (0, -1 if place is None else place)
    more, later = bool(view.before(ends[0], 1)), bool(view.after(ends[1], 1))
    headers = {"x-more": "yes" if more else "no", "x-later": "yes" if later else "no"}
    return HTMLResponse("".join(map(view.html, entries)), headers=headers)


async def _whole(request: Request) -> Response:
    """Give a piece of all that a call printed, where the model was given a part of it; the last piece first."""
    view = await _view(request)
    place, before = (whole_number(request.query_params.get(name, "")) for name in ("item", "before"))
    item = view.item(place) if place is not None else None
    result = item.changed.result if isinstance(item, CallItem) else None
    if result is None or not result.full_output:
        raise HTTPException(404, "This item has no output besides what it shows.")
    piece = await asyncio.to_thread(output_piece, result.full_output, _PIECE, before)
    return HTMLResponse(render("output.html", piece=piece, place=place, text=output_of_command(piece.text)))


async def _found(request: Request) -> Response:
    """Find words in all of the session, for the palette."""
    view = await _view(request)
    words, items = request.query_params.get("words", "")[:_LONGEST_WORDS].strip(), tuple(view.items())
    at = f"/s/{request.path_params['session_id']}#i"
    found = await asyncio.to_thread(found_items, items, words) if words else ()
    return answer(
        [{"kind": "Said", "title": one.line, "about": one.what, "path": f"{at}{one.position}"} for one in found]
    )


async def _view(request: Request) -> PageContent:
    session_id = request.path_params["session_id"]
    book = book_of(request)
    opened = book.find(session_id)
    return opened.content if opened is not None else await asyncio.to_thread(partial(book.past, session_id))


def _named(session_id: str) -> tuple[str, str, str, tuple[str, str] | None]:
    """Give the title, folder and model of a session, and of a subagent for which session it works, with its title."""
    with session_log(session_id) as (row, store):
        above = None
        with suppress(SessionError):  # it was deleted
            above = (row.root, store.find(row.root).title or row.root) if row.root else None
        return row.title or row.id, row.workspace, row.model, above


ROUTES = (
    PageRoute("/s/{session_id}", _show, Reach.SEE),
    PageRoute("/s/{session_id}/items", _items, Reach.SEE),
    PageRoute("/s/{session_id}/output", _whole, Reach.SEE),
    PageRoute("/s/{session_id}/find", _found, Reach.SEE),
)
