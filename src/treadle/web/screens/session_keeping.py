"""What a person does with a whole session of the list: rename, archive, copy, export and delete it."""

import asyncio

from msgspec import Struct
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from treadle.app.history.session_export import export_session
from treadle.app.history.session_keeping import (
    archive_sessions,
    delete_session,
    find_session,
    rename_session,
    unarchive_session,
)
from treadle.app.slash.going_back import copy_whole
from treadle.web.requests import answer, body_of, book_of, done

_FORMATS = {"md": "text/markdown", "html": "text/html", "json": "application/jsonl"}


class _Name(Struct):
    name: str


async def _rename(request: Request) -> Response:
    """Give a session a name; an empty one gives it its first title again."""
    wanted = await body_of(request, _Name)
    row = await asyncio.to_thread(rename_session, request.path_params["session_id"], wanted.name)
    book_of(request).changed.set()
    return answer({"title": row.title})


async def _archive(request: Request) -> Response:
    """Archive a session that nobody has open."""
    session_id = request.path_params["session_id"]
    await asyncio.to_thread(lambda: archive_sessions([find_session(session_id)]))
    return done()


async def _unarchive(request: Request) -> Response:
    """List an archived session with the others again."""
    await asyncio.to_thread(unarchive_session, request.path_params["session_id"])
    return done()


async def _delete(request: Request) -> Response:
    """Delete a session that nobody has open, for good; the page has asked before."""
    session_id = request.path_params["session_id"]
    await asyncio.to_thread(lambda: delete_session(find_session(session_id)))
    return done()


async def _fork(request: Request) -> Response:
    """Copy a session as it is; this one stays as it is."""
    return answer({"session": await asyncio.to_thread(copy_whole, request.path_params["session_id"])})


async def _export(request: Request) -> Response:
    """Give a session as a file."""
    form = request.query_params.get("form", "md")
    if form not in _FORMATS:
        raise HTTPException(404, f"There is no format {form[:40]}. The formats are {', '.join(_FORMATS)}.")
    session_id = await asyncio.to_thread(lambda: find_session(request.path_params["session_id"]).id)
    whole = await asyncio.to_thread(lambda: b"".join(export_session(session_id, form)))
    named = f'attachment; filename="treadle-{session_id}.{form}"'
    return Response(whole, media_type=_FORMATS[form], headers={"content-disposition": named})


ROUTES = (
    Route("/s/{session_id}/rename", _rename, methods=["POST"]),
    Route("/s/{session_id}/archive", _archive, methods=["POST"]),
    Route("/s/{session_id}/unarchive", _unarchive, methods=["POST"]),
    Route("/s/{session_id}/delete", _delete, methods=["POST"]),
    Route("/s/{session_id}/fork", _fork, methods=["POST"]),
    Route("/s/{session_id}/export", _export),
)
