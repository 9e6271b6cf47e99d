"""What happens when the terminal changes, goes, or is flooded, and what is asked there."""

import asyncio
import os
import shlex
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.e2e.faults.driving import block, make, run, script
from tests.e2e.process import Program
from tests.e2e.pseudo_terminal import COLUMNS, ROWS, Terminal, on_terminal
from tests.e2e.running import PATIENCE, log_of, model, running
from tests.orphans import command_line
from tests.person import CTRL_D, CTRL_O, CTRL_Z, ENTER, ESCAPE, TAB
from tests.ready import TREADLE
from tests.workspace.copies.copied import skip_without_copies
from treadle.app.errors.exits import Exit
from treadle.protocol.events import CallFinished, CallStarted, Prompt
from treadle.protocol.messages import Text
from treadle.protocol.tools import Outcome
from treadle.providers.scripted.script import Pace, SayText, Script, Turn
from treadle.providers.scripted.scripted_server import ScriptedServer
from treadle.workspace.commands.meter import descendants

KEYS = "ctrl-o"
_LAST = {"text": "\x9f", "json": "\x7f", "stream-json": "\x7f"}
"""The last of the characters that a format never holds: in JSON they are data, not lines."""
READY = "? for keys"


@asynccontextmanager
async def session(tmp_path: Path, played: Script, *flags: str, ready: str = READY) -> AsyncIterator[Terminal]:
    """The program on a terminal, in the folder `ws`, with a scripted model."""
    (tmp_path / "ws").mkdir(exist_ok=True)
    async with ScriptedServer(played) as server:
        usual = (*model(server), "-C", str(tmp_path / "ws"))
        async with on_terminal(Program(tmp_path / "home"), *usual, *flags, command=TREADLE) as terminal:
            await terminal.until_shown(ready)
            yield terminal
    assert server.violations == []


async def test_a_storm_of_resizes_while_a_reply_streams_ends_in_the_right_layout(tmp_path: Path) -> None:
    words = "".join(f"word{number} " for number in range(400))
    played = Script(turns=(Turn(items=(SayText(text=words),), pace=Pace(chunk=20, delay=0.005)),))
    async with session(tmp_path, played) as terminal:
        terminal.type(f"go{ENTER}")
        await terminal.until_shown("word1 ")
        for number in range(60):
            terminal.resize(10 + number % 30, 20 + (number * 7) % 120)
            await asyncio.sleep(0.005)
        terminal.resize(ROWS, COLUMNS)
        await terminal.until_shown("■ Done", READY)
        terminal.type("still here")
        await terminal.until_shown("› still here")
        assert terminal.process.returncode is None


async def test_what_is_no_terminal_gets_no_control_sequences(tmp_path: Path) -> None:
    shows = run(r"printf '\033[2J\033]0;title\007\033[31mred\033[0m\n\302\233 8\b\n'")
    played = Turn(items=(SayText(text="\x1b[2Jclear \x9b1m\n\n**bold**\n"),))
    for number, form in enumerate(("text", "json", "stream-json")):
        root = tmp_path / str(number)
        (root / "ws").mkdir(parents=True)
        async with ScriptedServer(Script(turns=(Turn(items=(shows,)), played, played))) as server:
            flags = (*model(server), "--mode", "full", "-C", str(root / "ws"), "--output-format", form)
            ended = await Program(root / "home").run("-p", "Work.", *flags)
        assert ended.code == Exit.DONE, ended.err
        assert [
            sign for sign in ended.out + ended.err if (sign < " " and sign != "\n") or "\x7f" <= sign <= _LAST[form]
        ] == []


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, Exit.TERMINATED), (signal.SIGHUP, Exit.HANGUP)])
async def test_a_signal_to_end_in_the_terminal_ends_the_children_and_gives_the_terminal_back(
    tmp_path: Path, number: signal.Signals, code: Exit
) -> None:
    async with session(
        tmp_path, script(run("echo be$((1))gun; trap '' TERM HUP; sleep 1000; sleep 1000")), "--mode", "full"
    ) as terminal:
        terminal.type(f"go{ENTER}")
        await terminal.until_shown("be1gun")
        await _until(lambda: _sleeps(terminal.process.pid))
        below = descendants(terminal.process.pid)
        terminal.process.send_signal(number)
        assert await terminal.ended() == code
        assert terminal.restored()
        assert [pid for pid in below if command_line(pid)] == []
    events = [type(event.data) for event in log_of(tmp_path / "home")]
    assert events.count(CallStarted) == events.count(CallFinished) == 1


