"""Nothing is called but the model's server, and no other name is looked up: every socket is watched."""

import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.e2e.process import Program
from tests.e2e.pseudo_terminal import on_terminal
from tests.e2e.running import model
from tests.person import CTRL_D, DOWN
from treadle.app.errors.exits import Exit
from treadle.providers.scripted.script import MakeCall, SayText, Script, Turn
from treadle.providers.scripted.scripted_server import ScriptedServer

TASK = Script(
    turns=(
        Turn(items=(MakeCall(name="list_files", arguments={"path": "."}),)),
        Turn(items=(MakeCall(name="execute_command", arguments={"command": "git status; echo hi > a.txt"}),)),
        Turn(items=(MakeCall(name="attempt_completion", arguments={"result": "Done."}),)),
    )
)


class Watched:
    """The program, and what its sockets did."""

    def __init__(self, folder: Path) -> None:
        self._log = folder / "sockets.log"
        spies = folder / "spies"
        spies.mkdir()
        source = Path(__file__).with_name("spy_sockets.py").read_text()
        (spies / "sitecustomize.py").write_text(source)
        extra = {"PYTHONPATH": str(spies), "TREADLE_SOCKET_LOG": str(self._log)}
        self.program = Program(folder / "home", extra)

    @property
    def called(self) -> set[str]:
        """What was called or looked up, each once."""
        assert self._log.exists(), "the program was not watched"
        return set(self._log.read_text().splitlines())


@pytest.fixture
def watched(tmp_path: Path) -> Watched:
    return Watched(tmp_path)


def connects(server: ScriptedServer) -> set[str]:
    address = urlsplit(server.base_url)
    return {f"socket.connect {address.hostname} {address.port}"}


@pytest.mark.parametrize("wire", ["anthropic", "chat"])
async def test_a_task_calls_the_model_s_server_and_nothing_else(watched: Watched, tmp_path: Path, wire: str) -> None:
    async with ScriptedServer(TASK) as server:
        flags = (*model(server, wire), "--directory", str(tmp_path), "--mode", "full")
        ended = await watched.program.run("-p", "Look around.", *flags)
    assert (ended.code, ended.out) == (Exit.DONE, "Done.\n"), ended.err
    assert watched.called == connects(server)


async def test_an_interactive_session_calls_the_model_s_server_and_nothing_else(watched: Watched) -> None:
    async with (
        ScriptedServer(Script(turns=(Turn(items=(SayText(text="Hello."),)),))) as server,
        on_terminal(watched.program, "say hello", *model(server)) as terminal,
    ):
        await terminal.until_shown("Hello.", "■ Done", "? for keys")
        terminal.type(CTRL_D)
        assert await terminal.ended() == Exit.DONE
    assert watched.called == connects(server)


async def test_the_demo_calls_its_own_model_on_this_machine_and_nothing_else(watched: Watched) -> None:
    ended = await watched.program.run("demo")
    assert ended.code == Exit.DONE, ended.err
    assert {line.rpartition(" ")[0] for line in watched.called} == {"socket.connect 127.0.0.1"}
    assert len(watched.called) == 1


COMMANDS = (
    ("--version",),
    ("--help",),
    ("sessions", "--all"),
    ("config",),
    ("providers",),
    ("models", "anthropic/"),
    ("tools",),
    ("policy", "explain", "curl https://example.com"),
    ("trust",),
    ("explain",),
    ("docs", "errors"),
    ("-p", "Hi."),
    ("sesions",),
)


@pytest.mark.parametrize("argv", COMMANDS, ids=" ".join)
async def test_commands_that_need_no_server_call_none(watched: Watched, tmp_path: Path, argv: tuple[str, ...]) -> None:
    with nothing_configured(tmp_path):
        ended = await watched.program.run(*argv, cwd=tmp_path)
    assert "Traceback" not in ended.err
    assert watched.called == set()


async def test_the_doctor_looks_for_local_servers_at_their_places_and_nowhere_else(
    watched: Watched, tmp_path: Path
) -> None:
    with nothing_configured(tmp_path) as port:
        ended = await watched.program.run("doctor", "--offline", cwd=tmp_path)
    assert "Traceback" not in ended.err
    assert watched.called <= {f"socket.connect 127.0.0.1 {port}"}


async def test_the_first_start_calls_local_servers_and_the_demo_s_own_model(watched: Watched, tmp_path: Path) -> None:
    with nothing_configured(tmp_path) as port:
        async with on_terminal(watched.program) as terminal:
            await terminal.until_shown("❯ Add an API key", "Try the demo, no key needed")
            await terminal.confirm(DOWN)
            await terminal.until_shown("python3 -m unittest")
    assert f"socket.connect 127.0.0.1 {port}" in watched.called
    assert {line.rpartition(" ")[0] for line in watched.called} == {"socket.connect 127.0.0.1"}


def test_the_watch_sees_a_call_and_a_look_up(watched: Watched) -> None:
    import subprocess

    code = (
        "import socket\n"
        "from contextlib import suppress\n"
        "with suppress(OSError): socket.create_connection(('127.0.0.1', 1))\n"
        "with suppress(OSError): socket.getaddrinfo('a.invalid', 1)\n"
    )
    subprocess.run([sys.executable, "-c", code], env=watched.program.environment, check=True)
    assert "socket.connect 127.0.0.1 1" in watched.called
    assert any(line.startswith("socket.getaddrinfo a.invalid") for line in watched.called)


@contextmanager
def nothing_configured(folder: Path) -> Iterator[int]:
    """Settings whose local servers are at a port of this machine where nobody answers."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        home = folder / "home"
        home.mkdir(exist_ok=True)
        names = ("ollama", "lmstudio", '"llama.cpp"', "vllm")
        lines = (f'[providers.{name}]\nbase_url = "http://127.0.0.1:{port}/v1"\n' for name in names)
        (home / "config.toml").write_text("".join(lines))
        yield port
