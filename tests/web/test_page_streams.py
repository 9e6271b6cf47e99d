"""Every answer of the page that goes on ends with the rights of the browser that it is sent to, and with no other."""

import asyncio
import json
import threading
from collections.abc import AsyncIterator
from pathlib import Path

import httpx2
import pytest

from tests.web.asking import PATIENCE, Asked, asked
from treadle.app.reports.doctor_checks import Check, ok
from treadle.web import application, page_stream
from treadle.web.screens import health_screen, shell_screen

STREAMS = (
    ("GET", "/events", ""),
    ("POST", "/s/x/shell", '{"columns": 80, "rows": 24}'),
    ("POST", "/health/check", "{}"),
)
SOURCE = Path(application.__file__).parent


@pytest.fixture
async def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Asked]:
    over = threading.Event()

    async def examine(*, offline: bool) -> AsyncIterator[Check]:
        yield ok("first", str(offline))
        while not over.is_set():
            await asyncio.sleep(0.01)

    monkeypatch.setenv("SHELL", "/bin/sh")
    monkeypatch.setattr(health_screen, "examine", examine)
    monkeypatch.setattr(shell_screen, "session_workspace", lambda _: tmp_path)
    async with asked(tmp_path / "home", monkeypatch) as found:
        found.book.shells.on = True
        try:
            yield found
        finally:
            over.set()


def test_these_are_all_answers_that_go_on_and_all_end_in_one_place() -> None:
    sources = {one: one.read_text() for one in SOURCE.rglob("*.py") if "service" not in one.parts}
    begun = sum(text.count("PageStream(") for text in sources.values())
    assert begun - 1 == len(STREAMS), "each has a row here"
    others = [one for one, text in sources.items() if "StreamingResponse" in text or "FileResponse" in text]
    assert others == [Path(page_stream.__file__)]


async def test_what_is_said_of_a_shell_leads_to_no_page_where_nothing_can_be_done(server: Asked) -> None:
    server.book.shells.on = False
    entrance = server.enter()
    for path, body in (("/s/x/shell", {"columns": 80, "rows": 24}), ("/s/x/shell/type", {"text": "x"})):
        said = json.loads((await server.ask(path, entrance, method="POST", body=body)).text)
        assert ("under Terminal" in said["fix"], said["way"], said["path"]) == (True, "", "")


@pytest.mark.parametrize(("method", "path", "body"), STREAMS)
async def test_a_browser_that_is_shut_out_hears_no_more_whatever_it_listens_to(
    server: Asked, method: str, path: str, body: str
) -> None:
    mine, other = server.enter(), server.enter()
    async with server.client(mine) as client, server.client(other) as second:
        async with client.stream(method, path, content=body) as stream:
            assert stream.status_code == 200
            pieces = stream.aiter_bytes()
            await anext(pieces)
            server.keys.rename("browser 1", "mine")
            server.keys.shut_out("browser 2")
            if path == "/events":
                assert await anext(pieces), "a browser with another name is the same one"
            server.keys.shut_out("mine")
            server.enter()  # whoever comes next may be called as it was
            async with asyncio.timeout(PATIENCE):
                async for _ in pieces:
                    pass
        with pytest.raises(httpx2.HTTPStatusError):
            (await second.get("/inbox")).raise_for_status()
