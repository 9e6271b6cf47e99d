"""The page without a browser: the application over a home with one session, and requests such as its page sends."""

import asyncio
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from httpx2 import Response
from starlette.testclient import TestClient

from tests.e2e.faults.driving import make, run
from tests.e2e.process import Program
from tests.e2e.running import model
from treadle.protocol.usage import Usage
from treadle.providers.scripted.script import SayText, Script, Turn
from treadle.providers.scripted.scripted_server import ScriptedServer
from treadle.store.sqlite import Store
from treadle.web.application import web_application
from treadle.web.book import SessionBook
from treadle.web.page_keys import Keys
from treadle.web.page_session import PageSession

SECRET = "sk-ant-api03-" + "a1B2c3D4e5" * 9
HOSTILE = '<script>window.pwned = 1</script><img src=x onerror="pwned()">'
HOST = "127.0.0.1:7777"
MODEL = "anthropic-compatible/scripted"


def _used(new: int, cached: int) -> Usage:
    return Usage(input_tokens=new, output_tokens=100, cache_read_tokens=cached, cache_write_tokens=new)


TURNS = (
    Turn(items=(SayText(text=f"I look at {HOSTILE}"), make("read_file", path="README.md")), usage=_used(9_000, 0)),
    Turn(items=(make("write_to_file", path="a.txt", content="one\n"),), usage=_used(500, 9_000)),
    Turn(items=(run(f"echo {SECRET}"),), usage=_used(600, 9_500)),
    Turn(items=(make("attempt_completion", result="All done."),), usage=_used(700, 10_000)),
)


@dataclass(frozen=True)
class Recorded:
    """A home with one session in it, which worked in `folder`."""

    home: Path
    folder: Path
    session: str


def record(place: Path) -> Recorded:
    """Let a session work in mode edits with nobody to ask, so that its command is denied."""
    home, folder = place / "home", place / "ws"
    folder.mkdir()
    (folder / "README.md").write_text(f"# Shop {HOSTILE}\n")
    home.mkdir()
    prices = "input_price = 3.0\noutput_price = 15.0\ncontext_window = 200000\n"
    (home / "config.toml").write_text(f'# mine\n[budget]\nday_cost = 2.0\n\n[models."{MODEL}"]\n{prices}')

    async def work() -> None:
        async with ScriptedServer(Script(turns=TURNS)) as server:
            task = f"Read {HOSTILE} and write."
            ended = await Program(home).run("-p", task, *model(server), "--mode", "edits", "-C", str(folder))
            assert "All done." in ended.out, ended.err

    asyncio.run(work())
    store = Store(home / "sessions.db")
    try:
        (row,) = store.sessions()
    finally:
        store.close()
    return Recorded(home, folder.resolve(), row.id)


@dataclass
class Visit:
    """A browser that was let in."""

    client: TestClient
    book: SessionBook
    keys: Keys
    recorded: Recorded

    def get(self, path: str, accept: str = "text/html") -> Response:
        """Load a page, or what a page loads."""
        return self.client.get(self.keys.base + path.replace("ID", self.recorded.session), headers={"accept": accept})

    def text(self, path: str) -> str:
        """Load what must be there."""
        found = self.get(path)
        assert found.status_code == 200, found.text
        assert HOSTILE not in found.text
        return found.text

    def post(self, path: str, **body: Any) -> Response:
        """Send what a form sends."""
        path = path.replace("ID", self.recorded.session)
        return self.client.post(self.keys.base + path, json=body, headers={"origin": f"http://{HOST}"})

    def done(self, path: str, **body: Any) -> Mapping[str, Any]:
        """Send what must work."""
        found = self.post(path, **body)
        assert found.status_code == 200, found.text
        answer: Mapping[str, Any] = found.json()
        return answer

    @contextmanager
    def opened(self) -> Iterator[PageSession]:
        """Open the session in the application's loop; it is closed with the block."""
        portal = self.client.portal
        assert portal is not None
        page = portal.call(self.book.resume, self.recorded.session, self.book.trust(self.recorded.folder))
        try:
            yield page
        finally:
            portal.call(self.book.close, self.recorded.session)


NEAR = ("127.0.0.1", 50_000)


@contextmanager
def visiting(recorded: Recorded, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Visit]:
    """Serve a copy of the home to one visitor."""
    home = tmp_path / "home"
    shutil.copytree(recorded.home, home)
    monkeypatch.setenv("TREADLE_HOME", str(home))
    for name in ("ANTHROPIC_API_KEY", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    book, keys = SessionBook(recorded.folder, {"model": MODEL, "base_url": "http://127.0.0.1:9"}), Keys()
    application, _ = web_application(book, keys, [HOST], cookie="treadle")
    entrance = keys.let_in(keys.token)
    assert entrance is not None
    with TestClient(
        application, base_url=f"http://{HOST}", cookies={"treadle": entrance.cookie}, client=NEAR
    ) as client:
        client.headers["x-treadle-key"] = entrance.key
        yield Visit(client, book, keys, Recorded(home, recorded.folder, recorded.session))
