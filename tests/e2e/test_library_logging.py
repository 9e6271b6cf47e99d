"""What libraries log or warn of is in the program's log, on no terminal and in no stream."""

import asyncio
import json
import sys
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from tests.e2e.process import Program
from tests.e2e.pseudo_terminal import on_terminal
from tests.e2e.running import PATIENCE, model
from tests.person import CTRL_D
from treadle.app.errors.exits import Exit
from treadle.providers.scripted.script import MakeCall, Pace, Script, Turn
from treadle.providers.scripted.scripted_server import ScriptedServer

LOGGED = "Unexpected content type"
"""What the MCP library logs of the server of these tests."""

DONE = Turn(
    items=(MakeCall(name="attempt_completion", arguments={"result": "Connected."}),), pace=Pace(chunk=1, delay=0.2)
)
"""Takes as long as a server to answer."""

INSIDE = """
import asyncio, sys
from pathlib import Path
from treadle.library import Treadle
from treadle.testing import scripted_model

async def main():
    end = asyncio.get_running_loop().time() + 60
    async with Treadle(sys.argv[1], model=scripted_model("Done.")) as agent:
        await agent.run("Go.")
        while not Path(sys.argv[2]).exists() and asyncio.get_running_loop().time() < end:
            await asyncio.sleep(0.05)

asyncio.run(main())
"""

LOUD = """
import logging, sys, warnings
from treadle.cli import main
class Loud:
    def execute(self, arguments):
        warnings.warn("warned\\x1b[31m")
        logging.getLogger("some.library").warning("logged\\x1b[31m again")
        logging.getLogger("some.library").error("%d fits", "nothing")
        try:
            raise ValueError("inside")
        except ValueError:
            logging.getLogger("some.library").exception("failed")
        return 0
    def configure(self, parser): pass
main._module = lambda name: Loud()
sys.exit(main.run(["doctor"]))
"""


class Odd(BaseHTTPRequestHandler):
    """Answers with what a terminal would act on."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("content-length", 0)))
        self.send_response(200)
        self.send_header("content-type", "text/html\x1b]0;taken\x07\x1b[31mred")
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None: ...  # noqa: A002


@pytest.fixture
def program(tmp_path: Path) -> Iterator[Program]:
    """A home with a server over HTTP that answers oddly."""
    (tmp_path / "home").mkdir()
    (tmp_path / "ws").mkdir()
    with ThreadingHTTPServer(("127.0.0.1", 0), Odd) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        url = f"http://127.0.0.1:{server.server_port}/mcp"
        (tmp_path / "home" / "mcp.json").write_text(json.dumps({"mcpServers": {"odd": {"url": url}}}))
        yield Program(tmp_path / "home")
        server.shutdown()
        thread.join()


def _logged(program: Program) -> str:
    text = (program.home / "treadle.log").read_text()
    assert text.replace("\n", "").isprintable()
    return text


async def _until_logged(program: Program) -> None:
    async with asyncio.timeout(PATIENCE):
        while not (program.home / "treadle.log").exists():
            await asyncio.sleep(0.05)


@pytest.mark.parametrize(
    "words", [("mcp", "list"), ("mcp", "test", "odd"), ("-p", "Go."), ("-p", "Go.", "--output-format", "stream-json")]
)
async def test_what_a_server_has_a_library_log_is_not_printed(
    program: Program, tmp_path: Path, words: tuple[str, ...]
) -> None:
    async with ScriptedServer(Script(turns=(DONE,))) as scripted:
        flags = model(scripted) if words[0] == "-p" else ()
        ended = await program.run(*words, *flags, cwd=tmp_path / "ws")
    printed = ended.out + ended.err
    assert "\x1b" not in printed
    assert not [line for line in printed.splitlines() if line.startswith(LOGGED)]
    assert LOGGED in _logged(program)


async def test_it_is_not_drawn_over_the_terminal(program: Program, tmp_path: Path) -> None:
    async with (
        ScriptedServer(Script(turns=(DONE,))) as scripted,
        on_terminal(program, *model(scripted), "-C", str(tmp_path / "ws")) as terminal,
    ):
        await terminal.until_shown("? for keys")
        terminal.type("Go.\r")
        await terminal.until_shown("■ Done · ")
        await _until_logged(program)
        terminal.type(CTRL_D)
        assert await terminal.ended() == Exit.DONE
        assert b"\x1b]0;taken" not in terminal.written
        assert not [line for line in terminal.shown.splitlines() if line.startswith(LOGGED)]
    assert LOGGED in _logged(program)


async def test_it_is_not_printed_by_a_program_that_uses_the_library(program: Program, tmp_path: Path) -> None:
    ended = await program.run(
        str(tmp_path / "ws"), str(program.home / "treadle.log"), command=(sys.executable, "-c", INSIDE)
    )
    assert (ended.code, ended.out, ended.err) == (0, "", "")
    assert LOGGED in _logged(program)


async def test_logs_and_warnings_of_any_library_are_a_line_each_in_the_log(program: Program) -> None:
    ended = await program.run(command=(sys.executable, "-W", "default", "-c", LOUD))
    assert (ended.code, ended.out, ended.err) == (0, "", "")
    first, *rest = [line.partition(" ")[2] for line in _logged(program).splitlines()]
    assert first.startswith("py.warnings: ")
    assert "UserWarning: warned\\x1b[31m" in first
    assert rest == [
        "some.library: logged\\x1b[31m again",
        "some.library: %d fits",
        "some.library: failed: ValueError('inside')",
    ]
