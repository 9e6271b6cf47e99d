"""Calls in the forms of other models through the real program: what is asked about, what runs, and the same again."""

import json
from pathlib import Path

import pytest

from tests.e2e.process import Program
from tests.e2e.running import log_of, model
from treadle.app.compose import Opening, open_session
from treadle.app.config.sections import Settings
from treadle.app.errors.exits import Exit
from treadle.protocol.events import Answer, CallJudged, CallProposed, Prompt, ReplyFinished, Source
from treadle.protocol.messages import Text
from treadle.protocol.notifications import QuestionAsked, TurnEnded
from treadle.protocol.permissions import OptionKind
from treadle.providers.scripted.script import MakeCall, SayText, Script, Turn
from treadle.providers.scripted.scripted_server import ScriptedServer

WRITE = {"path": "a.txt", "content": "one\ntwo\n"}
FENCED = SayText(text=f"```json\n{json.dumps({'name': 'write_to_file', 'arguments': WRITE})}\n```")
EDIT = MakeCall(name="apply_patch", arguments={"path": "a.txt", "old_string": "two", "new_string": "2"})
SHELL = SayText(text="I look at it.\n\n<bash>cat a.txt</bash>")
DONE = MakeCall(name="attempt_completion", arguments={"result": "Done."})
DIFF = "------- SEARCH\ntwo\n=======\n2\n+++++++ REPLACE"
WANTED = [
    ("write_to_file", WRITE),
    ("replace_in_file", {"path": "a.txt", "diff": DIFF}),
    ("execute_command", {"command": "cat a.txt"}),
    ("attempt_completion", {"result": "Done."}),
]


@pytest.mark.parametrize("protocol", ["native", "xml"])
async def test_calls_in_the_forms_of_others_run_without_a_word_and_replay(tmp_path: Path, protocol: str) -> None:
    script = Script(turns=tuple(Turn(items=(item,)) for item in (FENCED, EDIT, SHELL, DONE)))
    (tmp_path / "project").mkdir()
    program = Program(tmp_path / "home")
    async with ScriptedServer(script) as server:
        flags = (*model(server), "--tool-protocol", protocol, "--mode", "full")
        ended = await program.run("-p", "Go.", *flags, cwd=tmp_path / "project")
    assert (ended.code, server.violations) == (Exit.DONE, []), ended.err
    assert (tmp_path / "project/a.txt").read_text() == "one\n2\n"
    events = [event.data for event in log_of(program.home)]
    calls = [one.call for one in events if isinstance(one, CallProposed)]
    assert [(call.name, call.arguments) for call in calls] == WANTED
    assert [call.problem for call in calls] == ["", "", "", ""]
    assert [one.hint for one in events if isinstance(one, ReplyFinished)] == ["", "", "", ""]
    titles = [one.preview.title for one in events if isinstance(one, CallJudged)]
    assert titles[:2] == ["Create a.txt (+2 -0)", "Edit a.txt (+1 -1)"]
    strict = await program.run("replay", "2", "--strict", cwd=tmp_path / "project")
    assert (strict.code, strict.err) == (Exit.DONE, "")
    edits = await program.run("edits", "--json", cwd=tmp_path / "project")
    assert {row["format"] for line in edits.out.splitlines() if "format" in (row := json.loads(line))} == {
        "whole",
        "search_replace",
    }


async def test_a_person_is_asked_about_the_call_that_will_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TREADLE_HOME", str(tmp_path / "home"))
    folder = tmp_path / "project"
    folder.mkdir()
    script = Script(turns=tuple(Turn(items=(item,)) for item in (FENCED, EDIT, SHELL, DONE)))
    asked: list[tuple[dict[str, object], str]] = []
    async with ScriptedServer(script) as server:
        settings = Settings(model="anthropic-compatible/scripted", base_url=server.base_url)
        live = await open_session(Opening(workspace=folder, settings=settings, user_present=True))
        source = Source(kind="test", id="1")
        feed = live.follow()
        async with live:
            await live.post(Prompt(id="p", content=(Text(text="Go."),)), source)
            async for notification in feed:
                match notification:
                    case QuestionAsked(question=question):
                        title = question.preview.title if question.preview else ""
                        asked.append((question.arguments, title))
                        await live.post(Answer(question_id=question.id, option=OptionKind.ALLOW_ONCE), source)
                    case TurnEnded():
                        break
                    case _:
                        pass
    assert asked[:2] == [(WANTED[0][1], "Create a.txt (+2 -0)"), (WANTED[1][1], "Edit a.txt (+1 -1)")]
    assert (folder / "a.txt").read_text() == "one\n2\n"
