"""What a session changed in a copy of a folder is brought into that folder on the page, and taken back."""

import asyncio

from starlette.requests import Request
from starlette.responses import Response

from treadle.door.history import TakenChanges, take_changes, undo_taken
from treadle.door.open_session import Reach
from treadle.present.restored_words import files_back
from treadle.present.words import counted
from treadle.protocol.errors import SessionError
from treadle.web.page_requests import answer, book_of
from treadle.web.rights import PageRoute


async def _take(request: Request) -> Response:
    """Bring the changes into the folder; the session is closed for that, and can be continued."""
    session_id, book = request.path_params["session_id"], book_of(request)
    opened = book.find(session_id)
    if opened is not None and (opened.session.status.turn_active or not opened.own):
        raise SessionError("copy-busy", "The session still works.", fix="Wait for its end, or stop it first.")
    await book.close(session_id)
    done = await asyncio.to_thread(take_changes, session_id)
    if not (done.files or done.left):
        return answer({"said": "The folder has all of it already."})
    return answer({"said": _said(f"{counted(len(done.files), 'file')} taken", done)})


async def _undo(request: Request) -> Response:
    """Take that back."""
    done = await asyncio.to_thread(undo_taken, request.path_params["session_id"])
    return answer({"said": _said(files_back(done.files, done.removed), done)})


def _said(what: str, done: TakenChanges) -> str:
    return " ".join([f"{what}.", *done.left])


ROUTES = (
    PageRoute("/s/{session_id}/copy/take", _take, Reach.WORK, methods=["POST"]),
    PageRoute("/s/{session_id}/copy/undo", _undo, Reach.WORK, methods=["POST"]),
)