def _sleeps(pid: int) -> bool:
    return any(command_line(below).startswith("sleep") for below in descendants(pid))


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, Exit.TERMINATED), (signal.SIGHUP, Exit.HANGUP)])
async def test_a_signal_to_end_without_a_terminal_ends_the_children_and_keeps_the_log(
    tmp_path: Path, number: signal.Signals, code: Exit
) -> None:
    (tmp_path / "ws").mkdir()
    async with ScriptedServer(script(run("echo begun; trap '' TERM HUP; sleep 1000; sleep 1000"))) as server:
        flags = (*model(server), "--mode", "full", "-C", str(tmp_path / "ws"))
        async with running(Program(tmp_path / "home"), "-p", "Work.", *flags) as program:
            await program.until("call_output")
            below = descendants(program.process.pid)
            program.send(number)
            assert (await program.end()).code == code
    assert [pid for pid in below if command_line(pid)] == []
    events = [type(event.data) for event in log_of(tmp_path / "home")]
    assert events.count(CallStarted) == events.count(CallFinished) == 1


async def test_the_terminal_of_a_crashed_session_is_put_right_by_the_next_one(tmp_path: Path) -> None:
    (tmp_path / "ws").mkdir()
    async with ScriptedServer(script()) as server:
        line = shlex.join((*TREADLE, *model(server), "-C", str(tmp_path / "ws")))
        shell = f"stty -g >before; {line}; stty -g >crashed; {line}; stty -g >after; read rest"
        async with on_terminal(Program(tmp_path / "home"), command=("sh", "-c", shell)) as terminal:
            await terminal.until_shown(READY)
            (crashing,) = (pid for pid in descendants(terminal.process.pid) if "treadle" in command_line(pid))
            os.kill(crashing, signal.SIGSEGV)
            await _until(lambda: len(_sessions(terminal.process.pid, crashing)) == 1)
            await terminal.until(lambda shown: shown.count(READY) >= 1 and _painted_again(shown), "the second session")
            terminal.type(CTRL_D)
            await _until((tmp_path / "after").exists)
            terminal.type(ENTER)
            await terminal.ended()
    before, crashed, after = ((tmp_path / name).read_text() for name in ("before", "crashed", "after"))
    assert crashed != before
    assert after == before
    assert list((tmp_path / "home" / "terminals").iterdir()) == []


def _sessions(root: int, without: int) -> list[int]:
    return [pid for pid in descendants(root) if pid != without and "treadle" in command_line(pid)]


def _painted_again(shown: str) -> bool:
    return "Segmentation fault" in shown or shown.count(READY) > 1


async def _until(condition) -> None:  # type: ignore[no-untyped-def]
    async with asyncio.timeout(PATIENCE):
        while not condition():
            await asyncio.sleep(0.02)


async def test_a_session_that_was_stopped_goes_on_in_the_foreground(tmp_path: Path) -> None:
    (tmp_path / "ws").mkdir()
    async with ScriptedServer(Script(turns=(Turn(items=(SayText(text="All well."),)),))) as server:
        line = shlex.join((*TREADLE, *model(server), "-C", str(tmp_path / "ws")))
        async with on_terminal(
            Program(tmp_path / "home", {"PS1": "shell> "}), command=("bash", "--norc", "-i")
        ) as terminal:
            await terminal.until_shown("shell>")
            terminal.type(f"{line}{ENTER}")
            await terminal.until_shown(READY)
            terminal.type(CTRL_Z)
            await terminal.until_shown("Stopped")
            terminal.type(f"echo in$((1+1))between{ENTER}")
            await terminal.until_shown("in2between")
            terminal.type(f"fg{ENTER}")
            await terminal.until(lambda shown: shown.rpartition("in2between")[2].count(READY) > 0, "the session again")
            terminal.type(f"go{ENTER}")
            await terminal.until_shown("All well.", "■ Done")
            terminal.type(CTRL_D)
            await terminal.until(lambda shown: shown.endswith("shell>"), "the shell again")
            terminal.type(f"exit{ENTER}")
            await terminal.ended()


