"""The files of a session: those that a message can name, to be looked at, with what it changed in them."""

import asyncio
import os
import posixpath
from pathlib import Path

from msgspec import Struct
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from treadle.door.message_parts import written_path
from treadle.door.open_session import Reach
from treadle.door.opening import session_log
from treadle.door.past import Points
from treadle.door.program import own_editor
from treadle.door.reports import project_lines, project_path
from treadle.door.review import open_review
from treadle.door.trust import SessionTrust
from treadle.protocol.errors import ConfigError, TreadleError
from treadle.web.changed_lines import LineColours, line_html
from treadle.web.page_requests import body_of, book_of, done, page_session_trust
from treadle.web.rights import PageRoute
from treadle.web.templating import render

_MOST_LISTED = 500


async def _list(request: Request) -> Response:
    """Give the files and folders of a folder, or those that are found by some of their characters."""
    asked = request.query_params
    trust = await page_session_trust(request)
    folder, find = asked.get("folder", ""), asked.get("find", "").strip()[:200]
    files, root = book_of(request).files, str(trust.workspace)
    if find:
        found = await files.find(root, find, trusted=trust.trusted)
    else:
        found = await files.inside(root, folder, trusted=trust.trusted)
    rows = [
        {"path": path, "is_folder": path.endswith("/"), "name": path if find else path.removeprefix(folder)}
        for path in found[:_MOST_LISTED]
    ]
    return HTMLResponse(render("file_list.html", rows=rows, folder=folder, find=find, more=len(found) - len(rows)))


async def _show(request: Request) -> Response:
    """Give a file with its colours; the lines that the session added are marked."""
    session_id, path = request.path_params["session_id"], request.query_params.get("path", "")
    trust = await page_session_trust(request)
    await _require_listed(request, trust, path)
    return HTMLResponse(await asyncio.to_thread(_rendered, session_id, path, trust))


async def _require_listed(request: Request, trust: SessionTrust, path: str) -> None:
    if not await book_of(request).files.has(str(trust.workspace), path, trusted=trust.trusted):
        raise ConfigError("file-not-shown", "There is no such file to show.", fix="Choose one of the list.")


class _File(Struct):
    file: str


async def _edit(request: Request) -> Response:
    """Open a file in the person's own editor, on this computer."""
    path, trust = (await body_of(request, _File)).file, await page_session_trust(request)
    await _require_listed(request, trust, path)

    def opened() -> None:
        editor = own_editor(os.environ, trust.workspace)
        if editor is None:
            fix = "Install one that opens a window, or set VISUAL to it."
            raise ConfigError("editor", "No editor was found to open the file in.", fix=fix)
        editor.open(Path(project_path(str(trust.workspace), path, trusted=trust.trusted)))

    await asyncio.to_thread(opened)
    return done()


def _rendered(session_id: str, path: str, trust: SessionTrust) -> str:
    lines = project_lines(str(trust.workspace), path, trusted=trust.trusted)
    colours = LineColours().of(path, lines)
    shown = [line_html(line, colours[at] if at < len(colours) else ()) for at, line in enumerate(lines)]
    folder, name = posixpath.split(path)
    added = _added(session_id, path)
    return render(
        "file_shown.html",
        path=path,
        name=name,
        folder=f"{folder}/" if folder else "",
        lines=shown[:-1] if lines[-1] == "" else shown,
        added=added or (),
        unknown=added is None,
        written=written_path(path),
        editor=own_editor(os.environ, trust.workspace),
    )


def _added(session_id: str, path: str) -> frozenset[int] | None:
    """Give the numbers of the lines that the session added; None where that is not known."""
    try:
        with session_log(session_id) as (row, store):
            review = open_review(store, row)
            if review is None:
                return None if Points(store, row.id).unkept() else frozenset()
            try:
                known = {file.path for file in review.files if file.own}
                hunks = review.hunks(review.file(path)) if path in known else ()
                return frozenset(
                    number for one in hunks for number in range(one.new_first, one.new_first + len(one.new))
                )
            finally:
                review.close()
    except TreadleError:
        return None


ROUTES = (
    PageRoute("/s/{session_id}/files", _list, Reach.SEE),
    PageRoute("/s/{session_id}/file", _show, Reach.SEE),
    PageRoute("/s/{session_id}/file/open", _edit, Reach.OWN_COMMANDS, methods=["POST"]),
)
