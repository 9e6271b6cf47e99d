"""The screen that makes a file of a session to give away. Nothing leaves the machine by itself."""

import asyncio
from functools import partial

from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from treadle.door.history import FORMS, SharedFile, SharePreview, make_shared_file, preview_share
from treadle.door.open_session import Reach
from treadle.protocol.errors import ConfigError
from treadle.web.page_requests import page
from treadle.web.rights import PageRoute
from treadle.web.templating import common, render

_MOST_DIGITS = 6
_TITLES = {"html": "one HTML page", "md": "Markdown", "json": "JSON lines, all of it, for treadle import"}


def _turn_of(request: Request) -> int:
    said = request.query_params.get("turn", "") or "1"
    if not said.isdecimal() or len(said) > _MOST_DIGITS:
        raise ConfigError("export-part", f"{said[:40]!r} is not a turn.", fix="Write the number of a turn.")
    return int(said)


async def _show(request: Request) -> Response:
    session_id, turn = request.path_params["session_id"], _turn_of(request)
    form = request.query_params.get("form", "html")
    found: SharePreview = await asyncio.to_thread(preview_share, session_id, turn=turn)
    return await page(
        request,
        "share.html",
        session_id=found.id,
        title=found.title,
        turns=found.turns,
        turn=turn,
        form=form if form in FORMS else "html",
        forms=_TITLES,
        preview=Markup(found.html),  # noqa: S704 - every text in it was escaped by the export
        whole=found.whole,
    )


def _file(request: Request, *, redact: bool = True) -> SharedFile:
    form = request.query_params.get("form", "html")
    # JSON is the log itself, all of it.
    turn = 1 if form == "json" else _turn_of(request)
    return make_shared_file(request.path_params["session_id"], form, turn=turn, redact=redact)


async def _export(request: Request) -> Response:
    """Give the file as `treadle export` writes it: as JSON with all that the log has."""
    return _download(await asyncio.to_thread(partial(_file, request, redact=False)))


async def _shared(request: Request) -> Response:
    """Give the file; nothing keeps it but whoever asked for it."""
    return _download(await asyncio.to_thread(_file, request))


def _download(made: SharedFile) -> Response:
    headers = {"content-disposition": f'attachment; filename="{made.name}"', "cache-control": "no-store"}
    return Response(made.content, media_type=made.media_type, headers=headers)


async def _hidden(request: Request) -> Response:
    """Say how large the file is, and what is hidden in it, with where it is downloaded."""
    made = await asyncio.to_thread(_file, request)
    asked = {
        "form": request.query_params.get("form", "html"),
        "turn": _turn_of(request),
        "session_id": request.path_params["session_id"],
    }
    return HTMLResponse(render("share_hidden.html", **common(request), file=made, **asked))


ROUTES = (
    PageRoute("/s/{session_id}/share", _show, Reach.SEE),
    PageRoute("/s/{session_id}/share/file", _shared, Reach.SEE),
    PageRoute("/s/{session_id}/export", _export, Reach.SEE),
    PageRoute("/s/{session_id}/share/hidden", _hidden, Reach.SEE),
)
