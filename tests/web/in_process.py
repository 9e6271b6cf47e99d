"""The page without a browser: the application in this process, sessions that work in it, and requests to it."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import httpx2
import pytest

from treadle.protocol.permissions import Question
from treadle.providers.scripted.player import Plays
from treadle.providers.scripted.script import Script, Turn
from treadle.providers.scripted.scripted_server import ScriptedServer
from treadle.web.application import web_application
from treadle.web.book import SessionBook
from treadle.web.closing import UNUSED_SECONDS
from treadle.web.page_keys import Entrance, Keys
from treadle.web.page_session import PageSession
from treadle.web.request_guard import PageGuard

PATIENCE = 90.0
HOST = "127.0.0.1:8000"


class Visit:
    """A browser as its requests are."""

    def __init__(self, application: PageGuard, entrance: Entrance | None, base: str) -> None:
        assert entrance is not None
        self._client = httpx2.AsyncClient(
            transport=httpx2.ASGITransport(app=application),
            base_url=f"http://{HOST}{base}",
            headers={
                "cookie": f"page={entrance.cookie}",
                "sec-fetch-site": "same-origin",
                "x-treadle-key": entrance.key,
            },
        )

    async def get(self, path: str) -> str:
        """Read something that is there."""
        answer = await self._client.get(path)
        assert answer.status_code == 200, answer.text
        return answer.text

    async def look(self, path: str) -> tuple[int, str]:
        """Open a page as a person does; gives the status and the page."""
        answer = await self._client.get(path, headers={"accept": "text/html", "sec-fetch-mode": "navigate"})
        return answer.status_code, answer.text

    async def post(self, path: str, /, **body: Any) -> tuple[int, Any]:
        """Ask for something; gives the status and the answer."""
        headers = {"origin": f"http://{HOST}", "content-type": "application/json"}
        answer = await self._client.post(path, content=json.dumps(body), headers=headers)
        return answer.status_code, answer.json()

    async def done(self, path: str, /, **body: Any) -> Any:
        """Ask for something that is done."""
        status, said = await self.post(path, **body)
        assert status == 200, said
        return said


@dataclass
class Here:
    """The application, and who visits it."""

    book: SessionBook
    application: PageGuard
    keys: Keys
    server: ScriptedServer
    folder: Path

    def visit(self) -> Visit:
        """Let another browser in."""
        return Visit(self.application, self.keys.let_in(self.keys.token), self.keys.base)

    async def start(self, visit: Visit, text: str = "Work.") -> PageSession:
        """Start a session."""
        said = await visit.done("/sessions", folder=str(self.folder), text=text)
        return self.book.opened[said["session"]]

    async def asked(self, page: PageSession, *, about: str = "") -> Question:
        """Wait for a question."""
        await until(page, lambda: any(about in one.text or about in str(one.arguments) for one in page.questions))
        return next(one for one in page.questions if about in one.text or about in str(one.arguments))


async def until(page: PageSession, true: Callable[[], bool]) -> None:
    """Wait until something is true of a session's page."""
    event = asyncio.Event()
    with page.changed.notifying(event):
        async with asyncio.timeout(PATIENCE):
            while not true():
                await event.wait()
                event.clear()


async def idle(page: PageSession) -> None:
    """Wait for the end of a turn."""
    await until(page, lambda: page.content.view.stop is not None and not page.session.status.turn_active)


@asynccontextmanager
async def page_here(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    turns: Sequence[Turn] | Plays,
    *,
    trust: bool = True,
    unused: float = UNUSED_SECONDS,
    **settings: Any,
) -> AsyncIterator[Here]:
    """The page in this process, with a scripted model behind it."""
    monkeypatch.setenv("TREADLE_HOME", str(tmp_path / "home"))
    folder = tmp_path / "ws"
    folder.mkdir(exist_ok=True)
    plays = Script(turns=tuple(turns)) if isinstance(turns, Sequence) else turns
    async with ScriptedServer(plays) as server:
        flags = {"model": "anthropic-compatible/scripted", "base_url": server.base_url, "try_first": False, **settings}
        keys = Keys()
        async with SessionBook(folder, flags, trust=trust, unused=unused) as book:
            application, _ = web_application(
                book, keys, [HOST], cookie="page", clock=map(float, count()).__next__
            )  # requests are a second apart
            yield Here(book, application, keys, server, folder)
