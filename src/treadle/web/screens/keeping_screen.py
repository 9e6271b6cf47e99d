"""What a person does with a whole session of the list: rename, archive, copy and delete it."""

import asyncio

from msgspec import Struct
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from treadle.door.open_session import Reach
from treadle.door.past import (
    archive_sessions,
    copy_whole,
    delete_session,
    find_session,
    pin_session,
    rename_session,
    unarchive_session,
)
from treadle.web.page_frame import session_row
from treadle.web.page_requests import answer, body_of, book_of, done
from treadle.web.rights import PageRoute
from treadle.web.templating import render


async def _menu(request: Request) -> Response:
    """Give what can be done with a session now."""
    row = await asyncio.to_thread(session_row, book_of(request), request.path_params["session_id"])
    return HTMLResponse(render("session_menu.html", row=row))


class _Name(Struct):
    name: str


async def _rename(request: Request) -> Response:
    """Give a session a name; an empty one gives it its first title again."""
    wanted = await body_of(request, _Name)
    row = await asyncio.to_thread(rename_session, request.path_params["session_id"], wanted.name)
    book_of(request).relist()
    return answer({"title": row.title})


async def _archive(request: Request) -> Response:
    """Archive a session that nobody has open."""
    session_id = request.path_params["session_id"]
    await asyncio.to_thread(lambda: archive_sessions([find_session(session_id)]))
    book_of(request).relist()
    return done()


async def _unarchive(request: Request) -> Response:
    """List an archived session with the others again."""
    await asyncio.to_thread(unarchive_session, request.path_params["session_id"])
    book_of(request).relist()
    return done()


async def _pin(request: Request) -> Response:
    """Keep a session in sight when it is done."""
    return await _pinned(request, pinned=True)


async def _unpin(request: Request) -> Response:
    """List a session among the others that are done again."""
    return await _pinned(request, pinned=False)


async def _pinned(request: Request, *, pinned: bool) -> Response:
    session_id = request.path_params["session_id"]
    await asyncio.to_thread(lambda: pin_session(find_session(session_id).id, pinned=pinned))
    book_of(request).relist()
    return done()


async def _delete(request: Request) -> Response:
    """Delete a session that nobody has open, for good; the page has asked before."""
    session_id = request.path_params["session_id"]
    await asyncio.to_thread(lambda: delete_session(find_session(session_id)))
    await book_of(request).shells.close_one(session_id)
    book_of(request).relist()
    return done()


async def _fork(request: Request) -> Response:
    """Copy a session as it is; this one stays as it is."""
    made = await asyncio.to_thread(copy_whole, request.path_params["session_id"])
    book_of(request).relist()
    return answer({"session": made})


ROUTES = (
    PageRoute("/s/{session_id}/menu", _menu, Reach.SEE),
    PageRoute("/s/{session_id}/rename", _rename, Reach.WORK, methods=["POST"]),
    PageRoute("/s/{session_id}/pin", _pin, Reach.WORK, methods=["POST"]),
    PageRoute("/s/{session_id}/unpin", _unpin, Reach.WORK, methods=["POST"]),
    PageRoute("/s/{session_id}/archive", _archive, Reach.WORK, methods=["POST"]),
    PageRoute("/s/{session_id}/unarchive", _unarchive, Reach.WORK, methods=["POST"]),
    PageRoute("/s/{session_id}/delete", _delete, Reach.WORK, methods=["POST"]),
    PageRoute("/s/{session_id}/fork", _fork, Reach.WORK, methods=["POST"]),
)
