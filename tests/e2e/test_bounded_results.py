"""What results may take of the conversation, with the real program."""

from pathlib import Path

import pytest

from tests.e2e.process import Program
from tests.e2e.running import model
from treadle.protocol.messages import text_of
from treadle.protocol.models import ToolProtocol
from treadle.providers.scripted.script import MakeCall, SayText, Script, Turn
from treadle.providers.scripted.scripted_server import ScriptedServer
from treadle.store.sqlite import Store

UNCHANGED = "[a.py, lines 1-100: unchanged since you read them, see above]"


def _read(path: str) -> Turn:
    return Turn(items=(MakeCall(name="read_file", arguments={"path": path}),))


@pytest.mark.parametrize("protocol", list(ToolProtocol))
async def test_a_file_is_sent_once_and_a_small_window_gets_small_pages(tmp_path: Path, protocol: ToolProtocol) -> None:
    (workspace := tmp_path / "work").mkdir()
    (workspace / "a.py").write_text("".join(f"x = {number}\n" for number in range(100)))
    (workspace / "large").write_text("a line of text\n" * 9_000)
    done = Turn(items=(SayText(text="Done."), MakeCall(name="attempt_completion", arguments={"result": "Done."})))
    script = Script(turns=(*map(_read, ("a.py", "a.py", "a.py", "large")), done))
    program = Program(tmp_path / "home")
    program.home.mkdir()
    (program.home / "config.toml").write_text('[models."anthropic-compatible/scripted"]\ncontext_window = 32768\n')
    async with ScriptedServer(script) as server:
        flags = ("--tool-protocol", protocol.value, "--directory", str(workspace))
        ended = await program.run("-p", "Read it.", *model(server), *flags)
    assert (ended.code, server.violations) == (0, []), ended.err
    first, second, third, large = _results(program.home)
    assert (first.count("\n"), second, third) == (99, UNCHANGED, UNCHANGED)
    assert 20_000 < len(large) <= 32_768 / 4 * 3.6
    assert large.endswith("of 9000; read on with start_line={}]".format(large.count("\n") + 1))


def _results(home: Path) -> list[str]:
    store = Store(home / "sessions.db")
    try:
        (row,) = store.sessions()
        finished = [event.data for event in store.read(row.id) if type(event.data).__name__ == "CallFinished"]
    finally:
        store.close()
    return [text_of(data.result.content) for data in finished if hasattr(data, "result")][:4]
