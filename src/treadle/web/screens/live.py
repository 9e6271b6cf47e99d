"""The screen of one session: what happens in it, and what a person says to it."""

import asyncio
import uuid
from typing import Any

from msgspec import Struct
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from treadle.app.compose import session_log, session_workspace
from treadle.protocol.events import Answer, Delivery, EditQueued, Interrupt, Prompt, SetMode
from treadle.protocol.messages import Image, Text, UserContent
from treadle.protocol.permissions import AllowScope, Mode, OptionKind
from treadle.web.book import PageSession
from treadle.web.entered import do_entered
from treadle.web.item_html import entry_html
from treadle.web.requests import answer, body_of, book_of, done, opened_session, visitor_of, whole_number
from treadle.web.templating import page as whole_page

_SHOWN = 120
"""Items that a page begins with, and that come with each look further back."""


async def _show(request: Request) -> Response:
    session_id = request.path_params["session_id"]
    opened = book_of(request).opened.get(session_id)
    view = opened.view if opened is not None else await asyncio.to_thread(book_of(request).past, session_id)
    title, workspace = await asyncio.to_thread(_named, session_id)
    entries = view.before(None, _SHOWN)
    return whole_page(
        request,
        "live.html",
        session_id=session_id,
        title=title,
        workspace=workspace,
        opened=opened is not None,
        own=opened is not None and opened.own,
        cursor=f"{view.run}.{view.version}",
        first=entries[0].position if entries else 0,
        entries=[entry_html(entry) for entry in entries],
        modes=list(Mode),
    )


async def _earlier(request: Request) -> Response:
    """Give the items before one."""
    session_id = request.path_params["session_id"]
    opened = book_of(request).opened.get(session_id)
    view = opened.view if opened is not None else await asyncio.to_thread(book_of(request).past, session_id)
    entries = view.before(whole_number(request.query_params.get("before", "")), _SHOWN)
    return HTMLResponse("".join(map(entry_html, entries)))


def _named(session_id: str) -> tuple[str, str]:
    with session_log(session_id) as (row, _):
        return row.title or row.id, row.workspace


class _Image(Struct):
    media_type: str
    data: str


class _Said(Struct):
    text: str = ""
    id: str = ""
    steer: bool = False
    images: tuple[_Image, ...] = ()


async def _say(request: Request) -> Response:
    """Send a message, or do a slash command; a session that nobody has open is opened for it."""
    said = await body_of(request, _Said)
    session = await _opened(request)
    shown, text = await do_entered(said.text, session, visitor_of(request).name)
    if text or said.images:
        content: tuple[UserContent, ...] = (
            *([Text(text=text)] if text else []),
            *(Image(media_type=one.media_type, data=one.data) for one in said.images),
        )
        delivery = Delivery.STEER if said.steer else Delivery.QUEUE
        prompt = Prompt(id=said.id or uuid.uuid4().hex, content=content, delivery=delivery)
        await session.post(prompt, visitor_of(request).name)
    return answer({"shown": shown})


async def _opened(request: Request) -> PageSession:
    session_id = request.path_params["session_id"]
    book = book_of(request)
    known = book.opened.get(session_id)
    if known is not None:
        return known
    workspace = await asyncio.to_thread(session_workspace, session_id)
    return await book.resume(session_id, await asyncio.to_thread(book.trust, workspace))


class _Answered(Struct):
    question_id: str
    option: OptionKind
    text: str = ""
    arguments: dict[str, Any] | None = None
    scope: AllowScope = AllowScope.SESSION


async def _answer(request: Request) -> Response:
    """Answer a question; the first answer counts, from wherever it comes."""
    said = await body_of(request, _Answered)
    op = Answer(
        question_id=said.question_id,
        option=said.option,
        text=said.text,
        arguments=said.arguments,
        scope=said.scope,
    )
    await opened_session(request).post(op, visitor_of(request).name)
    return done()


class _Chosen(Struct):
    mode: Mode | None = None
    model: str = ""
    dropped: str = ""


async def _change(request: Request) -> Response:
    """Change the mode or the model, or drop a message that waits."""
    chosen = await body_of(request, _Chosen)
    session, who = opened_session(request), visitor_of(request).name
    if chosen.mode is not None:
        await session.post(SetMode(mode=chosen.mode), who)
    if chosen.model:
        await session.post(session.session.choose(chosen.model), who)
    if chosen.dropped:
        await session.post(EditQueued(prompt_id=chosen.dropped), who)
    return done()


async def _interrupt(request: Request) -> Response:
    """Stop what is going on."""
    await opened_session(request).post(Interrupt(), visitor_of(request).name)
    return done()


async def _close(request: Request) -> Response:
    """Close a session of this process."""
    await book_of(request).close(request.path_params["session_id"])
    return done()


ROUTES = (
    Route("/s/{session_id}", _show),
    Route("/s/{session_id}/items", _earlier),
    Route("/s/{session_id}/say", _say, methods=["POST"]),
    Route("/s/{session_id}/answer", _answer, methods=["POST"]),
    Route("/s/{session_id}/change", _change, methods=["POST"]),
    Route("/s/{session_id}/interrupt", _interrupt, methods=["POST"]),
    Route("/s/{session_id}/close", _close, methods=["POST"]),
)
