"""A shell of the person's own beside a session: in its folder, seen by no model, and on this computer alone."""

import asyncio

from msgspec import Struct
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from treadle.door.open_session import Reach
from treadle.door.opening import session_workspace
from treadle.web.own_shells import PageShell
from treadle.web.page_requests import body_of, book_of, done
from treadle.web.page_stream import PageStream
from treadle.web.rights import PageRoute

_MOST_CELLS = 1_000
_MOST_TYPED = 100_000


class _Size(Struct):
    columns: int
    rows: int

    def checked(self) -> tuple[int, int]:
        if not (0 < self.columns <= _MOST_CELLS and 0 < self.rows <= _MOST_CELLS):
            raise HTTPException(400, "No terminal has this size.")
        return self.columns, self.rows


class _Switch(Struct):
    on: bool


async def _switch(request: Request) -> Response:
    """Switch shells on as long as Treadle serves the page, or off again, which ends those that are open."""
    shells = book_of(request).shells
    if (await body_of(request, _Switch)).on:
        shells.on = True
    else:
        await shells.close()
    return done()


async def _open(request: Request) -> Response:
    """Open the shell of a session, or the one that is open; gives what it prints until it ends."""
    size = (await body_of(request, _Size)).checked()
    session_id = request.path_params["session_id"]
    folder = await asyncio.to_thread(session_workspace, session_id)
    shell = await book_of(request).shells.open(session_id, str(folder), *size)
    shell.resize(*size)
    return PageStream(shell.output(), media_type="application/octet-stream")


class _Typed(Struct):
    text: str


async def _type(request: Request) -> Response:
    """Type into a shell."""
    text = (await body_of(request, _Typed)).text
    if len(text) > _MOST_TYPED:
        raise HTTPException(413, f"At most {_MOST_TYPED:,} characters are typed in one go.")
    _shell(request).type(text)
    return done()


async def _resize(request: Request) -> Response:
    """Say how large the terminal of a shell is."""
    _shell(request).resize(*(await body_of(request, _Size)).checked())
    return done()


def _shell(request: Request) -> PageShell:
    return book_of(request).shells.find(request.path_params["session_id"])


ROUTES = (
    PageRoute("/shells", _switch, Reach.OWN_COMMANDS, methods=["POST"]),
    PageRoute("/s/{session_id}/shell", _open, Reach.OWN_COMMANDS, methods=["POST"]),
    PageRoute("/s/{session_id}/shell/type", _type, Reach.OWN_COMMANDS, methods=["POST"]),
    PageRoute("/s/{session_id}/shell/size", _resize, Reach.OWN_COMMANDS, methods=["POST"]),
)
