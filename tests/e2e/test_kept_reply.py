"""kill -9 while a model writes: what it had written can be read, and is asked for once more when that goes on."""

import asyncio
import signal
from pathlib import Path

from tests.e2e.process import Program
from tests.e2e.test_kill import events_of, flags
from treadle.protocol.events import ReplyPart
from treadle.providers.scripted.script import Pace, SayText, Script, Turn
from treadle.providers.scripted.scripted_server import ScriptedServer
from treadle.store.sqlite import Store

STORY = "It began in the winter, when nobody went out. " * 4
SLOWLY = Script(turns=(Turn(items=(SayText(text=STORY),), pace=Pace(chunk=8, delay=0.15)),))


async def test_the_text_of_a_reply_survives_a_kill(tmp_path: Path) -> None:
    program, workspace, home = Program(tmp_path / "home"), tmp_path / "work", tmp_path / "home"
    workspace.mkdir()
    async with ScriptedServer(SLOWLY) as server:
        process = await program.start("-p", "Tell me.", *flags(server, workspace))
        while not server.requests or not _parts(home):
            await asyncio.sleep(0.05)
        process.kill()
        await process.communicate()
        assert process.returncode == -signal.SIGKILL
        kept = "".join(_parts(home)).strip()
        assert STORY.startswith(kept)
        session = session_of(home)
        for told in (("show",), ("export", session, "--format", "md"), ("export", session, "--format", "html")):
            shown = " ".join((await program.run(*told, cwd=workspace)).out.split())
            assert shown.count(kept) == 1, (told, shown)
            assert shown.count("Cut off here: Treadle ended before the reply did.") == 1, told
        ended = await program.run("-p", "", "--continue", *flags(server, workspace))
        assert ended.code == 0, ended.err
        assert ended.out.strip() == STORY.strip()
        first, second = (received.body for received in server.requests)
        assert not server.violations
    assert first["messages"] == second["messages"]
    again = " ".join((await program.run("show", cwd=workspace)).out.split())
    assert again.index(kept) < again.index("Cut off here") < again.index(STORY.strip())
    assert again.count("Cut off here") == 1


def session_of(home: Path) -> str:
    store = Store(home / "sessions.db")
    try:
        return store.sessions()[0].id
    finally:
        store.close()


def _parts(home: Path) -> list[str]:
    return [event.data.text for event in events_of(home) if isinstance(event.data, ReplyPart)]
