"""What the page sends, and how its requests are answered."""

import asyncio
import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.status import HTTP_404_NOT_FOUND

from treadle.door.opening import session_workspace
from treadle.door.program import write_log
from treadle.door.trust import SessionTrust
from treadle.present.escape import printable
from treadle.present.words import clip_text
from treadle.protocol.errors import ConfigError, RefusedError, SessionError, TreadleError
from treadle.web.book import SessionBook
from treadle.web.markup import without_commands
from treadle.web.page_frame import PageColumn, page_look, whole_column
from treadle.web.page_keys import Visitor
from treadle.web.page_session import PageSession
from treadle.web.templating import common, render

_T = TypeVar("_T")

_WAYS: Mapping[str, tuple[str, str]] = {
    "aws": ("Open the providers", "/settings/providers"),
    "config": ("Open the settings", "/settings"),
    "key": ("Enter a key", "/settings/providers"),
    "mcp": ("Open the servers", "/settings/servers"),
    "model": ("Choose another model", "/settings/models"),
    "provider": ("Open the providers", "/settings/providers"),
    "rule": ("Open the rules", "/settings/rules"),
    "rules": ("Open the rules", "/settings/rules"),
}
"""By the first word of an error's code, what leads on: the words of a button, and where it goes."""

_HERE: Mapping[str, str] = {
    "checkpoint-unknown": "Choose a step of its timeline.",
    "model-unknown": "Choose one of those in Settings, Models.",
    "session-unknown": "Choose one of All sessions, in the column. What you were writing is under New session.",
}
"""By an error's code, what to do on the page, where its own words name a command of the terminal."""


async def body_of(request: Request, kind: type[_T]) -> _T:
    """Read the body of a request; raises `HTTPException`."""
    try:
        return msgspec.json.decode(await request.body(), type=kind)
    except ClientDisconnect as error:
        raise HTTPException(400, "The request ended in its middle.") from error
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise HTTPException(400, f"The request cannot be read: {error}") from error


def answer(value: object, *, status: int = 200) -> Response:
    """Answer with JSON."""
    return Response(msgspec.json.encode(value), status_code=status, media_type="application/json")


async def page(request: Request, template: str, /, *, status: int = 200, **values: Any) -> HTMLResponse:
    """Answer with a whole page: what is asked for, with the column of all sessions beside it."""
    session_id = request.path_params.get("session_id", "")
    known = request.scope["state"]["visitor"] is not None  # whoever was not let in sees no session
    look = page_look(request.cookies)
    column = PageColumn()
    if known:
        if session_id:
            await book_of(request).look_closed(session_id)
        column = await asyncio.to_thread(whole_column, book_of(request), session_id, look=look)
    frame = {"column": column, "look": look}
    return HTMLResponse(render(template, **common(request), **frame, **values), status_code=status)


def done() -> Response:
    """Answer that something was done."""
    return answer({})


def book_of(request: Request) -> SessionBook:
    """Give the sessions."""
    book = request.app.state.book
    assert isinstance(book, SessionBook)  # noqa: S101 - the application has put it there
    return book


def visitor_of(request: Request) -> Visitor:
    """Give who sends a request."""
    visitor = request.scope["state"]["visitor"]
    assert isinstance(visitor, Visitor)  # noqa: S101 - the guard has put it there
    return visitor


def opened_session(request: Request) -> PageSession:
    """Find the session that a request is about among those that are open; raises `SessionError`."""
    session_id = request.path_params["session_id"]
    opened = book_of(request).find(session_id)
    if opened is None:
        raise SessionError(
            "session-not-open", f"Session {printable(session_id)} is not open.", fix="Send a message to continue it."
        )
    opened.touch()
    return opened


async def page_session_trust(request: Request) -> SessionTrust:
    """Say how the folder of the session that a request is about stands; raises `TreadleError`."""
    session_id = request.path_params["session_id"]
    opened = book_of(request).find(session_id)
    if opened is not None:
        return opened.session.trust
    workspace = await asyncio.to_thread(session_workspace, session_id)
    return await asyncio.to_thread(book_of(request).trust, workspace)


def folder_of(text: str) -> Path:
    """Read the path of a folder as a person wrote it; raises `ConfigError`."""
    try:
        folder = Path(text).expanduser()
        folder.exists()
    except (ValueError, RuntimeError, OSError) as error:
        what = f"There is no folder {printable(clip_text(text, 200))} to work in."
        raise ConfigError("workspace-missing", what, why=str(error), fix="Name an existing folder.") from error
    return folder


def whole_number(text: str) -> int | None:
    """Read a number of a position or version; None for anything else."""
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 20 else None


async def refusal_answer(request: Request, error: Exception) -> Response:
    """Say what went wrong: what, why, and what to do. As a page to whoever wanted one."""
    assert isinstance(error, TreadleError)  # noqa: S101 - it is registered for these
    match error:
        case RefusedError():
            status = 409
        case ConfigError():
            status = 400
        case SessionError():
            status = 404
        case _:
            status = 500
    said = {name: printable(getattr(error, name)) for name in ("code", "what", "why", "fix")}
    said["fix"] = without_commands(_HERE.get(error.code, said["fix"]))
    words, path = _WAYS.get(said["code"].partition("-")[0], ("", ""))
    return await _problem(request, {**said, "way": words, "path": path}, status)


def wants_page(request: Request) -> bool:
    """Whether a person opened this address, so that the answer is a page also where something is wrong."""
    return request.method == "GET" and "text/html" in request.headers.get("accept", "")


async def file_error_answer(request: Request, error: Exception) -> Response:
    """Say what the disk refused; where that was goes to the program's log."""
    write_log("".join(traceback.format_exception(error)))
    fix = "Check the disk and its permissions. The program's log says where it was."
    said = {"code": "file", "what": "A file could not be read or written.", "why": printable(str(error)), "fix": fix}
    return await _problem(request, said, 500)


async def not_served(request: Request, error: Exception) -> Response:
    """Say why a request is not served."""
    assert isinstance(error, HTTPException)  # noqa: S101 - it is registered for these
    what = "There is no such page." if error.status_code == HTTP_404_NOT_FOUND else printable(error.detail)
    return await _problem(request, {"code": "http", "what": what, "why": "", "fix": ""}, error.status_code)


async def _problem(request: Request, told: dict[str, str], status: int) -> Response:
    said = {"way": "", "path": "", **told}
    if wants_page(request):
        return await page(request, "problem.html", status=status, problem=said)
    return JSONResponse(said, status_code=status)