async def test_a_paste_of_five_mebibytes_is_one_prompt(tmp_path: Path) -> None:
    pasted = "    an indented beginning\n" + "a line of the paste\n" * (5 * 1024 * 1024 // 20)
    played = Script(turns=(Turn(items=(SayText(text="Long."),)),))
    (tmp_path / "home").mkdir()
    window = '[models."anthropic-compatible/scripted"]\ncontext_window = 4000000\n'
    (tmp_path / "home/config.toml").write_text(window)
    async with session(tmp_path, played) as terminal:
        await terminal.paste(pasted)
        await terminal.until_shown("[pasted ")
        terminal.type(ENTER)
        await terminal.until_shown("[pasted ", "Long.", "■ Done")
    (prompt,) = [event.data for event in log_of(tmp_path / "home") if isinstance(event.data, Prompt)]
    (content,) = prompt.content
    assert isinstance(content, Text)
    assert content.text == pasted


async def test_a_command_with_characters_that_hide_is_shown_escaped_and_escape_is_no(tmp_path: Path) -> None:
    line = "touch made\u202e # \u200bgpj\x1b[2K"
    async with session(tmp_path, script(run(line))) as terminal:
        terminal.type(f"go{ENTER}")
        await terminal.until_shown(KEYS, r"\u202e", r"\u200b", r"\x1b[2K")
        terminal.type(ESCAPE)
        await terminal.until_shown("you said no", "■ Done")
    assert list((tmp_path / "ws").iterdir()) == []


async def test_a_command_of_400_lines_shows_its_end_and_all_of_it_in_the_pager_and_escape_is_no(tmp_path: Path) -> None:
    skip_without_copies(tmp_path)
    lines = [f": line {number}" for number in range(399)]
    async with session(tmp_path, script(run("\n".join([*lines, "touch made-at-the-end"])))) as terminal:
        terminal.type(f"go{ENTER}")
        await terminal.until_shown(KEYS, ": line 0", "more lines, ctrl-o shows all", "touch made-at-the-end")
        assert ": line 200" not in terminal.shown
        terminal.type(CTRL_O)
        for number in (100, 200, 300, 398):
            await terminal.until_shown("q back")
            terminal.type(f"/line {number}{ENTER}")
            await terminal.until_shown(f": line {number}\n")
        terminal.type("y")
        terminal.type("q")
        await terminal.until_shown("❯ Apply", "more lines, ctrl-o shows all")
        await asyncio.sleep(0.3)
        terminal.type(ESCAPE)
        await terminal.until_shown("you discarded its changes", "■ Done")
    assert list((tmp_path / "ws").iterdir()) == []


async def test_a_call_that_is_asked_about_when_the_program_is_killed_is_asked_about_again(tmp_path: Path) -> None:
    write = script(make("write_to_file", path="made", content="x\n"))
    async with session(tmp_path, write) as terminal:
        terminal.type(f"go{ENTER}")
        await terminal.until_shown("Create made?", KEYS)
        terminal.process.kill()
        assert await terminal.ended() == -signal.SIGKILL
    assert not (tmp_path / "ws" / "made").exists()
    async with session(tmp_path, write, "--continue", ready=KEYS) as terminal:
        await terminal.until_shown("Create made?", KEYS)
        assert not (tmp_path / "ws" / "made").exists()
        await terminal.confirm()
        await terminal.until_shown("■ Done")
    assert (tmp_path / "ws" / "made").exists()
    finished = [event.data for event in log_of(tmp_path / "home") if isinstance(event.data, CallFinished)]
    assert finished[0].result.outcome is Outcome.OK


async def test_changes_that_were_not_kept_when_the_program_is_killed_are_gone_and_the_model_is_told(
    tmp_path: Path,
) -> None:
    skip_without_copies(tmp_path)
    async with session(tmp_path, script(run("touch made"))) as terminal:
        terminal.type(f"go{ENTER}")
        await terminal.until_shown("Keep these changes?", "❯ Apply")
        terminal.process.kill()
        assert await terminal.ended() == -signal.SIGKILL
    async with session(tmp_path, script(run("touch made")), "--continue", ready="■ Done") as terminal:
        await terminal.until_shown("✓ Run touch made", "its changes were discarded")
    assert list((tmp_path / "ws").iterdir()) == []
    finished = [event.data for event in log_of(tmp_path / "home") if isinstance(event.data, CallFinished)]
    assert finished[0].result.copy is not None


async def test_keys_typed_before_the_question_do_not_answer_it(tmp_path: Path) -> None:
    (tmp_path / "ws").mkdir()
    (tmp_path / "ws" / "a.txt").write_text("old\n")
    edit = make("replace_in_file", path="a.txt", diff=block("old\n", "new\n"))
    async with session(tmp_path, script(edit)) as terminal:
        terminal.type(f"go{ENTER}yyy")
        await terminal.until_shown("› yyy", "Treadle needs an answer: edit a.txt", "tab to answer")
        assert (tmp_path / "ws" / "a.txt").read_text() == "old\n"
        await terminal.confirm(TAB)
        await terminal.until_shown("■ Done", "› yyy")
    assert (tmp_path / "ws" / "a.txt").read_text() == "new\n"
