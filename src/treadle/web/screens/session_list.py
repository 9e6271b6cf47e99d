"""The screen that lists all sessions, and starts new ones."""

import asyncio
import uuid
from typing import Any

from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from treadle.app.compose import check_workspace
from treadle.app.reports.session_list import ListedSession, listed_sessions
from treadle.app.security.trusted_rules import allow_lines
from treadle.app.security.trusting import SessionTrust, shown_path, trust_lines, trust_store, whole_trust
from treadle.protocol.errors import ConfigError
from treadle.protocol.events import Prompt
from treadle.protocol.messages import Text
from treadle.protocol.permissions import Mode
from treadle.web.book import SessionBook
from treadle.web.requests import answer, body_of, book_of, folder_of, visitor_of
from treadle.web.templating import page


async def _show(request: Request) -> Response:
    rows = await asyncio.to_thread(listed_sessions, None)
    book = book_of(request)
    return page(
        request,
        "sessions.html",
        rows=rows,
        waiting={id_: len(one.questions) for id_, one in book.opened.items() if one.questions},
        folders=_folders(book, rows),
        modes=list(Mode),
    )


def _folders(book: SessionBook, rows: list[ListedSession]) -> list[str]:
    """Name the folders to choose from, the one of the command line first."""
    return list(dict.fromkeys([str(book.folder), *(row.workspace for row in rows)]))


class _Start(Struct):
    folder: str
    text: str
    mode: Mode | None = None
    model: str = ""
    trust: str = ""
    seen: str = ""


async def _start(request: Request) -> Response:
    """Start a session with its first message; before that, what the user says of the folder is asked for."""
    wanted = await body_of(request, _Start)
    if not wanted.text.strip():
        raise ConfigError("task-empty", "There is no message.", fix="Write what is to be done.")
    book = book_of(request)
    workspace = await asyncio.to_thread(check_workspace, folder_of(wanted.folder))
    trust = await asyncio.to_thread(book.trust, workspace)
    if trust.asks:
        asked = await asyncio.to_thread(_trust, book, trust, wanted)
        if isinstance(asked, dict):
            return answer({"trust": asked})
        trust = asked
    session = await book.start(book.opening(trust, mode=wanted.mode, model=wanted.model))
    prompt = Prompt(id=uuid.uuid4().hex, content=(Text(text=wanted.text),))
    await session.post(prompt, visitor_of(request).name)
    return answer({"session": session.session.id})


def _trust(book: SessionBook, trust: SessionTrust, wanted: _Start) -> SessionTrust | dict[str, Any]:
    """Go by what was said of a folder, as `treadle trust` does; one that changed meanwhile is asked about again."""
    shown = whole_trust(trust.workspace)
    lines = [*trust_lines(shown), *allow_lines(shown)] or ["  It has no rules, settings, servers or hooks."]
    seen = uuid.uuid5(uuid.NAMESPACE_OID, "\n".join(lines)).hex
    if wanted.trust not in ("always", "once", "later", "never") or wanted.seen != seen:
        return {"folder": shown_path(str(trust.workspace)), "lines": lines, "seen": seen, "again": bool(shown.changed)}
    match wanted.trust:
        case "always":
            trust_store().grant(shown)
        case "never":
            trust_store().refuse(shown)
        case "once":
            book.trust_once(trust.workspace)
        case _:
            return trust
    return book.trust(trust.workspace)


ROUTES = (
    Route("/", _show),
    Route("/sessions", _start, methods=["POST"]),
)
