"""Files that a task or a message mentions, through the real program: headless, in the terminal, in an attached one."""

import json
from pathlib import Path

import pytest

from tests.e2e.process import Program
from tests.e2e.pseudo_terminal import on_terminal
from tests.e2e.running import log_of, model
from tests.person import CTRL_D, ENTER, TAB
from treadle.protocol.events import Prompt
from treadle.providers.scripted.script import MakeCall, SayText, Script, Turn
from treadle.providers.scripted.scripted_server import ScriptedServer

ASK = MakeCall(name="ask_followup_question", arguments={"question": "Which file?"})
SAID = Turn(items=(SayText(text="Understood."),))


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "ws" / "src").mkdir(parents=True)
    (tmp_path / "ws" / "src" / "a.py").write_text("ANSWER = 42\n")
    (tmp_path / "ws" / ".env").write_text("PASSWORD=very-quiet-part\n")
    (tmp_path / "ws" / "notes.txt").symlink_to(".env")
    return tmp_path / "ws"


def requests_of(server: ScriptedServer) -> list[str]:
    return [json.dumps(request.body["messages"]) for request in server.requests]


async def test_a_headless_task_sends_the_file_in_the_first_request(project: Path, tmp_path: Path) -> None:
    program = Program(tmp_path / "home")
    async with ScriptedServer(Script(turns=(SAID,))) as server:
        ended = await program.run("-p", "explain @src/a.py and @notes.txt", *model(server), "-C", str(project))
        (sent,) = requests_of(server)
    assert ended.code == 0, ended.err
    assert "1 | ANSWER = 42" in sent
    assert "very-quiet-part" not in sent
    assert "~ Enclosed: src/a.py\n" in ended.err
    assert "~ @notes.txt is not enclosed: " in ended.err
    (row, *_) = [event.data for event in log_of(tmp_path / "home") if isinstance(event.data, Prompt)]
    assert [one.origin for one in row.enclosed] == ["src/a.py"]
    shown = await program.run("show", log_of(tmp_path / "home")[0].data.session_id)  # type: ignore[union-attr]
    assert "(Enclosed: src/a.py)" in shown.out


async def test_mentions_in_the_terminal_in_an_answer_and_in_an_attached_one(project: Path, tmp_path: Path) -> None:
    program = Program(tmp_path / "home")
    script = Script(turns=(SAID, Turn(items=(ASK,)), SAID, SAID))
    async with ScriptedServer(script) as server:
        async with on_terminal(program, *model(server), "--directory", str(project)) as first:
            await first.until_shown("ask")
            first.type(f"explain @src/a.py {ENTER}")
            await first.until_shown("Enclosed: src/a.py", "Understood.")
            first.type(f"ask me{ENTER}")
            await first.until_shown("Which file?", "❯ Answer in your own words")
            await first.confirm(TAB)
            await first.until_shown("esc back")
            first.type("this one: @src/a.py ")
            await first.confirm()
            await first.until(
                lambda shown: shown.count("■ Done") >= 2 and shown.count("Enclosed: src/a.py") == 2, "the second turn"
            )
            async with on_terminal(program, "--attach", "--directory", str(project)) as second:
                await second.until_shown("Attached as terminal 2")
                second.type(f"and @notes.txt with @src/ {ENTER}")
                await second.until_shown("Enclosed: src/", "@notes.txt is not enclosed")
                await first.until(
                    lambda shown: shown.count("■ Done") >= 3 and "Enclosed: src/\n" in shown, "the third turn"
                )
                second.type(CTRL_D)
                assert await second.ended() == 0
            first.type(CTRL_D)
            assert await first.ended() == 0
        sent = requests_of(server)
    assert "1 | ANSWER = 42" in sent[0]
    assert sent[2].count("1 | ANSWER = 42") == 2
    assert '<enclosed kind=\\"folder\\" from=\\"src/\\">\\na.py' in sent[3]
    assert not any("very-quiet-part" in one for one in sent)
