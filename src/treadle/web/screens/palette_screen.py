"""What the palette finds: sessions, screens and settings. Files and what can be done here the browser finds itself."""

import asyncio
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from treadle.door.open_session import Reach
from treadle.door.settings import SettingRow, read_layers, setting_rows
from treadle.protocol.errors import TreadleError
from treadle.web.navigation import SCREENS, SESSION_SCREENS, SETTINGS_SCREENS
from treadle.web.page_requests import answer, book_of
from treadle.web.rights import PageRoute
from treadle.web.screens.settings_rows import NAMED
from treadle.web.session_rows import ListFilter, page_rows


async def _found(request: Request) -> Response:
    """Give all that can be gone to, sessions first, the last used ones first."""
    session_id = request.query_params.get("session", "")

    def rows() -> list[dict[str, Any]]:
        sessions = page_rows(book_of(request), ListFilter()).lines
        found = [_row("Session", one.title, f"{one.project} · {one.words}", f"/s/{one.id}") for one in sessions]
        if session_id:
            found += [
                _row("Go to", one.title, "", f"/s/{session_id}{one.path}", key=one.key) for one in SESSION_SCREENS
            ]
        found += [_row("Go to", one.title, "", one.path, key=one.key) for one in SCREENS]
        known = {one.path for one in SCREENS}
        found += [_row("Go to", title, "Settings", path) for path, title in SETTINGS_SCREENS if path not in known]
        try:
            settings = setting_rows(read_layers({}))
        except TreadleError:  # the screen of the settings says what is wrong with them
            return found
        return found + [_of_setting(one) for one in settings]

    return answer(await asyncio.to_thread(rows))


def _of_setting(row: SettingRow) -> dict[str, Any]:
    """Lead to a setting: its row in words, where it has one."""
    name, path = NAMED.get(row.key, ("", f"/settings#k-{row.key}"))
    return _row("Setting", ": ".join(filter(None, (name, row.about))) or row.key, row.key, path)


def _row(kind: str, title: str, about: str, path: str, *, key: str = "") -> dict[str, Any]:
    return {"kind": kind, "title": title, "about": about, "path": path, "key": f"g {key}" if key else ""}


ROUTES = (PageRoute("/palette", _found, Reach.SEE),)
