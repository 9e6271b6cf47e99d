"""What the palette finds: sessions, screens, settings and files. What can be done here the browser finds itself."""

import asyncio
from typing import Any
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import Response

from treadle.door.open_session import Reach
from treadle.door.settings import SettingRow, read_layers, setting_rows
from treadle.protocol.errors import TreadleError
from treadle.web.navigation import SCREENS, SESSION_SCREENS, SETTINGS_SCREENS, PageScreen
from treadle.web.page_requests import answer, book_of, page_session_trust
from treadle.web.rights import PageRoute
from treadle.web.screens.settings_rows import NAMED
from treadle.web.session_rows import ListFilter, page_rows
from treadle.web.templating import render

_WHAT_FOR = {
    "/review": "Look at the changes, accept, reject and comment them",
    "/timeline": "Compare, undo, restore and fork from a step",
    "/context": "What the model reads",
    "/replay": "Once more with another model",
    "/agents": "What works beside it",
    "/share": "Export without what is secret",
    "/policy": "What is allowed here, for a session and always",
    "/usage": "Money and tokens",
    "/devices": "Pair a phone, sign out",
    "/settings/notifications": "Notify me in this browser, with sound",
}
"""What is done on screens whose names do not say it."""


async def _found(request: Request) -> Response:
    """Give all that can be gone to, sessions first, the last used ones first."""
    session_id = request.query_params.get("session", "")

    def rows() -> list[dict[str, Any]]:
        sessions = page_rows(book_of(request), ListFilter()).lines
        signs = {state: render("sign.html", state=state).strip() for state in {one.sign for one in sessions}}
        found = [
            {
                **_row("Session", one.title, one.project, f"/s/{one.id}"),
                "words": one.words,
                "drawn": signs[one.sign],
            }
            for one in sessions
        ]
        if session_id:
            found += [_screen(one, f"/s/{session_id}") for one in SESSION_SCREENS]
        found += [_screen(one) for one in SCREENS]
        known = {one.path for one in SCREENS}
        found += [_screen(PageScreen(*one, key="")) for one in SETTINGS_SCREENS if one[0] not in known]
        try:
            settings = setting_rows(read_layers({}))
        except TreadleError:  # the screen of the settings says what is wrong with them
            return found
        return found + [_of_setting(one) for one in settings]

    return answer(await asyncio.to_thread(rows))


async def _named(request: Request) -> Response:
    """Give the files of a session's folder that are found by some of their characters."""
    trust, words = await page_session_trust(request), request.query_params.get("words", "").strip()[:200]
    found = await book_of(request).files.find(str(trust.workspace), words, trusted=trust.trusted)
    at = f"/s/{request.path_params['session_id']}#file="
    return answer([_row("File", path, "", at + quote(path, safe="")) for path in found if not path.endswith("/")])


def _screen(screen: PageScreen, of: str = "") -> dict[str, Any]:
    """Lead to a screen, or with a path before its own to one of a session."""
    words = ("Settings" if screen.path.startswith("/settings") else "", _WHAT_FOR.get(screen.path, ""))
    return _row("Go to", screen.title, " · ".join(filter(None, words)), f"{of}{screen.path}", key=screen.key)


def _of_setting(row: SettingRow) -> dict[str, Any]:
    """Lead to a setting: its row in words, where it has one."""
    name, path = NAMED.get(row.key, ("", f"/settings#k-{row.key}"))
    return _row("Setting", ": ".join(filter(None, (name, row.about))) or row.key, row.key, path)


def _row(kind: str, title: str, about: str, path: str, *, key: str = "") -> dict[str, Any]:
    return {"kind": kind, "title": title, "about": about, "path": path, "key": f"g {key}" if key else ""}


ROUTES = (PageRoute("/palette", _found, Reach.SEE), PageRoute("/s/{session_id}/named", _named, Reach.SEE))
