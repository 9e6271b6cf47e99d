"""Commands in auto mode run unasked in a sandbox; in plan mode they change nothing."""

from pathlib import Path

from tests.e2e.process import Program
from tests.e2e.running import model
from tests.needed import needs
from treadle.providers.scripted.script import MakeCall, Script, Turn
from treadle.providers.scripted.scripted_server import ScriptedServer

pytestmark = needs("sandbox")

WRITES = "import pathlib\npathlib.Path('inside.txt').write_text('x')\npathlib.Path('../outside.txt').write_text('x')\n"


def script(command: str) -> Script:
    run = MakeCall(name="execute_command", arguments={"command": command})
    done = MakeCall(name="attempt_completion", arguments={"result": "Done."})
    return Script(turns=(Turn(items=(run,)), Turn(items=(done,))))


async def run(tmp_path: Path, mode: str, command: str) -> tuple[int, str]:
    (tmp_path / "ws").mkdir(exist_ok=True)
    async with ScriptedServer(script(command)) as server:
        flags = (*model(server), "--mode", mode, "-C", str(tmp_path / "ws"))
        ended = await Program(tmp_path / "home").run("-p", "Try.", *flags)
        return ended.code, str(server.requests[-1].body["messages"][-1])


async def test_auto_mode_runs_a_command_unasked_that_reaches_only_the_workspace(tmp_path: Path) -> None:
    (tmp_path / "ws").mkdir()
    (tmp_path / "ws" / "writes.py").write_text(WRITES)
    code, result = await run(tmp_path, "auto", "python3 writes.py")
    assert code == 0, result
    assert (tmp_path / "ws" / "inside.txt").read_text() == "x"
    assert not (tmp_path / "outside.txt").exists()


async def test_auto_mode_has_no_network(tmp_path: Path) -> None:
    (tmp_path / "ws").mkdir()
    (tmp_path / "ws" / "connect.py").write_text("import socket\nsocket.create_connection(('127.0.0.1', 9), 2)\n")
    code, result = await run(tmp_path, "auto", "python3 connect.py; echo ended")
    assert code == 0, result
    assert "ended" in result
    assert any(word in result for word in ("Network is unreachable", "Connection refused", "not permitted"))


async def test_plan_mode_changes_nothing(tmp_path: Path) -> None:
    code, result = await run(tmp_path, "plan", "echo x > inside.txt")
    assert code == 0
    assert "plan mode" in result
    assert list((tmp_path / "ws").iterdir()) == []
