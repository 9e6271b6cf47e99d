"""Going back in the real program: the time line, what it says, and what of it goes back."""

import json
from pathlib import Path

import pytest

from tests.e2e.process import Program
from tests.e2e.pseudo_terminal import on_terminal
from tests.e2e.running import log_of, model
from tests.person import CTRL_C, CTRL_D, ENTER, ESCAPE, UP
from treadle.app.checkpoints.opening_checkpoints import forget_checkpoints
from treadle.app.slash.going_back import listed_turns, preview_turn
from treadle.protocol.events import SessionStarted
from treadle.providers.scripted.script import MakeCall, Script, Turn
from treadle.providers.scripted.scripted_server import ScriptedServer


def writes(path: str, content: str) -> Turn:
    return Turn(items=(MakeCall(name="write_to_file", arguments={"path": path, "content": content}),))


def done(result: str) -> Turn:
    return Turn(items=(MakeCall(name="attempt_completion", arguments={"result": result}),))


async def test_escape_twice_opens_the_time_line_and_what_was_chosen_goes_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    work, home = tmp_path / "ws", tmp_path / "home"
    work.mkdir()
    turns = (writes("cart.py", "one\n"), done("First."), writes("list.md", "a\nb\n"), done("Second."))
    async with (
        ScriptedServer(Script(turns=turns)) as server,
        on_terminal(Program(home), *model(server), "--mode", "edits", "-C", str(work)) as terminal,
    ):
        await terminal.until_shown("› Describe a task")
        for task, answer in (("make the cart", "First."), ("list it", "Second.")):
            terminal.type(f"{task}{ENTER}")
            await terminal.until_shown(answer, "› Describe a task")
        (work / "mine.txt").write_text("mine\n")
        terminal.type(ESCAPE)
        await terminal.until_shown("esc again goes back to a message")
        terminal.type(ESCAPE)
        await terminal.until_shown("list.md +2 -0", "cart.py +1 -0", "❯ 2  list it")
        terminal.type(UP)
        await terminal.until_shown("❯ 1  make the cart")
        terminal.type(ENTER)
        await terminal.until_shown("2 messages would leave", "Deleted: cart.py, list.md", "❯ Conversation and files")
        terminal.type(ESCAPE)
        await terminal.until_shown("❯ 1  make the cart")
        terminal.type(UP)
        await terminal.until_shown("❯ 2  list it")
        terminal.type(ENTER)
        await terminal.until_shown("1 message would leave", "Deleted: list.md")
        await terminal.confirm()
        await terminal.until_shown("left  list it", "1 message left the conversation", "› list it", "1 file deleted")
        assert {one.name for one in work.iterdir()} == {"cart.py", "mine.txt"}
        terminal.type(f" better{ENTER}")
        await terminal.until(
            lambda shown: shown.count("Second.") == 2 and "› Describe a task" in shown, "the turn again"
        )
        assert "left  list it" not in terminal.shown
        again = json.dumps(server.requests[4].body)
        assert ("list it better" in again, "Created list.md" in again) == (True, False)
        terminal.type(f"/rewind 1 conversation{ENTER}")
        await terminal.until_shown("left  make the cart", "› make the cart")
        assert (work / "cart.py").read_text() == "one\n"
        terminal.type(CTRL_C)
        await terminal.until_shown("› Describe a task")
        terminal.type(CTRL_D)
        assert await terminal.ended() == 0
    monkeypatch.setenv("TREADLE_HOME", str(home))
    started = log_of(home)[0].data
    assert isinstance(started, SessionStarted)
    assert listed_turns(started.session_id) == ()


async def test_files_whose_checkpoints_are_gone_are_said_before_the_choice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    work, home = tmp_path / "ws", tmp_path / "home"
    work.mkdir()
    async with ScriptedServer(Script(turns=(writes("cart.py", "one\n"), done("First.")))) as server:
        await Program(home).run("-p", "make it", *model(server), "--mode", "edits", "-C", str(work))
    monkeypatch.setenv("TREADLE_HOME", str(home))
    started = log_of(home)[0].data
    assert isinstance(started, SessionStarted)
    (turn,) = listed_turns(started.session_id)
    assert (turn.flaw, [one.path for one in turn.files or ()], turn.exact) == ("", ["cart.py"], True)
    found = preview_turn(started.session_id, turn.number)
    assert found is not None
    assert [(one.what, one.path, "-one" in one.diff) for one in found.paths] == [("delete", "cart.py", True)]
    forget_checkpoints(started.session_id)
    (turn,) = listed_turns(started.session_id)
    assert (
        turn.flaw
        == "Their checkpoint is missing: it was removed to save space, or the session had other folders at that time."
    )
    work.rename(tmp_path / "elsewhere")
    (turn,) = listed_turns(started.session_id)
    assert "is not there" in turn.flaw
    found = preview_turn(started.session_id, turn.number)
    assert found is not None
    assert "is not there" in found.flaw
    assert preview_turn(started.session_id, 99) is None
