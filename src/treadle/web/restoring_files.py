"""Restoring in a session from the page: by the process that has it open, or here where none has."""

from typing import Any

from starlette.requests import Request

from treadle.door.history import WentBack, go_back
from treadle.door.opening import session_workspace
from treadle.present.restored_words import files_back
from treadle.protocol.checkpoints import Restore
from treadle.web.page_requests import book_of, visitor_of


async def restore_in(request: Request, wanted: Restore, *, seen: int = 0) -> WentBack:
    """Bring back what is wanted, unless the session has worked since the event `seen`; raises `TreadleError`."""
    session_id = request.path_params["session_id"]
    opened = book_of(request).find(session_id)
    who = visitor_of(request)

    async def post(op: Restore) -> None:
        assert opened is not None  # noqa: S101 - else nobody calls this
        await opened.post(op, who)

    return await go_back(session_id, wanted, None if opened is None else post, seen=seen)


def went_back_words(session_id: str, went: WentBack) -> dict[str, Any]:
    """Say what was restored, with paths as seen from the folder of the session, and how that is undone."""
    result, undo = went.result, went.undo
    folder = f"{session_workspace(session_id)}/"
    files = [one.removeprefix(folder) for one in (*result.written, *result.removed)]
    back = files_back(result.written, result.removed)
    return {
        "said": "The conversation is restored." if undo.conversation and not files else f"{back}.",
        "files": files,
        "conflicts": [f"{one.path.removeprefix(folder)}: {one.why}" for one in result.conflicts],
        "error": result.error,
        "undo": {
            "checkpoint": undo.checkpoint,
            "files": undo.files,
            "conversation": undo.conversation,
            "to": undo.to,
            "seen": went.seen,
        },
    }
